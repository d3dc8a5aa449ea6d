"""Words by which providers end their answers, and what each of them means."""

import re
from typing import Any

from dominds.llm.stream import FinishReason

WORDS = {
    FinishReason.STOP: "stop eos eos_token end end_turn complete completed done finished",
    FinishReason.STOP_SEQUENCE: "stop_sequence",
    FinishReason.TOOL_CALLS: "tool_calls tool_call tool_use function_call function_calls",
    FinishReason.LENGTH: "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length limit",
    FinishReason.WINDOW_EXCEEDED: (
        "model_context_window_exceeded context_window_exceeded context_length_exceeded error_limit"
    ),
    FinishReason.REFUSAL: (
        "content_filter content_filtered refusal safety recitation blocklist prohibited_content spii sensitive "
        "guardrail_intervened error_toxic image_safety blocked language"
    ),
    FinishReason.PAUSE: "pause_turn pause",
    FinishReason.COMPACTION: "compaction",
}
_NO_LETTERS = re.compile("[^a-z]+")


def letters_of(word: str) -> str:
    """Return a word's letters in lower case, so that MAX_TOKENS, maxTokens and max-tokens are the same word."""
    return _NO_LETTERS.sub("", word.lower().removeprefix("finish_reason_")) if word else ""


REASONS = {letters_of(word): reason for reason, words in WORDS.items() for word in words.split()}
UNCUT = (FinishReason.STOP, FinishReason.STOP_SEQUENCE, FinishReason.OTHER)  # after them a call may stand in the text
PLAIN_ENDS = (FinishReason.STOP, FinishReason.TOOL_CALLS)  # gateways send them after a word that says more
NO_ENDS = ("", "null", "none")
# Words for failures: of DeepSeek, OpenRouter, vLLM, Zhipu, Google, Cohere, Bedrock, and of gateways.
FAILURES = frozenset(
    map(
        letters_of,
        "error abort aborted cancel cancelled canceled user_cancel failed failure network_error server_error timeout "
        "internal_error insufficient_system_resource insufficient_system_resources overloaded connection_error "
        "malformed_function_call malformed_model_output malformed_tool_use malformed_response unexpected_tool_call "
        "engine_error model_error rate_limit load unload".split(),
    )
)


def more_telling(known: str, word: Any) -> str:
    """Return the end that says more: the one that was known so far (may be empty), or the newest word of the server."""
    word = str((word[0] if isinstance(word, list) and word else word) or "").strip()
    if letters_of(word) in NO_ENDS and not word.isdecimal():
        return known
    return known if known and is_plain_end(word) and not is_plain_end(known) else word


def is_telling(word: Any) -> bool:
    """Check whether a word of the server behind a gateway says more than any word of the gateway."""
    return isinstance(word, str) and (is_failure(word) or reason_of(word) not in (*PLAIN_ENDS, FinishReason.OTHER))


def is_plain_end(word: str) -> bool:
    return reason_of(word) in PLAIN_ENDS


def is_failure(word: str) -> bool:
    return any(one in FAILURES for one in _words_of(word))


def reason_of(word: str) -> FinishReason:
    return next((REASONS[one] for one in _words_of(word) if one in REASONS), FinishReason.OTHER)


def _words_of(word: str) -> tuple[str, ...]:
    """Return an end's word, and its parts around a colon, as in Google's ``function_call_filter: ...``."""
    return (letters_of(word), *map(letters_of, word.split(":")[::-1])) if ":" in word else (letters_of(word),)
