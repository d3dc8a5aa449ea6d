"""Addresses as people type them, without a scheme."""

import pytest

from dominds.typed_address import with_scheme

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:1234", "http://localhost:1234"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("192.168.1.20:8080/v1", "http://192.168.1.20:8080/v1"),
        ("[::1]:9000/mcp", "http://[::1]:9000/mcp"),
        ("studio.local/mcp", "http://studio.local/mcp"),
        ("workstation:8080", "http://workstation:8080"),
        ("nonsense", "nonsense"),
        ("tools.example.com:8000/mcp", "tools.example.com:8000/mcp"),
        ("tools.example.com/mcp", "https://tools.example.com/mcp"),
        ("api.example.com:443/v1", "https://api.example.com:443/v1"),
        ("8.8.8.8", "https://8.8.8.8"),
        ("http://tools.example.com", "http://tools.example.com"),
        ("  https://a.example/x ", "https://a.example/x"),
        ("", ""),
        ("host:port", "host:port"),
    ],
)
def test_a_typed_address_gets_the_scheme_that_was_meant(typed: str, meant: str) -> None:
    assert with_scheme(typed) == meant
