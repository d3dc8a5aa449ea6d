import json
from pathlib import Path
from typing import Any

import pytest

from dominds.llm.complaints import complaint_of_payload, complaint_of_response, readable, retry_after_seconds
from dominds.llm.errors import error_of
from dominds.llm.json_text import dump
from dominds.llm.provider import (
    AccessDenied,
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    ImagesRefused,
    MalformedStream,
    OutputBudgetTooLarge,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RefusedForGood,
    RequestRefused,
    StaleReasoning,
    SystemRefused,
    TooLargeForRate,
)

WORDINGS = Path(__file__).parents[2] / "wordings"
KINDS = {
    kind.kind: kind
    for kind in (
        AccessDenied,
        AuthFailed,
        ForcingRefused,
        ImagesRefused,
        MalformedStream,
        Overloaded,
        ProviderTimeout,
        RateLimited,
        RefusedForGood,
        RequestRefused,
        StaleReasoning,
        SystemRefused,
        TooLargeForRate,
    )
}


def wordings(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((WORDINGS / f"{name}.json").read_text())
    return rows


def of_response(status: int, body: Any) -> ProviderError:
    """A body that is a text is what was sent, byte for byte, as Latin-1."""
    content = body.encode("latin-1") if isinstance(body, str) else body if isinstance(body, bytes) else dump(body)
    return error_of(complaint_of_response(status, {}, content), "a.host")


def openai_error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": "messages", "code": code}}


# Whole messages as the vendors send them, a refusal a line.
OVERFLOWS = [
    (row["source"], row["status"], row["body"], (row.get("prompt"), row.get("window"))) for row in wordings("overflows")
]


@pytest.mark.parametrize(("status", "body", "sizes"), [row[1:] for row in OVERFLOWS], ids=[row[0] for row in OVERFLOWS])
def test_each_vendors_words_for_too_long_are_known(
    status: int, body: Any, sizes: tuple[int | None, int | None]
) -> None:
    error = of_response(status, body)
    assert isinstance(error, ContextOverflow)
    assert (error.prompt_tokens, error.window) == sizes
    if status < 500:
        assert isinstance(error_of(complaint_of_payload(body), "a.host"), ContextOverflow), "also inside a stream"


NOT_OVERFLOWS = [(row["source"], row["status"], row["body"], KINDS[row["kind"]]) for row in wordings("others")]


@pytest.mark.parametrize(
    ("status", "body", "kind"), [row[1:] for row in NOT_OVERFLOWS], ids=[row[0] for row in NOT_OVERFLOWS]
)
def test_everything_else_has_its_own_kind(status: int, body: Any, kind: type[ProviderError]) -> None:
    assert type(of_response(status, body)) is kind


REASON = "the reason"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"detail": [{"loc": ["body", "tools", 0, "name"], "msg": REASON, "type": "missing"}]},
            f"tools.0.name: {REASON}",
        ),
        (
            {"object": "error", "message": {"detail": [{"loc": ["body", "n"], "msg": REASON}]}},
            f"n: {REASON}",
        ),  # Mistral
        ({"detail": {"error": REASON}}, REASON),
        ({"Message": REASON}, REASON),
        ({"error": [REASON, "another"]}, f"{REASON}; another"),
        ({"error": True, "reason": REASON}, REASON),
        ({"error": "invalid_token", "error_description": REASON}, REASON),
        ({"error_code": 336003, "error_msg": REASON}, REASON),
        ({"error": {"message": {"error": REASON}}}, REASON),
        ({"error": {"message": json.dumps({"error": {"message": REASON}})}}, REASON),
        (
            {"error": {"message": "Upstream", "metadata": {"raw": {"error": {"message": REASON}}}}},
            f"Upstream: {REASON}",
        ),
        ({"type": "about:blank", "title": REASON, "status": 400}, REASON),
        ({"errors": {"model": [REASON]}}, f"model: {REASON}"),
        ({"data": {"error": {"message": REASON}}}, REASON),
        ({"fault": {"faultstring": REASON, "detail": {"errorcode": "x"}}}, REASON),
        ([REASON], REASON),
        (None, "Bad Request"),
        ([], "Bad Request"),
        ({"error": {"error": {"error": {"error": {"error": {"error": {"error": {"error": REASON}}}}}}}}, "Bad Request"),
    ],
)
def test_the_words_of_a_refusal_are_found_wherever_they_stand(body: Any, words: str) -> None:
    assert complaint_of_response(400, {}, json.dumps(body).encode()).text == words


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please retry in 34.07s.", 34.07),
        ("Please try again in 7m12.5s.", 432.5),
        ("Please try again in 20ms.", 0.02),
        ("Try again in 5 seconds.", 5),
        ("Please wait 60 seconds before retrying.", 60),
        ("Please try again later.", None),
    ],
)
def test_the_wait_that_a_refusal_names_is_read(words: str, seconds: float | None) -> None:
    assert complaint_of_payload({"error": {"message": words}}).retry_after_seconds == seconds


