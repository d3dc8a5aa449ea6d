"""Libraries' messages about an unreachable server, translated into words that tell people where to look."""

import re

# Patterns for messages of OpenSSL, the C library and HTTP clients. The first that is found decides.
WORDS = (
    (
        r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST\b|UNKNOWN_PROTOCOL",
        "it does not speak HTTPS there. Begin the address with http:// if it is meant without, or check the port",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED[^:]*: (?:certificate verify failed: )?(.+?)(?: \(_ssl|$)",
        r"its certificate is not trusted: \1",
    ),
    (r"TLSV1_ALERT|HANDSHAKE_FAILURE|SSLV3_ALERT|NO_SHARED_CIPHER", "it and Dominds agree on no kind of encryption"),
    (
        r"UNEXPECTED_EOF|EOF occurred",
        "it broke the connection off. Check whether the address begins with the right scheme",
    ),
    (
        r"Name or service not known|nodename nor servname|No address associated|getaddrinfo failed|Errno -[2-5]\b",
        "its name is not known. Check how the address is written",
    ),
    (r"name resolution", "its name could not be looked up now"),
    (r"Connect call failed|All connection attempts failed", "Connection refused"),
    (r"^\[Errno -?\d+\] (.+)$", r"\1"),
)


def plain_reason(said: str) -> str:
    """Return the reason in plain words, or the original message if it is not known. Neither ends with a full stop."""
    for pattern, words in WORDS:
        if found := re.search(pattern, said, re.DOTALL):
            return found.expand(words).rstrip(".")
    return re.sub(r" ?\(_ssl\.c:\d+\)", "", said).rstrip(".")
