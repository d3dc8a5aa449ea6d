"""What libraries say when a server cannot be reached, in plain words: from real sockets and OpenSSL."""

import socket
import ssl
import threading

import pytest

from dominds.unreachable import plain_reason


def test_a_server_without_https_is_named_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _address = server.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with socket.create_connection(server.getsockname()) as plain, pytest.raises(ssl.SSLError) as failed:
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    assert "[SSL" in str(failed.value)
    assert plain_reason(str(failed.value)).startswith("it does not speak HTTPS there. Begin the address with http://")


def test_a_name_that_nobody_has_is_named_as_such() -> None:
    with pytest.raises(OSError) as failed:
        socket.getaddrinfo("no-such-host.invalid", 443)
    reason = plain_reason(str(failed.value))
    assert reason.startswith("its name") and "Errno" not in reason


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",
            "its certificate is not trusted: self-signed certificate",
        ),
        ("[Errno 111] Connection refused", "Connection refused"),
        ("All connection attempts failed", "Connection refused"),
        ("[SSL: SOMETHING_NEW] something new (_ssl.c:1006)", "[SSL: SOMETHING_NEW] something new"),
        ("The server is full.", "The server is full"),
    ],
)
def test_reasons_are_told_in_plain_words(said: str, words: str) -> None:
    assert plain_reason(said) == words
