"""No key, password or authorization value reaches a log line, whatever road it takes."""

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds import logs, redaction
from dominds.redaction import IN_LABELLED, IN_SHAPED, MASK, redact

CANARY = "Zq7canary9sentinel"


@pytest.fixture(autouse=True)
def forget_secrets() -> Iterator[None]:
    before = set(redaction._remembered)
    yield
    redaction._remembered.clear()
    redaction._remembered.update(before)


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization: {CANARY}",
        f"{{'Authorization': 'Bearer {CANARY}', 'Accept': '*/*'}}",
        f'{{"authorization": "Basic {CANARY}"}}',
        f"(b'authorization', b'Bearer {CANARY}')",
        f"x-api-key: {CANARY}",
        f"api_key={CANARY}&model=x",
        f'"apiKey": "{CANARY}"',
        f"Incorrect API key provided: sk-{CANARY}",
        f"GET /d/1/q4h/by-mail/{CANARY}:x/",
        f"GET /shared/{'0f' * 16}.{CANARY}/images/1/",
        f"GET /login/callback/?code={CANARY}&state=x",
        f"redis://:{CANARY}@127.0.0.1:6379/0",
        f"postgres://ada:{CANARY}@db/talks",
    ],
)
def test_what_is_labelled_or_shaped_as_a_secret_is_masked(text: str) -> None:
    assert CANARY not in redact(text)
    assert MASK in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "prompt tokens: 120000",
        "the api key is missing",
        "see https://example.org/a:b",
        "risk-assessment of the sky",
        "see /mnt/shared/quarterly-report.xlsx",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


def test_a_remembered_secret_is_masked_everywhere() -> None:
    redaction.remember(CANARY)
    assert redact(f"in the middle{CANARY}of things") == f"in the middle{MASK}of things"


def test_short_values_are_not_remembered_since_they_would_hit_words() -> None:
    redaction.remember("test")
    assert redact("a test") == "a test"


def test_secrets_of_the_environment_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", CANARY)
    monkeypatch.setenv("OTHER_URL", "postgres://ada:url-password-canary@db/x")
    redaction.remember_environment()
    assert redact(f"{CANARY} url-password-canary db") == f"{MASK} {MASK} db"


PARTS = st.sampled_from(
    "proxy- AUTHORIZATION author\u0131zation Bearer x- api_ \u212aey apikey x-goog-api-key sk- pk_ rk- xai_ gsk- dmk_ "
    "ghp- hf_ "
    'AIza : = \u0020 " Zq7canary9sentinel Zq7canary9sentinelZq7canary9sentinel'.split(" ")
)


@given(st.lists(PARTS, max_size=8).map("".join))
def test_what_is_looked_for_first_stands_in_every_match(text: str) -> None:
    assert not redaction._LABELLED.search(text) or any(part in text.casefold() for part in IN_LABELLED)
    assert not redaction._SHAPED.search(text) or any(part in text for part in IN_SHAPED)


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.fixture(params=["json", "console"])
def logged(request: pytest.FixtureRequest) -> Iterator[tuple[logging.Logger, StringIO]]:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.json_formatter() if request.param == "json" else logs.console_formatter())
    logger = logging.getLogger(f"test.{request.param}")
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, stream
    logger.removeHandler(handler)


def test_message_arguments_and_traceback_are_masked(logged: tuple[logging.Logger, StringIO]) -> None:
    logger, stream = logged
    try:
        raise ValueError(f"api_key={CANARY}")
    except ValueError:
        logger.exception("call with Authorization: Bearer %s failed", CANARY)
    assert "failed" in stream.getvalue()
    assert "ValueError" in stream.getvalue()
    assert CANARY not in stream.getvalue()


def test_what_a_failed_function_held_is_not_logged(logged: tuple[logging.Logger, StringIO]) -> None:
    logger, stream = logged

    def read(answer: str) -> int:
        return len(answer) // 0

    try:
        read("said in confidence".upper())
    except ZeroDivisionError:
        logger.exception("read failed")
    assert "ZeroDivisionError" in stream.getvalue()
    assert "SAID IN" not in stream.getvalue()


def test_a_log_line_cannot_forge_another_or_colour_the_terminal(logged: tuple[logging.Logger, StringIO]) -> None:
    logger, stream = logged
    logger.warning("title: %s", "\x1b[31mred\r\x07")
    assert not {"\x1b", "\r", "\x07"} & set(stream.getvalue())


def test_json_lines_stay_json_after_masking() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, 'Authorization: Bearer "%s"', (CANARY,), None)
    line = logs.json_formatter().format(record)
    assert CANARY not in line
    assert json.loads(line)["level"] == "info"
