"""No credential survives in what the runtime writes, and ordinary text does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.text.secret_masking import (
    AUTHORIZATION,
    IN_AUTHORIZATION,
    IN_KEYS,
    IN_NAMED,
    IN_SHAPES,
    NAMED,
    REDACTED,
    SHAPES,
    redact,
)

KEY = "Ab3" * 12


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key sk-{KEY} works", f"sk-{KEY}"),
        (f"sk-ant-api03-{KEY}", KEY),
        (f"sk_live_{KEY}", KEY),
        ("id AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        (f"ghp_{KEY}", KEY),
        (f"glpat-{KEY}", KEY),
        ("xoxb-123456789012-abcdefgh", "abcdefgh"),
        (f"Authorization: Bearer {KEY}", KEY),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----", "MIIEow"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow, cut off", "MIIEow"),
        ("password=swordfish", "swordfish"),
        ("DB_PASSWORD: 'hunter2'", "hunter2"),
        ('{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
        ("GITHUB_TOKEN=abcd1234efgh", "abcd1234efgh"),
        ("The password is hunter2.", "hunter2"),
        ("The password is swordfish", "swordfish"),
        ("postgres://app:s3cr3t@db-07.internal/orders", "s3cr3t"),
    ],
)
def test_a_secret_is_replaced(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "prompt_tokens: 1234, max_tokens=4096",
        "The token is required.",
        "the password is expired",
        "token_id=50256",
        'api_key=os.environ["KEY"]',
        "password=get_password()",
        "task-force and risk-averse people",
        "commit 3fa9c1b of db-07.internal:5432",
        "the bearer of good news",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


PARTS = st.sampled_from(
    "sk- pk_ rk- whsec_ live_ AKIA ASIA AIDA AROA AIza ya29. ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxb- hf_ "
    "gsk_ npm_ pypi- eyJ PASSWORD pa\u017fsword passwd pwd passphrase \u017fecret api_ \u212aey acce\u017fs_ private- "
    "token Bearer ba\u017fic credent\u0131als -----BEGIN\u0020PRIVATE\u0020KEY----- = :\u0020 is\u0020 \u0020 . "
    "Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3".split(" ")
)


@given(st.lists(PARTS, max_size=8).map("".join))
def test_what_is_looked_for_first_stands_in_every_match(text: str) -> None:
    assert not SHAPES.search(text) or IN_KEYS.search(text) or any(part in text for part in IN_SHAPES)
    assert not NAMED.search(text.lower()) or any(part in text.casefold() for part in IN_NAMED)
    assert not AUTHORIZATION.search(text) or IN_AUTHORIZATION.search(text.casefold())