# A whole message, and the window, prompt and output in it.
BUDGETS = [
    (row["source"], row["message"], (row["window"], row["prompt"], row["output"])) for row in wordings("budgets")
]


@pytest.mark.parametrize(("message", "numbers"), [row[1:] for row in BUDGETS], ids=[row[0] for row in BUDGETS])
def test_a_refusal_that_less_output_would_satisfy_names_its_numbers(
    message: str, numbers: tuple[int, int, int]
) -> None:
    error = of_response(400, openai_error(message))
    assert isinstance(error, OutputBudgetTooLarge)
    assert (error.window, error.prompt_tokens, error.output_tokens) == numbers
    assert error.room == numbers[0] - numbers[1]
    assert (copied := error.reword("other words")).room == error.room
    assert str(copied) == "other words"


def test_less_output_cannot_help_a_prompt_that_fills_the_window() -> None:
    message = BUDGETS[0][1].replace("24577", "32760")
    assert type(of_response(400, openai_error(message))) is ContextOverflow


# As they were seen; each of them with HTTP 400.
REFUSALS = [(row["source"], row["message"], KINDS[row["kind"]]) for row in wordings("refusals")]


@pytest.mark.parametrize(("message", "kind"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_refusal_says_what_would_have_to_be_otherwise(message: str, kind: type[ProviderError]) -> None:
    assert type(of_response(400, openai_error(message))) is kind


def test_encrypted_content_that_cannot_be_read_is_stale() -> None:
    assert type(of_response(400, openai_error("Anything.", "invalid_encrypted_content"))) is StaleReasoning


def test_the_field_that_a_server_names_counts_as_its_words() -> None:
    error = {"error": {"message": "Value 'named' is not supported.", "param": "tool_choice", "code": "invalid_value"}}
    assert type(of_response(400, error)) is ForcingRefused


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded),
        ({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, AuthFailed),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, RequestRefused),
        ({"error": {"code": 429, "message": "slow down"}}, RateLimited),
        ({"error": {"code": 502, "message": "upstream"}}, Overloaded),
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}, Overloaded),
        (
            {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "x"}}},
            RateLimited,
        ),
        ({"type": "error", "code": "context_length_exceeded", "message": "x"}, ContextOverflow),
        ({"error": "something unheard of"}, Overloaded),
        ("text", Overloaded),
        ({"error": None, "message": "x"}, Overloaded),
    ],
)
def test_errors_inside_a_stream_are_told_apart(payload: Any, kind: type[ProviderError]) -> None:
    assert type(error_of(complaint_of_payload(payload), "a.host")) is kind


def test_a_page_of_html_becomes_a_short_message() -> None:
    error = of_response(502, b"<html><head><title>502 Bad Gateway</title></head><body>" + b"<p>x</p>" * 999)
    assert str(error) == "a.host failed with HTTP 502: 502 Bad Gateway."


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, "refused the request with HTTP 400"),
        (401, "refused the request with HTTP 401"),
        (404, "refused the request with HTTP 404"),
        (408, "did not answer in time (HTTP 408)"),
        (413, "refused the request with HTTP 413"),
        (429, "refused the request with HTTP 429"),
        (500, "failed with HTTP 500"),
        (502, "failed with HTTP 502"),
        (503, "is overloaded or not available (HTTP 503)"),
        (504, "did not answer in time (HTTP 504)"),
        (520, "failed with HTTP 520"),
        (529, "is overloaded or not available (HTTP 529)"),
    ],
)
def test_a_provider_that_fails_has_refused_nothing(status: int, outcome: str) -> None:
    assert str(of_response(status, b'{"error": {"message": "x"}}')).startswith(f"a.host {outcome}: x.")


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "is overloaded or not available"),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "failed"),
        ({"type": "error", "error": {"type": "timeout_error", "message": "x"}}, "did not answer in time"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, "refused the request"),
    ],
)
def test_an_error_within_an_answer_is_worded_by_its_class(payload: Any, outcome: str) -> None:
    assert str(error_of(complaint_of_payload(payload), "a.host")).startswith(f"a.host {outcome}: x.")


def test_messages_carry_no_keys_and_no_control_characters() -> None:
    text = readable("Incorrect API key provided: sk-proj-abcdefgh1234.\r\n\x1b[31mSee Bearer abc.def\x00")
    assert "abcdefgh" not in text
    assert "abc.def" not in text
    assert text.isprintable()
    assert len(readable("x" * 10_000)) == 500


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "20"}, 0.25),
        ({"retry-after": "Fri, 21 Nov 2026 10:00:30 GMT", "date": "Fri, 21 Nov 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Fri, 21 Nov 2026 10:00:30 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("status", [408, 429, 500, 503, 504, 529])
def test_no_error_promises_another_try(status: int) -> None:
    """Only the driver knows whether there is one: the same words stand under the last."""
    error = error_of(complaint_of_response(status, {}, b"busy"), "a.host")
    assert error.retryable
    assert "again" not in str(error)
