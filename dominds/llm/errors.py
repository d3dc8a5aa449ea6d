"""What a provider's refusal means: structure first, wording second."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from dominds.llm.json_text import NotJson, parsed
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RequestRefused,
)

MAX_MESSAGE_CHARS = 500

RATE_LIMIT_CODES = {"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "resource_exhausted",
                    "throttling", "throttling.ratequota", "too_many_requests", "tokens"}  # fmt: skip
OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded",
                  "context_window_exceeded", "context_window_exceeded_error", "prompt_too_long", "request_too_large",
                  "string_above_max_length", "1261"}  # fmt: skip
AUTH_CODES = {"authentication_error", "permission_error", "invalid_api_key", "permission_denied", "unauthenticated"}
OVERLOAD_CODES = {"overloaded_error", "server_error", "api_error", "internal_server_error", "internal_error",
                  "unavailable", "engine_overloaded_error", "service_unavailable"}  # fmt: skip
REFUSAL_CODES = {"invalid_request_error", "not_found_error", "model_not_found", "insufficient_quota",
                 "billing_error", "invalid_argument", "content_filter", "invalid_prompt"}  # fmt: skip
TIMEOUT_CODES = {"timeout_error", "deadline_exceeded"}

# A quota of tokens per time is a rate limit even where it calls the request too large (OpenAI, Groq).
RATE_LIMIT_TEXT = re.compile(
    r"rate.?limit|too many requests|(tokens|requests|input tokens) per (second|minute|hour|day)|\b[TRI]P[MD]\b", re.I
)
QUOTA_TEXT = re.compile(r"insufficient.?(quota|balance)|exceeded your current quota|credit balance is too low", re.I)

# A table of vendors' words, each as it was seen; tests/dominds/llm/test_errors.py holds a whole message for every line.
OVERFLOW_TEXT = re.compile(
    "|".join(
        (
            r"maximum context length",  # OpenAI (older), vLLM, DeepSeek, OpenRouter, SGLang
            r"exceeds the context window|exceed(s)? context window",  # OpenAI Responses; llama-cpp-python
            r"prompt is too long",  # Anthropic
            r"exceed context limit",  # Anthropic, input plus max_tokens
            r"input token count .{0,40}exceeds the maximum",  # Google
            r"exceeds the available context size",  # llama.cpp
            r"context the overflows|context length of only|context overflow",  # LM Studio (its own spelling)
            r"exceeds the context length|exceeds maximum context",  # Ollama
            r"longer than the (maximum model length|model's context length)",  # vLLM; SGLang
            r"maximum prompt length",  # xAI
            r"prompt contains \d+ tokens",  # Mistral
            r"exceeded model token limit",  # Moonshot
            r"context window exceeds limit",  # MiniMax
            r"prompt exceeds max length|prompt 超长",  # Zhipu
            r"range of input length should be",  # Alibaba DashScope
            r"exceed max message tokens",  # Volcano Ark
            r"reduce the length of (the|your) (messages|prompt|input)",  # Cerebras, Groq
            r"input is too long|too many input tokens",  # Bedrock
            r"inputs. tokens \+ .max_new_tokens. must be",  # Text Generation Inference, Together
            r"total number of tokens in the prompt cannot exceed",  # Cohere
            r"prompt token count of \d+ exceeds",  # GitHub Copilot
        )
    ),
    re.I,
)

ADVICE: dict[type[ProviderError], str] = {
    AuthFailed: "Check the key that apiKeyEnvVar names for this provider.",
    ContextOverflow: "The request has to become shorter, or the model's window larger.",
    RateLimited: "It is tried again after a pause.",
    Overloaded: "It is tried again after a pause.",
    ProviderTimeout: "It is tried again after a pause.",
    RequestRefused: "Check the model and its settings in llm.yaml.",
}
SECRET = re.compile(r"\b(sk|key|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.I)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a provider said went wrong. ``codes`` are its machine-readable words in lower case."""

    text: str
    codes: frozenset[str] = frozenset()
    status: int | None = None
    retry_after_seconds: float | None = None


def error_of(complaint: Complaint, provider: str) -> ProviderError:
    """The one error of the family that fits; ``provider`` is how a person knows the server."""
    kind = kind_of(complaint)
    said = readable(complaint.text) or "no reason given"
    status = f" with HTTP {complaint.status}" if complaint.status is not None else ""
    message = f"{provider} refused the request{status}: {said.rstrip('.')}. {ADVICE[kind]}"
    return kind(message, retry_after_seconds=complaint.retry_after_seconds)


