"""Likeness of a conversation as a client sends it to one that is stored: a rule on values, linear in their length.

Clients send their history back, and not as they got it: cut at the head, with a summary in its place, with what they found put
into the newest message, with answers trimmed or rewritten. So exchanges are compared, from the end: the end is where a
conversation goes on.
"""

import hashlib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import orjson

from dialogs.openai_api.history import ClientMessage
from dialogs.openai_api.notices import without_notices

DISTINCT_CHARS = 80  # of agreeing text, without white space: less may well have been said in two conversations
OCCURRENCES = 8  # of one text in another that are looked at
MOST_BEYOND = 8  # exchanges that a client puts after those that are stored
# Words by which clients ask the model for a summary that is to take the place of what was said: one of each.
_SUMMARY = re.compile(r"summar|compact|condens|snapshot|hand-?off|continuing", re.I)
_OF_TALK = re.compile(r"conversation|session|context|\bchat\b|\babove\b|so far|scratchpad", re.I)
_TAG = re.compile(r"<[^<>]{1,40}>")
_THOUGHTS = {
    f"</{name}>": re.compile(rf"<{name}\b[^<>]*>.*?</{name}>", re.DOTALL)
    for name in ("details", "think", "thinking", "reasoning")
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said, and all that was answered up to their next word: each with single spaces, and the answer without
    any, too, since clients trim and join differently. ``begin`` is the position of its first
    message."""

    message: str
    answer: str
    answered: str
    begin: int = field(default=0, compare=False)


def exchanges_of(messages: Iterable[ClientMessage]) -> list[Exchange]:
    """Messages in a row of one side are one. Tool results do not count: clients shorten them."""
    found: list[Exchange] = []
    texts: list[str] = []
    answer: list[str] = []
    begin = -1
    for message in messages:
        match message.role:
            case "user" if text := " ".join(message.spoken.split()):
                if answer:
                    found.append(_exchange(texts, answer, begin))
                    texts, answer, begin = [], [], -1
                texts.append(text)
            case "assistant" if text := without_additions(message.text).strip():
                answer.append(text)
        begin = message.position if begin < 0 else begin
    return [*found, _exchange(texts, answer, begin)] if texts or answer else found


def _exchange(texts: list[str], answer: list[str], begin: int) -> Exchange:
    words = " ".join(answer).split()
    return Exchange(" ".join(texts), " ".join(words), "".join(words), begin)


def without_additions(answer: str) -> str:
    """An answer without notices, and without the reasoning that clients fold into it as elements of its own."""
    text = without_notices(answer)
    for closing, element in _THOUGHTS.items():
        end = text.rfind(closing) + len(closing)
        if end >= len(closing):  # up to there each one that opens closes, so none is looked through in vain
            text = element.sub("", text[:end]) + text[end:]
    return text


# -- how to find it again ------------------------------------------------------------------------------------------------


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
    """The same for one answer, or nothing where it has no text."""
    text = "".join(without_additions(answer).split())
    return digest([text]) if text else ""


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()


# -- how alike they are --------------------------------------------------------------------------------------------------


class Agreement(IntEnum):
    """Of two exchanges. ``LIKE``: one side's words are the same, the other's alike; ``MESSAGE``: no more than the user's."""

    NONE = 0
    MESSAGE = 1
    LIKE = 2
    SAME = 3


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a telling fits a dialog at whose head it ends, best last in order; ``beyond`` exchanges of it come after that.
    ``summed_up``: it holds the summary that was asked for last, in the place of what is stored."""

    exact: bool
    same: int
    like: int
    beyond: int = 0
    summed_up: bool = False

    @property
    def rank(self) -> tuple[int, int, int]:
        return -self.beyond, self.same, self.like


def agreement(exchange: Exchange, stored: Exchange) -> Agreement:
    if exchange.message == stored.message:
        if exchange.answered == stored.answered:
            return Agreement.SAME
        return Agreement.LIKE if _are_alike(exchange, stored) else Agreement.MESSAGE
    if exchange.answered and exchange.answered == stored.answered and _is_part(exchange.message, stored.message):
        return Agreement.LIKE
    return Agreement.NONE


def _are_alike(exchange: Exchange, stored: Exchange) -> bool:
    """Whether one answer is the other one cut, or has most of its words."""
    half = (min(len(exchange.answered), len(stored.answered)) + 1) // 2
    if not half or exchange.answered[:half] == stored.answered[:half]:
        return half > 0
    one, other = set(exchange.answer.split()), set(stored.answer.split())
    return 2 * len(one & other) >= min(len(one), len(other))


def _is_part(one: str, other: str) -> bool:
    """Whether one of the texts stands in the other, word for word."""
    short, long = sorted((one, other), key=len)
    start = long.find(short)
    for _ in range(OCCURRENCES):
        end = start + len(short)
        if start < 0 or not short:
            break
        if not (long[max(0, start - 1) : start].isalnum() or long[end : end + 1].isalnum()):
            return True
        start = long.find(short, start + 1)
    return not short


def same_beginning(history: Sequence[Exchange], stored: Sequence[Exchange]) -> int:
    """How many exchanges they have in common from the beginning on."""
    count = 0
    for one, other in zip(history, stored, strict=False):
        if agreement(one, other) < Agreement.SAME:
            break
        count += 1
    return count


def without_spaces(texts: Iterable[str]) -> str:
    return "".join(word for text in texts for word in text.split())


def is_summary(exchange: Exchange, text: str) -> bool:
    """Whether the user asked for a summary of the conversation, and the answer stands in a text without white space. Clients keep
    what is between two tags of it."""
    if not (text and _SUMMARY.search(exchange.message) and _OF_TALK.search(exchange.message)):
        return False
    return any(len(part) >= DISTINCT_CHARS and part in text for part in _TAG.split(exchange.answered))


def fit_of_summary(stored: Sequence[Exchange], text: str) -> Fit | None:
    """The fit of a telling, here all of its text without white space, in which a summary that the client asked for last took the
    place of what was said before. A summary of nothing is an answer like any other."""
    if len(stored) < 2 or not is_summary(stored[-1], text):
        return None
    return Fit(False, len(stored), len(stored), summed_up=True)


def fit_or_beyond(history: Sequence[Exchange], stored: Sequence[Exchange], text: str = "") -> Fit | None:
    """The fit of all that is told, or else of what is told up to the last exchange that is stored: a client puts material of its
    own, such as files, between the conversation and the newest message, or had another model answer meanwhile."""
    if whole := fit(history, stored, text):
        return whole
    most = min(MOST_BEYOND, len(history) - 1) if stored else 0
    for beyond in range(1, most + 1):
        end = len(history) - beyond
        if agreement(history[end - 1], stored[-1]) >= Agreement.LIKE and (found := fit(history[:end], stored)):
            return replace(found, exact=False, beyond=beyond)
    return None


def news_of(history: Sequence[Exchange], stored: Sequence[Exchange]) -> list[Exchange]:
    """What of these exchanges is to be told to the dialog. One that comes unchanged with each request stands there already,
    unless another took its place: two of them have the same answer."""
    newest = {exchange.answered: exchange for exchange in stored}
    return [exchange for exchange in history if newest.get(exchange.answered) != exchange]


def fit(history: Sequence[Exchange], stored: Sequence[Exchange], text: str = "") -> Fit | None:
    """How well what is told fits what is stored, up to the head of both; None where it is another conversation, or goes on
    from an older place of this one.

    Where all that the user ever said is told, each answer may be rewritten. Where something is left out or replaced, most of
    what is told must agree, the last exchange among it, in more text than two conversations happen to share; a summary of the
    conversation, made here, that stands in the ``text`` of the telling, without white space, is enough of that.
    """
    least = min(len(history), len(stored))
    tail = 0
    found: list[Agreement] = []
    while tail < least and (seen := agreement(history[-1 - tail], stored[-1 - tail])):
        found.append(seen)
        tail += 1
    if not tail:
        return None
    middle, within = history[: len(history) - tail], stored[: len(stored) - tail]
    head = same_beginning(middle, within)
    between = list(_in_order(middle[head:], within[head:]))
    like = sum(seen >= Agreement.LIKE for seen in found) + head + len(between)
    same = found.count(Agreement.SAME) + head + between.count(Agreement.SAME)
    if [one.message for one in history] == [one.message for one in stored]:
        is_it = like > 0 or tail > 1
    else:
        agreeing = [*history[:head], *history[len(history) - tail :]]
        chars = sum(len(exchange.message) + len(exchange.answered) for exchange in agreeing)
        is_it = found[0] >= Agreement.LIKE and (
            (2 * like >= len(history) and chars >= DISTINCT_CHARS) or any(is_summary(one, text) for one in stored)
        )
    return Fit(same == len(history) == len(stored), same, like) if is_it else None


def _in_order(history: Sequence[Exchange], stored: Sequence[Exchange]) -> Iterator[Agreement]:
    """Of exchanges that are alike and follow each other on both sides, whatever else stands between them on either."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, exchange in enumerate(stored):
        places[exchange.message].append(place)
        places[exchange.answered].append(place)
    end = len(stored)
    for one in reversed(history):
        for known in (places.get(one.message, []), places.get(one.answered, [])):
            before = bisect_left(known, end)
            if before and (seen := agreement(one, stored[known[before - 1]])) >= Agreement.LIKE:
                end = known[before - 1]
                yield seen
                break
