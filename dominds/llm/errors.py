"""Classifier of providers' refusals: by structure first, by wording second."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from dominds.llm.json_text import NotJson, parsed
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    OutputAboveMaximum,
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

MAX_MESSAGE_CHARS = 500
READ_CHARS = 4000  # of a refusal: some quote the whole request

RATE_LIMIT_CODES = {
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limit_reached_error",
    "resource_exhausted",
    "throttling",
    "throttling.ratequota",
    "too_many_requests",
    "tokens",
}
OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "context_window_exceeded",
    "context_window_exceeded_error",
    "prompt_too_long",
    "request_too_large",
    "1261",
}
AUTH_CODES = {"authentication_error", "permission_error", "invalid_api_key", "permission_denied", "unauthenticated"}
OVERLOAD_CODES = {
    "overloaded_error",
    "server_error",
    "api_error",
    "internal_server_error",
    "internal_error",
    "unavailable",
    "engine_overloaded_error",
    "service_unavailable",
}
BUSY_CODES = {"overloaded_error", "unavailable", "engine_overloaded_error", "service_unavailable"}
BUSY_STATUSES = (409, 425, 503, 529)
REFUSAL_CODES = {"invalid_request_error", "invalid_argument", "content_filter", "invalid_prompt"}
FINAL_CODES = {
    "insufficient_quota",
    "billing_error",
    "model_not_found",
    "not_found_error",
    "not_found",
    "model_not_available",
    "model_deprecated",
    "account_deactivated",
}
STALE_CODES = {"invalid_encrypted_content"}
TIMEOUT_CODES = {"timeout_error", "deadline_exceeded"}

# A quota of tokens per time is a rate limit even where it calls the request too large (OpenAI, Groq).
RATE_LIMIT_TEXT = re.compile(
    r"rate.?limit|too many requests|(tokens|requests|input tokens) per (second|minute|hour|day)|\b[TRI]P[MD]\b", re.I
)
# The same, of this one request: no wait makes it smaller (OpenAI, Groq).
RATE_SIZE_TEXT = re.compile(r"request too large|requested tokens exceed|must be reduced|reduce your message size", re.I)
# A field of the request that is longer than it may be.
FIELD_CODES = {"string_above_max_length", "array_above_max_length", "string_too_long"}
FIELD_TEXT = re.compile(
    r"(string|array) too long|(string|list|array) should have at most|longer than the maximum length", re.I
)
# Of these fields only a shorter conversation makes a shorter one.
CONVERSATION = re.compile(
    r"^(messages|input|contents|prompt|system|instructions)"
    r"(\[\d+\]|\.\d+)?(\.(content|parts|output|text|input_text)(\[\d+\]|\.\d+)?(\.\w*text)?)?$"
)
FIELD_NAME = re.compile(r"[Ii]nvalid [`'\"]([\w.\[\]]+)[`'\"]|^([a-z_]+(?:[.\[]\w+\]?)+): ")
IMAGE_TEXT = re.compile(r"\bimages?\b.{0,80}(exceed|too large|too big|maximum|larger)|too much media", re.I | re.S)
# An answer that is longer than the model ever gives; the number is its greatest.
MAXIMUM_TEXTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        r"max\w*tokens\w* is too large.{0,80}at most (?P<most>\d[\d,]*)",  # OpenAI
        r"`?max_tokens`?: \d+ > (?P<most>\d[\d,]*), which is the maximum",  # Anthropic
        r"max_(output|completion)_tokens.{0,60}above maximum value.{0,60}<= (?P<most>\d[\d,]*)",  # OpenAI Responses
        r"max_(completion_)?tokens`? must be less than or equal to `?(?P<most>\d[\d,]*)",  # Groq
        r"valid range of max_tokens is \[\d+, ?(?P<most>\d[\d,]*)\]",  # DeepSeek
        r"range of max_tokens should be \[\d+, ?(?P<most>\d[\d,]*)\]",  # Alibaba
        r"maximum tokens you requested exceeds the model limit of (?P<most>\d[\d,]*)",  # Bedrock
        # Google
        r"maxOutputTokens value of \d+ but the supported range is from 1 \(inclusive\) to (?P<beyond>\d[\d,]*) \(excl",
    )
)
# What stays as it is until somebody pays, or chooses another model.
FINAL_TEXT = re.compile(
    r"\bmodel\b.{0,120}(does not exist|not found|has been (retired|deprecated|shut down|removed)|is no longer available"
    r"|decommissioned|reached its end of life)|(account|organization) (is|has been) (disabled|deactivated|suspended)",
    re.I | re.S,
)
FORCING_TEXT = re.compile(r"\btool[_ ]choice\b", re.I)
FORCING_WRONG = re.compile(  # beside a mention of it
    r"not support|unsupported|incompatible|not compatible|invalid|not allowed|may not|cannot"
    r"|(only|must be) .{0,20}auto",
    re.I,
)
SYSTEM_TEXT = re.compile(
    "|".join(
        (
            r"system message must be at the beginning",  # templates of Qwen 3.5 and later, on any local server
            r"role '?system'? is not supported on this model",  # Anthropic before Opus 4.8
            r"messages\.\d+: .{0,40}system.{0,40}must (follow|precede)",  # Anthropic, of their places
        )
    ),
    re.I,
)
STALE_TEXT = re.compile(
    "|".join(
        (
            # Anthropic: tampered with, or bound to another conversation
            r"invalid `?signature`? in `?thinking`? block",
            r"bound to a different (conversation|account)",
            r"expected `?thinking`? or `?redacted_thinking`?",  # Anthropic, with a budget
            r"blocks in the latest assistant message cannot be modified",
            r"without its required (following item|'?reasoning'? item|.{0,20}reasoning)",  # OpenAI Responses
            r"encrypted content .{0,80}could not be (verified|decrypted)",
            r"thought.?signature",  # Google: missing, or not valid
            # DeepSeek, in both dresses; Kimi
            r"(reasoning_content|content\[\]\.thinking).{0,60}(must be passed back|is missing)",
        )
    ),
    re.I | re.S,
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
            r"tokens to keep from the initial prompt is greater than the context length",  # LM Studio
            r"cannot truncate prompt with n_keep",  # LM Studio
            r"max_tokens must be at least 1, got -\d",  # vLLM: the prompt alone is longer than the window
            r"exceeded max context length by",  # Ollama's cloud
            r"input length \d+ exceeds the maximum length",  # vLLM of some gateways
            r"exceeds max context window",  # gateways
        )
    ),
    re.I,
)

NUMBER = r"(?P<{}>\d[\d,]*)"
WINDOW, PROMPT, OUTPUT = (NUMBER.format(name) for name in ("window", "prompt", "output"))
# Refusals that name the output beside the prompt.
BUDGET_TEXTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        # vLLM
        rf"maximum context length is {WINDOW} tokens.{{0,60}}requested {OUTPUT} output tokens"
        rf".{{0,60}}at least {PROMPT} input",
        # OpenAI (older), DeepSeek, vLLM (older)
        rf"maximum context length is {WINDOW} tokens.{{0,80}}\({PROMPT} in (?:the|your) (?:messages|prompt)"
        rf".{{0,60}}?{OUTPUT} in the completion",
        # SGLang
        rf"maximum context length of {WINDOW} tokens.{{0,80}}: {PROMPT} tokens from the input"
        rf".{{0,30}} and {OUTPUT} tokens",
        # Anthropic up to 4.1
        rf"`max_tokens` exceed context limit: {PROMPT} \+ {OUTPUT} > {WINDOW}",
        # Text Generation Inference
        rf"`max_new_tokens` must be <= {WINDOW}\. Given: {PROMPT} `inputs` tokens and {OUTPUT} `max_new_tokens`",
    )
)
LEAST_ROOM = 16  # tokens of output that are worth another try

# Whether a call is tried again is the driver's to say: it alone knows how often it was.
ADVICE: dict[type[ProviderError], str] = {
    AuthFailed: "Check the provider's key: the one that was typed under Models, or the variable that apiKeyEnvVar "
    "names.",
    TooLargeForRate: "The request has to become shorter, or the account's quota larger.",
    OutputAboveMaximum: "Set output_length of the model in llm.yaml to what it allows.",
    ContextOverflow: "The request has to become shorter, or the model's window larger.",
    OutputBudgetTooLarge: "Less output has to be asked for, or the request become shorter.",
    RefusedForGood: "Check the account, or choose another model.",
    ForcingRefused: "Set supports_tool_choice to false for this model in llm.yaml.",
    SystemRefused: "It is sent again with these as the user's.",
    StaleReasoning: "It is sent again without what the model thought before.",
    RequestRefused: "Check the model under Models, or its settings in llm.yaml.",
}
SECRET = re.compile(r"\b(sk|key|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.I)


@dataclass(frozen=True, slots=True)
class Complaint:
    """A provider's complaint. ``codes`` are its machine-readable words in lower case, and ``param`` is the field
    of the request that it names.
    """

    text: str
    codes: frozenset[str] = frozenset()
    status: int | None = None
    retry_after_seconds: float | None = None
    param: str = ""
    has_files: bool = False

    @property
    def field(self) -> str:
        """Return the field of the request that it is about, as far as it says so."""
        found = FIELD_NAME.search(self.text[:READ_CHARS])
        return self.param or (next(filter(None, found.groups())) if found else "")


def error_of(complaint: Complaint, provider: str) -> ProviderError:
    """Return the one error of the family that fits; ``provider`` is how a person knows the server."""
    kind = kind_of(complaint)
    words = readable(complaint.text) or "no reason given"
    budget = _budget_in(complaint.text) if kind is ContextOverflow else None
    advice = ADVICE.get(OutputBudgetTooLarge if budget else kind, "")
    if kind is RequestRefused and _is_long_field(complaint) and complaint.field:
        advice = f"Shorten what stands in the field {complaint.field}."
    message = f"{provider} {_outcome(kind, complaint)}: {words.rstrip('.')}. {advice}".rstrip()
    if kind is OutputAboveMaximum:
        return kind(message, retry_after_seconds=complaint.retry_after_seconds, most=_maximum_in(complaint.text))
    if budget:
        return OutputBudgetTooLarge(message, retry_after_seconds=complaint.retry_after_seconds, **budget)
    return kind(message, retry_after_seconds=complaint.retry_after_seconds)


def _outcome(kind: type[ProviderError], complaint: Complaint) -> str:
    """Say what the provider did with the request: it refuses some, and fails at others."""
    status = complaint.status
    if kind is ProviderTimeout:
        return "did not answer in time" + (f" (HTTP {status})" if status else "")
    if kind is Overloaded:
        if status in BUSY_STATUSES or complaint.codes & BUSY_CODES:
            return "is overloaded or not available" + (f" (HTTP {status})" if status else "")
        return "failed" + (f" with HTTP {status}" if status else "")
    return "refused the request" + (f" with HTTP {status}" if status else "")


def _budget_in(text: str) -> dict[str, int] | None:
    """Return the numbers of a refusal that less output would satisfy."""
    result = next((match for pattern in BUDGET_TEXTS if (match := pattern.search(text[:READ_CHARS]))), None)
    if result is None:
        return None
    window, prompt, output = (int(result[name].replace(",", "")) for name in ("window", "prompt", "output"))
    if output == 0 or window - prompt < LEAST_ROOM:
        return None
    return {"window": window, "prompt_tokens": prompt, "output_tokens": output}


def kind_of(complaint: Complaint) -> type[ProviderError]:
    """Classify a complaint. Quota words come before length words, because "request too large" occurs in both."""
    status, text = complaint.status, complaint.text[:READ_CHARS]
    if status in (401, 403) or complaint.codes & AUTH_CODES:
        return AuthFailed
    if complaint.codes & {"insufficient_quota", "billing_error"} or status == 402 or QUOTA_TEXT.search(text):
        return RefusedForGood  # waiting does not help: somebody has to pay
    is_rate = status == 429 or complaint.codes & RATE_LIMIT_CODES or RATE_LIMIT_TEXT.search(text)
    if is_rate and RATE_SIZE_TEXT.search(text):
        return TooLargeForRate
    if is_rate:
        return RateLimited
    if _maximum_in(text) is not None:
        return OutputAboveMaximum
    if _is_long_field(complaint):
        return ContextOverflow if CONVERSATION.match(complaint.field) else RequestRefused
    is_image = IMAGE_TEXT.search(text) or (status == 413 and complaint.has_files)
    if is_image and not OVERFLOW_TEXT.search(text):
        return RequestRefused
    if status == 413 or complaint.codes & OVERFLOW_CODES or OVERFLOW_TEXT.search(text):
        return ContextOverflow
    return _refusal(complaint) or _kind_of_status(status) or _kind_of_codes(complaint.codes) or Overloaded


def _is_long_field(complaint: Complaint) -> bool:
    return bool(complaint.codes & FIELD_CODES or FIELD_TEXT.search(complaint.text[:READ_CHARS]))


def _maximum_in(text: str) -> int | None:
    found = next((match for pattern in MAXIMUM_TEXTS if (match := pattern.search(text[:READ_CHARS]))), None)
    if found is None:
        return None
    numbers = found.groupdict()
    return (
        int(numbers["beyond"].replace(",", "")) - 1 if numbers.get("beyond") else int(numbers["most"].replace(",", ""))
    )


def _refusal(complaint: Complaint) -> type[ProviderError] | None:
    """Recognise a refusal that says what would have to change. Servers report some of them as their own failure."""
    text, codes = complaint.text[:READ_CHARS], complaint.codes
    if SYSTEM_TEXT.search(text):
        return SystemRefused
    if codes & STALE_CODES or STALE_TEXT.search(text):
        return StaleReasoning
    if FORCING_TEXT.search(f"{complaint.param} {text}") and FORCING_WRONG.search(text):
        return ForcingRefused
    if complaint.status in (404, 410) or codes & FINAL_CODES or FINAL_TEXT.search(text):
        return RefusedForGood
    return None


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


def complaint_of_response(
    status: int, headers: Mapping[str, str], body: bytes, *, has_files: bool = False
) -> Complaint:
    """Read an HTTP error answer, whatever its body is."""
    wait = retry_after_seconds(headers)
    try:
        result = parsed(body)
    except NotJson:
        text = text_of_page(body) or _phrase(status)
        return Complaint(text, status=status, retry_after_seconds=wait, has_files=has_files)
    complaint = complaint_of_payload(result)
    return replace(
        complaint,
        text=complaint.text or _phrase(status),
        status=status,
        has_files=has_files,
        retry_after_seconds=wait or complaint.retry_after_seconds,
    )


def complaint_of_payload(payload: Any) -> Complaint:
    """Read an error object: of an HTTP body or of an event inside a stream that had begun with HTTP 200."""
    if isinstance(payload, list) and payload:  # Google's compatible endpoint wraps it in a list
        payload = payload[0]
    if not isinstance(payload, Mapping):
        return Complaint(str(payload))
    inner = payload.get("error") or payload.get("response") or payload.get("base_resp") or payload  # the last: MiniMax
    if isinstance(inner, Mapping) and isinstance(inner.get("error"), Mapping | str):
        inner = inner["error"]
    if not isinstance(inner, Mapping):
        return Complaint(str(inner), _codes_of(payload), _status_of(payload))
    codes = _codes_of(inner) | (_codes_of(payload) - {"error"})
    text = _text_of(inner) or _text_of(payload)
    param = inner.get("param")
    return Complaint(
        text, codes, _status_of(inner) or _status_of(payload), param=param if isinstance(param, str) else ""
    )


def _codes_of(given: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        str(value).lower()
        for value in (given.get("code"), given.get("type"), given.get("status"))
        if isinstance(value, str | int) and not isinstance(value, bool)
    )


def _status_of(given: Mapping[str, Any]) -> int | None:
    for value in (given.get("code"), given.get("status"), given.get("status_code")):
        number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 3 else value
        if isinstance(number, int) and 400 <= number < 600:
            return number
    return None


def _text_of(given: Mapping[str, Any]) -> str:
    texts: Iterator[str] = (
        value
        for key in ("message", "detail", "msg", "status_msg", "error")
        if isinstance(value := given.get(key), str) and value
    )
    return next(texts, "")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the wait a server asks for, as ``retry-after-ms``, seconds or a date; None when absent or senseless."""
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
    """Return the words of an HTML or plain error page: its title where it has one."""
    text = body[:20_000].decode("utf-8", "replace")
    title = re.search(r"<title[^>]*>([^<]{1,200})</title>", text, re.I)
    return title.group(1) if title else re.sub(r"<[^>]{0,1000}>", " ", text)


def readable(text: str) -> str:
    """Return one line without control characters or keys, of at most ``MAX_MESSAGE_CHARS`` characters."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 8 * MAX_MESSAGE_CHARS])
    line = SECRET.sub("[key]", " ".join(printable.split()))
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