def kind_of(complaint: Complaint) -> type[ProviderError]:
    """Quota words come before length words, because "request too large" occurs in both."""
    status, text = complaint.status, complaint.text
    if status in (401, 403) or complaint.codes & AUTH_CODES:
        return AuthFailed
    if complaint.codes & {"insufficient_quota", "billing_error"} or status == 402 or QUOTA_TEXT.search(text):
        return RequestRefused  # waiting does not help: somebody has to pay
    if status == 429 or complaint.codes & RATE_LIMIT_CODES or RATE_LIMIT_TEXT.search(text):
        return RateLimited
    if status == 413 or complaint.codes & OVERFLOW_CODES or OVERFLOW_TEXT.search(text):
        return ContextOverflow
    return _kind_of_status(status) or _kind_of_codes(complaint.codes) or Overloaded


def _kind_of_status(status: int | None) -> type[ProviderError] | None:
    if status is None or not 300 <= status < 600:
        return None
    if status in (408, 504):
        return ProviderTimeout
    if status >= 500 or status in (409, 425):
        return Overloaded
    return RequestRefused


def _kind_of_codes(codes: frozenset[str]) -> type[ProviderError] | None:
    for known, kind in (
        (OVERLOAD_CODES, Overloaded),
        (REFUSAL_CODES, RequestRefused),
        (TIMEOUT_CODES, ProviderTimeout),
    ):
        if codes & known:
            return kind
    return None


def complaint_of_response(status: int, headers: Mapping[str, str], body: bytes) -> Complaint:
    """Read an HTTP error answer, whatever its body is."""
    wait = retry_after_seconds(headers)
    try:
        found = parsed(body)
    except NotJson:
        text = text_of_page(body) or _phrase(status)
        return Complaint(text, status=status, retry_after_seconds=wait)
    complaint = complaint_of_payload(found)
    return Complaint(complaint.text or _phrase(status), complaint.codes, status, wait or complaint.retry_after_seconds)


def complaint_of_payload(payload: Any) -> Complaint:
    """Read an error object: of an HTTP body or of an event inside a stream that had begun with HTTP 200."""
    if isinstance(payload, list) and payload:  # Google's compatible endpoint wraps it in a list
        payload = payload[0]
    if not isinstance(payload, Mapping):
        return Complaint(str(payload))
    inner = payload.get("error") or payload.get("response") or payload
    if isinstance(inner, Mapping) and isinstance(inner.get("error"), Mapping | str):
        inner = inner["error"]
    if not isinstance(inner, Mapping):
        return Complaint(str(inner), _codes_of(payload), _status_of(payload))
    codes = _codes_of(inner) | (_codes_of(payload) - {"error"})
    text = _text_of(inner) or _text_of(payload)
    return Complaint(text, codes, _status_of(inner) or _status_of(payload))


def _codes_of(found: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        str(value).lower()
        for value in (found.get("code"), found.get("type"), found.get("status"))
        if isinstance(value, str | int) and not isinstance(value, bool)
    )


def _status_of(found: Mapping[str, Any]) -> int | None:
    for value in (found.get("code"), found.get("status"), found.get("status_code")):
        number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 3 else value
        if isinstance(number, int) and 400 <= number < 600:
            return number
    return None


def _text_of(found: Mapping[str, Any]) -> str:
    texts: Iterator[str] = (
        value for key in ("message", "detail", "msg", "error") if isinstance(value := found.get(key), str) and value
    )
    return next(texts, "")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The wait a server asks for, as ``retry-after-ms``, seconds or a date; None when absent or senseless."""
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        wait = float(milliseconds) / 1000 if milliseconds else float(value)
    except ValueError:
        wait = _seconds_until(value, headers.get("date", ""))
    return wait if 0 < wait < 7 * 24 * 3600 else None


def _seconds_until(value: str, now: str) -> float:
    try:
        return (parsedate_to_datetime(value) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def text_of_page(body: bytes) -> str:
    """The words of an HTML or plain error page: its title where it has one."""
    text = body[:20_000].decode("utf-8", "replace")
    title = re.search(r"<title[^>]*>([^<]{1,200})</title>", text, re.I)
    return title.group(1) if title else re.sub(r"<[^>]{0,1000}>", " ", text)


def readable(text: str) -> str:
    """One line without control characters, keys or more than ``MAX_MESSAGE_CHARS`` characters."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 8 * MAX_MESSAGE_CHARS])
    line = SECRET.sub("[key]", " ".join(printable.split()))
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
