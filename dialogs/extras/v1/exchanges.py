"""Conversations as exchanges, the form in which two of them are compared, and the digests by which one is found."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.notices import without_notices
from dialogs.runtime.outcomes import generation_of_call

DISTINCT_CHARS = 80  # without white space: less text than this may well be the same in two conversations
_THOUGHTS = {
    f"</{name}>": re.compile(rf"<{name}\b[^<>]*>.*?</{name}>", re.DOTALL)
    for name in ("details", "think", "thinking", "reasoning")
}
_REMINDERS = {  # of Claude Code, and of Gemini CLI, which lists the folder's files anew when it resumes
    f"</{name}>": re.compile(rf"<{name}>.*?</{name}>", re.DOTALL) for name in ("system-reminder", "session_context")
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user's words, and all that was answered up to their next words, with single spaces.

    The answer is kept without any spaces, too, since clients trim and join differently. ``final`` is the last message
    of it alone, ``begin`` the position of the first message, and ``calls`` the ids of calls that were made here.
    """

    message: str
    answer: str
    answered: str
    begin: int = field(default=0, compare=False)
    final: str = field(default="", compare=False)
    calls: frozenset[str] = field(default=frozenset(), compare=False)


def exchanges_of(messages: Iterable[ClientMessage]) -> list[Exchange]:
    """Return the exchanges of a conversation.

    Messages in a row of one side are one, and those without words none. Results of tools do not count, since clients
    shorten them.
    """
    results: list[Exchange] = []
    texts: list[str] = []
    answer: list[str] = []
    calls: list[str] = []
    begin = -1
    for message in messages:
        match message.role:
            case "user" if text := without_reminders(message.spoken):
                if answer:
                    results.append(_exchange(texts, answer, begin, calls))
                    texts, answer, begin, calls = [], [], -1, []
                texts.append(text)
            case "assistant" if text := without_additions(message.text).strip():
                answer.append(text)
        calls += [call.id for call in message.calls if generation_of_call(call.id)]
        begin = message.position if begin < 0 else begin
    return [*results, _exchange(texts, answer, begin, calls)] if texts or answer else results


def _exchange(texts: list[str], answer: list[str], begin: int, calls: list[str]) -> Exchange:
    words = " ".join(answer).split()
    final = "".join(answer[-1].split() if answer else ())
    return Exchange(" ".join(texts), " ".join(words), "".join(words), begin, final, frozenset(calls))


def without_additions(answer: str) -> str:
    """Return an answer without notices, and without the reasoning that clients fold into it between tags."""
    return _without(_THOUGHTS, without_notices(answer))


def without_reminders(spoken: str) -> str:
    """Return a user's words with single spaces, and without what programs put beside them and change from request to
    request, such as the date or the files in a folder. Where there is nothing else it stays.
    """
    text = " ".join(spoken.split())
    without = _without(_REMINDERS, text)
    return text if without == text else " ".join(without.split()) or text


def _without(elements: Mapping[str, re.Pattern[str]], text: str) -> str:
    if "</" not in text:
        return text
    for closing, element in elements.items():
        end = text.rfind(closing) + len(closing)
        if end >= len(closing):  # every element that opens before this place is closed, so the search is linear
            text = element.sub("", text[:end]) + text[end:]
    return text


@dataclass(frozen=True, slots=True)
class Keys:
    """Digests by which a dialog is found: of the first and the newest thing that its user said, and of all of them."""

    first: str
    newest: str
    whole: str


def keys_of(exchanges: Sequence[Exchange]) -> Keys:
    messages = [exchange.message for exchange in exchanges]
    return Keys(digest(messages[:1]), digest(messages[-1:]), digest(messages))


def answer_key(answer: str) -> str:
    """Return the digest by which an answer is found, empty if it has no text."""
    text = "".join(without_additions(answer).split())
    return digest([text]) if text else ""


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()


def without_spaces(texts: Iterable[str]) -> str:
    return "".join(word for text in texts for word in text.split())
