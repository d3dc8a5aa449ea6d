"""Likeness of a conversation as a client sends it to one that is stored: a rule on values, linear in their length.

Clients send their history back, and not as they received it: cut at the head, with a summary in its place, with
material of their own put into the newest message, with answers trimmed or rewritten. So exchanges are compared, from
the end: the end is where a conversation goes on.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from dialogs.extras.v1.asked_summaries import sums_up
from dialogs.extras.v1.exchanges import DISTINCT_CHARS, Exchange
from dialogs.extras.v1.values import tells_value_of

OCCURRENCES = 8  # how many places of one text in another are looked at
MOST_BEYOND = 8  # exchanges that a client may put after those that are stored


class Agreement(IntEnum):
    """The agreement of two exchanges: in both sides' words (``SAME``), in the words of one side or a call, whose id no
    other has (``LIKE``), or in the user's words alone (``MESSAGE``).
    """

    NONE = 0
    MESSAGE = 1
    LIKE = 2
    SAME = 3


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a history to a dialog with whose newest exchange it ends: how many exchanges are the ``same`` or
    ``like`` it. Of two fits the one with the greater ``rank`` is better.

    ``exact`` says that both are the same throughout. ``beyond`` exchanges of the history come after the newest one of
    the dialog. ``summed_up`` says that the history holds the summary that was asked for last, in the place of what is
    stored.
    """

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
        if exchange.answered == stored.answered or tells_value_of(exchange.answer, stored.answer):
            return Agreement.SAME
        is_like = exchange.calls & stored.calls or _are_alike(exchange, stored)
        return Agreement.LIKE if is_like else Agreement.MESSAGE
    if exchange.calls & stored.calls:
        return Agreement.LIKE
    is_answer = exchange.answered and exchange.answered in (stored.answered, stored.final)
    if is_answer and _is_part(exchange.message, stored.message):
        return Agreement.LIKE
    return Agreement.NONE


def _are_alike(exchange: Exchange, stored: Exchange) -> bool:
    """Check whether one answer is the other one cut, or has most of its words."""
    half = (min(len(exchange.answered), len(stored.answered)) + 1) // 2
    if not half or exchange.answered[:half] == stored.answered[:half]:
        return half > 0
    one, other = set(exchange.answer.split()), set(stored.answer.split())
    return 2 * len(one & other) >= min(len(one), len(other))


def _is_part(one: str, other: str) -> bool:
    """Check whether one of the texts stands in the other, word for word."""
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
    """Count the exchanges that both have in common from the beginning on."""
    count = 0
    for one, other in zip(history, stored, strict=False):
        if agreement(one, other) < Agreement.SAME:
            break
        count += 1
    return count


def fit_of_beginning(history: Sequence[Exchange], stored: Sequence[Exchange]) -> Fit | None:
    """Return the fit of the history up to the last exchange that is stored, or None.

    Behind that a client may have put material of its own, such as files, or had another model answer.
    """
    most = min(MOST_BEYOND, len(history) - 1) if stored else 0
    for beyond in range(1, most + 1):
        end = len(history) - beyond
        if agreement(history[end - 1], stored[-1]) >= Agreement.LIKE and (result := fit(history[:end], stored)):
            return replace(result, exact=False, beyond=beyond)
    return None


def not_stored(history: Sequence[Exchange], stored: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges of the history that the dialog lacks.

    One that comes unchanged with each request is stored already, unless another took its place: two of them have
    the same answer.
    """
    newest = {exchange.answered: exchange for exchange in stored}
    return [exchange for exchange in history if newest.get(exchange.answered) != exchange]


def fit(history: Sequence[Exchange], stored: Sequence[Exchange], text: str = "") -> Fit | None:
    """Judge how well a history fits what is stored, up to the head of both. None means another conversation, or
    an older place of this one.

    Where the history holds all that the user ever wrote, each answer may be rewritten; where it holds all of several
    exchanges, each message may have more around it. Where something is left out or replaced, most of it must agree, the
    last exchange included, in more text than two conversations happen to share; a summary of the conversation, made
    here, that stands in the ``text`` of the request, without white space, is enough of that.
    """
    least = min(len(history), len(stored))
    tail = 0
    results: list[Agreement] = []
    while tail < least and (seen := agreement(history[-1 - tail], stored[-1 - tail])):
        results.append(seen)
        tail += 1
    if not tail:
        return None
    middle, within = history[: len(history) - tail], stored[: len(stored) - tail]
    head = same_beginning(middle, within)
    between = list(_in_order(middle[head:], within[head:]))
    like = sum(seen >= Agreement.LIKE for seen in results) + head + len(between)
    same = results.count(Agreement.SAME) + head + between.count(Agreement.SAME)
    if [one.message for one in history] == [one.message for one in stored]:
        is_it = like > 0 or tail > 1
    else:
        agreeing = [*history[:head], *history[len(history) - tail :]]
        chars = sum(len(exchange.message) + len(exchange.answered) for exchange in agreeing)
        is_distinct = chars >= DISTINCT_CHARS or bool(history[-1].calls & stored[-1].calls)
        is_whole = 1 < like == tail == len(history) == len(stored)
        is_it = results[0] >= Agreement.LIKE and (
            is_whole or (2 * like >= len(history) and is_distinct) or any(sums_up(one, history, text) for one in stored)
        )
    return Fit(same == len(history) == len(stored), same, like) if is_it else None


def _in_order(history: Sequence[Exchange], stored: Sequence[Exchange]) -> Iterator[Agreement]:
    """Yield the agreement of exchanges that are alike and in the same order on both sides, with gaps or without."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, exchange in enumerate(stored):
        places[exchange.message].append(place)
        for answer in {exchange.answered, exchange.final}:
            places[answer].append(place)
    end = len(stored)
    for one in reversed(history):
        for known in (places.get(one.message, []), places.get(one.answered, [])):
            before = bisect_left(known, end)
            if before and (seen := agreement(one, stored[known[before - 1]])) >= Agreement.LIKE:
                end = known[before - 1]
                yield seen
                break
