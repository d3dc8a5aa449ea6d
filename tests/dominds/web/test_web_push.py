"""Web Push by the letters of its RFCs."""

import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from dominds.web import web_push
from tests.doubles.push import Browser, bytes_of, text_of

# RFC 8291, section 5 and appendix A.
TEXT = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
RECEIVER_POINT = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
SECRET, SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_rfcs_example_is_encrypted_as_it_says() -> None:
    sender = web_push.read_key(SENDER)
    body = web_push.encrypt(TEXT, bytes_of(RECEIVER_POINT), bytes_of(SECRET), sender, bytes_of(SALT))
    assert text_of(body) == BODY
    browser = Browser("", "", web_push.read_key(RECEIVER), bytes_of(SECRET))
    assert (text_of(browser.point), browser.decrypt(body)) == (RECEIVER_POINT, TEXT)


def test_no_two_bodies_are_alike_and_all_fit() -> None:
    browser, longest = Browser("", ""), b"\xff" * web_push.MOST_BYTES
    bodies = {web_push.encrypt(longest, browser.point, browser.secret) for _ in range(2)}
    assert {browser.decrypt(body) for body in bodies} == {longest}
    assert [len(body) for body in bodies] == [4_096, 4_096]
    with pytest.raises(ValueError, match="3,993 bytes at most"):
        web_push.encrypt(longest + b"x", browser.point, browser.secret)


def test_a_token_is_for_one_service_and_half_a_day() -> None:
    key, now = web_push.read_key(web_push.new_key()), int(time.time())
    header = web_push.authorization(key, "https://push.example:444/a?b", "mailto:ops@example.org", now)
    assert header.startswith("vapid t=")
    token, _, point = header.removeprefix("vapid t=").partition(", k=")
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(point))
    assert jwt.decode(token, public, ["ES256"], audience="https://push.example:444") == {
        "aud": "https://push.example:444",
        "exp": now + 12 * 3600,
        "sub": "mailto:ops@example.org",
    }


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        (b"", b""),
        (b"\4" + b"\1" * 64, b"s" * 16),
        (bytes_of(RECEIVER_POINT), b"s" * 15),
        (b"\2" + b"\1" * 32, b"s" * 16),
    ],
)
def test_keys_that_are_none_are_refused(key: bytes, secret: bytes) -> None:
    with pytest.raises(ValueError):
        web_push.check_browser_keys(key, secret)
    with pytest.raises(ValueError):
        web_push.from_text("é")
