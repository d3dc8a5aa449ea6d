"""Classifier of providers' refusals: by structure first, by wording second."""

import re
from collections.abc import Iterable

from dominds.llm.complaints import READ_CHARS, Complaint, asked_wait, readable
from dominds.llm.provider import (
    AccessDenied,
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    ImagesRefused,
    MalformedStream,
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
from dominds.llm.refusal_words import (
    ACCESS_CODES,
    AUTH_CODES,
    AUTH_TEXT,
    BUDGET_TEXTS,
    BUSY_CODES,
    BUSY_STATUSES,
    CONVERSATION,
    FIELD_CODES,
    FIELD_TEXT,
    FINAL_CODES,
    FINAL_TEXT,
    FORCING_TEXT,
    FORCING_WRONG,
    GARBLED_CODES,
    GARBLED_TEXT,
    IMAGE_TEXT,
    MAXIMUM_TEXTS,
    OVERFLOW_CODES,
    OVERFLOW_TEXT,
    OVERLOAD_CODES,
    QUOTA_TEXT,
    RATE_LIMIT_CODES,
    RATE_LIMIT_TEXT,
    RATE_SIZE_TEXT,
    REFUSAL_CODES,
    SIGHT_TEXT,
    SIZE_TEXTS,
    STALE_CODES,
    STALE_TEXT,
    SYSTEM_TEXT,
    TEMPLATE_TEXT,
    TIMEOUT_CODES,
    UNLOADED_TEXT,
)

LEAST_ROOM = 16  # tokens of output that are worth another try

# No advice says whether the call is tried again: only the driver knows, since it counts the tries.
ADVICE: dict[type[ProviderError], str] = {
    AuthFailed: "Check the provider's key: the one typed under Models, or that of the server's configuration.",
    AccessDenied: "The key may not use this: give it access, or choose another model.",
    TooLargeForRate: "The request has to become shorter, or the account's quota larger.",
    OutputAboveMaximum: "The output_length of the model in the server's configuration is to be what it allows.",
    ContextOverflow: "The request has to become shorter, or the model's window larger.",
    OutputBudgetTooLarge: "Less output has to be asked for, or the request become shorter.",
    RefusedForGood: "Check the account, or choose another model.",
    ForcingRefused: "Choose another model, or set supports_tool_choice to false for it in the server's configuration.",
    SystemRefused: "It is sent again with these as the user's.",
    ImagesRefused: "Choose a model that sees images, or go on without them.",
    StaleReasoning: "It is sent again without what the model thought before.",
    RequestRefused: "Check the model under Models, or in the server's configuration.",
}


def error_of(complaint: Complaint, provider: str) -> ProviderError:
    """Return the ``ProviderError`` for a complaint. ``provider`` is the name by which people know the server."""
    error = _error_of(complaint, provider)
    error.status = complaint.status
    return error


def _error_of(complaint: Complaint, provider: str) -> ProviderError:
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
    if kind is ContextOverflow:
        return ContextOverflow(message, retry_after_seconds=complaint.retry_after_seconds, **_sizes_in(complaint.text))
    return kind(message, retry_after_seconds=complaint.retry_after_seconds)


def _outcome(kind: type[ProviderError], complaint: Complaint) -> str:
    """Say what became of the request: the provider refuses some requests and fails at others."""
    status = complaint.status
    if kind is ProviderTimeout:
        return "did not answer in time" + (f" (HTTP {status})" if status else "")
    if kind is MalformedStream:
        return "could not read what its model wrote" + (f" (HTTP {status})" if status else "")
    if kind is Overloaded:
        if status in BUSY_STATUSES or complaint.codes & BUSY_CODES:
            return "is overloaded or not available" + (f" (HTTP {status})" if status else "")
        return "failed" + (f" with HTTP {status}" if status else "")
    return "refused the request" + (f" with HTTP {status}" if status else "")


def _budget_in(text: str) -> dict[str, int] | None:
    """Return the numbers in a refusal if a request for less output would satisfy it, else None."""
    if not (numbers := _numbers_in(text, BUDGET_TEXTS)):
        return None
    window, output = numbers["window"], numbers["output"]
    prompt = numbers["prompt"] if "prompt" in numbers else numbers["total"] - output
    if output == 0 or window - prompt < LEAST_ROOM:
        return None
    return {"window": window, "prompt_tokens": prompt, "output_tokens": output}


def _sizes_in(text: str) -> dict[str, int | None]:
    """Return the tokens of a prompt that is too long, and of the window; None where the refusal does not tell them."""
    numbers = _numbers_in(text, SIZE_TEXTS)
    return {"window": numbers.get("window"), "prompt_tokens": numbers.get("prompt")}


def _numbers_in(text: str, patterns: Iterable[re.Pattern[str]]) -> dict[str, int]:
    """Return the named numbers of the first pattern that matches; none if no pattern does."""
    for pattern in patterns:
        if match := pattern.search(text[:READ_CHARS]):
            return {name: int(number.replace(",", "")) for name, number in match.groupdict().items()}
    return {}


def kind_of(complaint: Complaint) -> type[ProviderError]:
    """Classify a complaint. Quotas are tested before lengths, since "request too large" occurs in both."""
    status, text = complaint.status, complaint.text[:READ_CHARS]
    if status == 403 or complaint.codes & ACCESS_CODES:
        return AccessDenied
    if status == 401 or complaint.codes & AUTH_CODES or AUTH_TEXT.search(text):
        return AuthFailed
    is_unpaid = QUOTA_TEXT.search(text) and not asked_wait(text)  # Google words its quotas per minute so, with a wait
    if complaint.codes & {"insufficient_quota", "billing_error"} or status == 402 or is_unpaid:
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
    """Return the greatest output of a model in tokens, as a refusal tells it, or None."""
    numbers = _numbers_in(text, MAXIMUM_TEXTS)
    return numbers["beyond"] - 1 if "beyond" in numbers else numbers.get("most")


def _refusal(complaint: Complaint) -> type[ProviderError] | None:
    """Return the class of a refusal that its words or codes tell, or None.

    They are read before the status, since servers send refusals with the status of failures, and the reverse.
    """
    text, codes = complaint.text[:READ_CHARS], complaint.codes
    if SIGHT_TEXT.search(text):
        return ImagesRefused
    if codes & GARBLED_CODES or GARBLED_TEXT.search(text):
        return MalformedStream
    if UNLOADED_TEXT.search(text):
        return Overloaded
    if SYSTEM_TEXT.search(text):
        return SystemRefused
    if codes & STALE_CODES or STALE_TEXT.search(text):
        return StaleReasoning
    if FORCING_TEXT.search(f"{complaint.param} {text}") and FORCING_WRONG.search(text):
        return ForcingRefused
    if complaint.status in (404, 410) or codes & FINAL_CODES or FINAL_TEXT.search(text):
        return RefusedForGood
    return RequestRefused if TEMPLATE_TEXT.search(text) else None


def _kind_of_status(status: int | None) -> type[ProviderError] | None:
    if status is None or not 300 <= status < 600:
        return None
    if status in (408, 504):
        return ProviderTimeout
    if status >= 500 or status in BUSY_STATUSES:
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
