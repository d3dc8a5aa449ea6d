"""The snippets of .ci/deploy/ in front of a real server: real nginx, real Caddy, TLS, a login,
a socket and a stream."""

import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from dominds.local.embedded_redis import free_port
from tests.harness.postgres import PostgresServer
from tests.harness.proxies import end, nginx_command, program, snippet
from tests.harness.stack import Api, Stack, eventually, running

NAME, PASSWORD = "dominds.example.org", "correct horse battery"
CHUNKS, CHUNK_MS = 8, 150


@pytest.fixture(scope="module")
def stack(postgres: PostgresServer) -> Iterator[Stack]:
    """A server for people on a network, behind a proxy."""
    settings = {
        "ALLOWED_HOSTS": NAME,
        "DOMINDS_BEHIND_PROXY": "1",
        "DJANGO_SUPERUSER_USERNAME": "ada",
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }
    with running(Stack(postgres.create_database("deployed"), settings=settings)) as stack:
        model = {"name": "Slow", "script": "slow.yaml", "context_length": 128_000}
        steps = [{"text": "word " * CHUNKS}]
        slow = {"chunk_chars": 5, "chunk_delay_ms": CHUNK_MS, "steps": steps}
        stack.write_minds(
            slow=slow,
            llm={"providers": {"test": {"name": "Test", "apiType": "scripted", "models": {"slow": model}}}},
            team={"members": {"slow": {"name": "Slow", "provider": "test", "model": "slow"}}},
        )
        yield stack


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.manage("apikey", "ada").strip()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of the name's own signing, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    whole, private = folder / "fullchain.pem", folder / "privkey.pem"
    subject = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject),
            *("-keyout", str(private), "-out", str(whole)),
        ],
        check=True,
        capture_output=True,
    )
    return whole, private


