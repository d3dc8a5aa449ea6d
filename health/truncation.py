"""The rule that suspects, from a provider's own token counts, that it dropped part of a prompt."""

from dataclasses import dataclass

GROWTH_EXPECTED_CHARS = 8_000
# Tuned on 265 texts of at least GROWTH_EXPECTED_CHARS (dialogs, code, pages, logs), counted by three vocabularies:
# the most characters per token were 5.2.
MOST_CHARS_PER_TOKEN = 10


@dataclass(frozen=True, slots=True)
class SentRequest:
    """Facts about a request whose answer was kept.

    ``frame`` hashes model, instructions, tools and reminders. ``base`` names the round and the rewrite that the
    messages start from: requests of equal ``base`` start with the same messages.
    """

    frame: str
    base: str
    chars: int
    guided: bool
    prompt_tokens: int


def truncation_suspected(previous: SentRequest | None, current: SentRequest, round_completion_tokens: int) -> bool:
    """Return whether the provider seems to have dropped a part of the prompt.

    A request is compared only with the last kept one of its round, only if it extends that one, and only if neither
    holds guidance. The reported prompt is suspicious if it fell by more than the round's completion tokens (reasoning
    that is not sent back explains a smaller fall), or if it did not grow although 8,000 characters were added.
    """
    if previous is None or previous.guided or current.guided:
        return False
    if (previous.frame, previous.base) != (current.frame, current.base) or current.chars < previous.chars:
        return False
    fall = previous.prompt_tokens - current.prompt_tokens
    if fall > round_completion_tokens:
        return True
    return fall >= 0 and current.chars - previous.chars >= GROWTH_EXPECTED_CHARS


def is_far_below(text_chars: int, prompt_tokens: int) -> bool:
    """Check whether a reported prompt is too small for the text that was sent, whatever the tokenizer.

    ``text_chars`` excludes tools, which some templates leave out.
    """
    return text_chars >= GROWTH_EXPECTED_CHARS and text_chars > prompt_tokens * MOST_CHARS_PER_TOKEN
