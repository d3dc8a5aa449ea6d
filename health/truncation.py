"""The rule that suspects a provider of having dropped part of a prompt, by its own counts."""

from dataclasses import dataclass

GROWTH_EXPECTED_CHARS = 8_000
# Of 265 texts of this length and more (dialogs, code, pages, logs) the densest took 5.2 by three vocabularies.
MOST_CHARS_PER_TOKEN = 10


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The remembered facts about a kept request.

    ``frame`` hashes model, instructions, tools and reminders. ``base`` names the round and rewrite where its messages
    start: with an equal base they start with the same messages.
    """

    frame: str
    base: str
    chars: int
    guided: bool
    prompt_tokens: int


def truncation_suspected(previous: SentRequest | None, current: SentRequest, round_completion_tokens: int) -> bool:
    """Return whether the provider seems to have dropped a part of the prompt.

    Only a request that extends the last kept one of its round is compared, without guidance in either. Suspicious is a
    prompt that fell by more than the round's completion tokens, since reasoning that is not sent back explains a
    smaller fall, or one that did not grow although 8,000 characters were added.
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
    """Check whether a report is too small for the text that was sent, whatever the tokenizer. Tools do not count
    as text: some templates leave them out.
    """
    return text_chars >= GROWTH_EXPECTED_CHARS and text_chars > prompt_tokens * MOST_CHARS_PER_TOKEN