@dataclass
class Proxy:
    """A running proxy on a port of its own, and ways to speak through it as the named site."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def site(self) -> str:
        return f"{NAME}:{self.port}"

    def client(self, **headers: str) -> httpx2.Client:
        def name(request: httpx2.Request) -> None:
            request.extensions["sni_hostname"] = NAME

        return httpx2.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": self.site, **headers},
            verify=False,
            trust_env=False,
            timeout=20,
            event_hooks={"request": [name]},
        )

    def open_socket(self, path: str, cookie: str, origin: str) -> Any:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        # This client reads in one thread while it writes in another, which OpenSSL does not allow. In TLS 1.3 a ticket
        # follows the handshake: read while the request is written, it lets the connection hang now and then.
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        return connect(
            f"wss://{self.site}{path}",
            sock=socket.create_connection(("127.0.0.1", self.port)),
            ssl=trusting,
            origin=Origin(origin),
            additional_headers={"Cookie": cookie},
            open_timeout=30,  # seconds: other tests run beside it
        )


def start(command: list[str], port: int, folder: Path) -> Proxy:
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        )
    proxy = Proxy(port, process)

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with proxy.client() as client:
            try:
                return client.get("/livez").status_code == 200
            except httpx2.TransportError:
                return False

    eventually(answers, 15)
    return proxy


def nginx(stack: Stack, certificate: tuple[Path, Path], folder: Path) -> Proxy:
    """The snippet as it is, but for ports, certificate and hosts."""
    port, plain = free_port(), free_port()
    site = snippet(
        "nginx.conf",
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("/etc/ssl/dominds/fullchain.pem", str(certificate[0])),
        ("/etc/ssl/dominds/privkey.pem", str(certificate[1])),
        ("127.0.0.1:8000", f"127.0.0.1:{stack.port}"),
    )
    return start(nginx_command(site, folder), port, folder)


def caddy(stack: Stack, certificate: tuple[Path, Path], folder: Path) -> Proxy:
    port = free_port()
    site = snippet(
        "Caddyfile",
        (f"{NAME} {{", f"https://{NAME}:{port} {{\n\ttls {certificate[0]} {certificate[1]}"),
        ("127.0.0.1:8000", f"127.0.0.1:{stack.port}"),
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    return start([program("caddy"), "run", "--config", str(folder / "Caddyfile")], port, folder)


STARTERS: dict[str, Callable[[Stack, tuple[Path, Path], Path], Proxy]] = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(scope="module", params=STARTERS)
def proxy(
    request: pytest.FixtureRequest,
    stack: Stack,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    with ExitStack() as opened:
        proxy = STARTERS[request.param](stack, certificate, tmp_path_factory.mktemp(request.param))
        opened.callback(end, proxy.process)
        yield proxy


@pytest.fixture(scope="module")
def person(proxy: Proxy) -> Iterator[httpx2.Client]:
    """Ada, logged in by the form."""
    with proxy.client(Origin=f"https://{proxy.site}") as client:
        page = client.get("/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token, page.text
        form = {"username": "ada", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        answer = client.post("/login/", data=form)
        assert answer.status_code == 302, answer.text
        yield client


def test_pages_come_over_https_and_cookies_stay_there(proxy: Proxy, person: httpx2.Client) -> None:
    answer = person.get("/")
    assert answer.status_code == 200
    assert "max-age=31536000" in answer.headers["Strict-Transport-Security"]
    assert all(cookie.secure for cookie in person.cookies.jar)


def test_a_socket_opens_for_our_page_and_for_no_other(proxy: Proxy, person: httpx2.Client) -> None:
    cookie = f"sessionid={person.cookies['sessionid']}"
    with proxy.open_socket("/ws/me/", cookie, f"https://{proxy.site}") as opened:
        assert json.loads(opened.recv(timeout=30))["type"] == "badges"
    with pytest.raises(InvalidStatus) as refused:
        proxy.open_socket("/ws/me/", cookie, "https://evil.example")
    assert refused.value.response.status_code == 403


def test_what_streams_arrives_piece_by_piece(proxy: Proxy, key: str) -> None:
    """The server-sent events of /v1, timed: a proxy that buffered would bring them all at the end."""
    body = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    times = []
    with (
        proxy.client(Authorization=f"Bearer {key}") as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if '"content":"' in line.replace(" ", ""):
                times.append(time.monotonic())
    assert len(times) >= 3
    assert times[-1] - times[0] > CHUNKS * CHUNK_MS / 1000 / 3


def test_events_stream_through_too(proxy: Proxy, key: str) -> None:
    with proxy.client(Authorization=f"Bearer {key}") as client:
        dialog = client.post("/api/dialogs", json={"agent": "slow"}).json()["id"]
        times = []
        with client.stream(
            "GET", f"/api/dialogs/{dialog}/events?after=0", headers={"Accept": "text/event-stream"}
        ) as answer:
            client.post(f"/api/dialogs/{dialog}/messages", json={"text": "Hi"})
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    times.append(time.monotonic())
                if '"state":"idle"' in line.replace(" ", ""):
                    break
    assert times[-1] - times[0] > CHUNKS * CHUNK_MS / 1000 / 3


def test_large_bodies_pass_and_too_large_ones_are_refused(proxy: Proxy, key: str) -> None:
    with proxy.client(Authorization=f"Bearer {key}") as client:
        dialog = client.post("/api/dialogs", json={"agent": "slow"}).json()["id"]
        text = client.post(f"/api/dialogs/{dialog}/messages", json={"text": "x" * 1_000_001})
        assert (text.status_code, text.json()["error"]["code"]) == (413, "message_too_large")
        try:
            answer = client.post("/v1/chat/completions", content=b"x" * 36_000_000)
            assert answer.status_code in (413, 502), "Caddy before 2.7 says 502 when it cuts a body off"
        except httpx2.WriteError:
            pass  # hung up on before it had sent everything
    with proxy.client() as client:
        assert client.get("/livez").status_code == 200, "the host is not taken for one that failed"


def test_a_client_cannot_pretend_to_be_another(proxy: Proxy, stack: Stack) -> None:
    """The throttle counts failures by address; the proxy's word for it holds, not the client's."""
    codes: list[int] = []
    with proxy.client(Origin=f"https://{proxy.site}") as client:
        page = client.get("/login/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token
        form = {"username": "ada", "csrfmiddlewaretoken": token[1]}  # no password: fails fast
        while 429 not in codes and len(codes) < 25:  # ten in one minute, and a new one may begin meanwhile
            headers = {"X-Forwarded-For": f"10.0.0.{len(codes)}", "X-Forwarded-Proto": "http"}
            codes.append(client.post("/login/", data=form, headers=headers).status_code)
    with stack.redis.client() as redis:
        redis.delete(*redis.keys("dominds:login:*"))
    assert codes[-1] == 429
    assert 301 not in codes, "the client's X-Forwarded-Proto was believed"


def test_without_a_proxy_nobodys_headers_count(stack: Stack) -> None:
    with Api(stack.base_url, "none") as client:
        answer = client.get("/login/", headers={"Host": NAME})
        assert answer.status_code == 301
        assert answer.headers["Location"].startswith(f"https://{NAME}/")


def test_the_proxy_of_compose_finds_its_web_hosts_by_name(stack: Stack, tmp_path: Path, key: str) -> None:
    port = free_port()
    site = snippet(
        "Caddyfile.compose",
        (":8000 {", f"http://127.0.0.1:{port} {{"),
        ("a web 8000", f"a localhost {stack.port}"),
    )
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + site)
    process = subprocess.Popen(
        [program("caddy"), "run", "--config", str(tmp_path / "Caddyfile")],
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with Api(f"http://127.0.0.1:{port}", key) as client:

            def answers() -> int:
                try:
                    return client.get("/livez").status_code == 200
                except httpx2.TransportError:
                    return False

            eventually(answers, 15)
            headers = {"Host": NAME, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
            assert client.get("/api/agents", headers=headers).status_code == 200, (
                "what the outer proxy says is passed on"
            )
    finally:
        process.kill()
        process.wait()
