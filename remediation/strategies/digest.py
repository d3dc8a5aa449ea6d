"""The account by rule, which needs no model: sentences worth keeping, in the order of turns, with who said them.

People's sentences are preferred to the agent's. Tool calls are left to the ledger, which has the values of results.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, chain, groupby
from operator import attrgetter, itemgetter

from remediation.context import Toolbox, Unit
from remediation.strategies.outcome import has_calls
from remediation.strategies.said import Talk, labelled, talk_of
from remediation.strategies.stand_ins import text_counter
from remediation.text.coverage import stems_of
from remediation.text.marks import BY_RULE, OMITTED, PART_BEGIN, PART_END
from remediation.text.reading import asks
from remediation.text.selection import density, fill
from remediation.text.statements import Statement, statements_of

ENDED = re.compile(r"[.!?;:,…。！？；：，”][\"'”’)\]*_`]{0,4}$")
LABEL_TOKENS = 5  # of "12 person:" and the line break
# Tuned on the sets of docs/experiments.md#numbers, which has what half and twice as much change.
# The newest statement is worth this much more than the oldest. 0.3: LoCoMo -9, 7 old values, 1.2: lost +4, LoCoMo -5
RECENCY = 0.6
WHOLE_TOKENS = 48  # shorter texts stay or go whole; 24: nothing, 96: lost 8 less at a third and 8 more at a fifth
TALK_TOKENS = 100  # the same if no tool was called; 50: LoCoMo -368, 200: BFCL -52
LEAST_WORTH = 0.8  # the agent's sentences below it are left out; 0.4: lost +3, 1.6: lost +7, LoCoMo +11
# If no tool was called, each rare name, value or date adds the first, as a share of a statement's worth, and at most
# the second count. 8 and 2: LoCoMo -6, BFCL -2; 2 and 2: -3, 0; 4 and 1: +54, -7; 4 and 4: -9, -4.
VALUE_BONUS, MOST_VALUES = 4.0, 2
QUESTION = 0.5  # the share of its worth that a question then counts with; 0.25: LoCoMo +8, BFCL -4, 1: +9, -5


def digest(units: Sequence[Unit], room: int, toolbox: Toolbox, people_room: int, remaining: Sequence[Unit] = ()) -> str:
    """Write an account of ``units`` of at most ``room`` tokens; empty if nothing fits.

    People's messages stay whole if all of them fit into ``people_room`` tokens. What people say in the ``remaining``
    units may supersede what ``units`` say.
    """
    count = text_counter(toolbox)
    talk = talk_of(units, remaining)
    statements = talk.lost_statements
    is_talk = not has_calls(units)
    worths = _worths_in_talk(statements) if is_talk else [statement.worth for statement in statements]
    shares = [count(said.text) / len(said.text) for _, said in talk.texts]
    prices = [math.ceil(shares[statement.source] * len(statement.marked)) + 1 for statement in statements]
    candidates = _candidates(statements, prices, TALK_TOKENS if is_talk else WHOLE_TOKENS)
    order = _in_order(statements, worths, prices, candidates, min(people_room, room))
    priced = [(places, LABEL_TOKENS + sum(prices[place] for place in places)) for places in order]
    chosen = fill(priced, room, lambda chosen: count(_account(talk, statements, chosen)))
    return _account(talk, statements, chosen) if chosen else ""


def _account(talk: Talk, statements: Sequence[Statement], chosen: Sequence[Sequence[int]]) -> str:
    """Write one line for each text of which sentences were ``chosen``, in the order of turns."""
    texts = _join(statements, [place for places in chosen for place in places], attrgetter("source"))
    lines = [(said.turn, labelled(said, text)) for source, text in texts for said in (talk.texts[source][1],)]
    return "\n".join((BY_RULE, *(line for _, line in sorted(lines, key=itemgetter(0)))))


def shorten(text: str, room: int, count: Callable[[str], int], least: float = 0.0) -> str:
    """Return the best sentences of one text that fit into ``room`` tokens, or the beginning of the best if none fits.

    Secrets and fenced code are left out, and marks stand where sentences of a paragraph are. Sentences worth less than
    ``least`` are taken only if there is no other.
    """
    statements = statements_of([("assistant", text)])
    share = count(text) / max(1, len(text))
    prices = [math.ceil(share * len(one.text)) + 1 for one in statements]
    ranks = [(-density(one.worth, price), -one.order) for one, price in zip(statements, prices, strict=True)]
    telling = [one.order for one in statements if one.worth >= least and not one.leads_on]
    order = sorted(telling or range(len(statements)), key=ranks.__getitem__)

    def written(chosen: Sequence[int]) -> str:
        return "\n".join(words for _, words in _join(statements, chosen, attrgetter("paragraph")))

    chosen = fill([(place, prices[place]) for place in order], room, lambda chosen: count(written(chosen)))
    return written(chosen) if chosen or not order else _cut(statements[order[0]].text, room, count)


def _cut(sentence: str, room: int, count: Callable[[str], int]) -> str:
    """Return the longest beginning of a sentence, in whole words and marked as cut, that fits into ``room`` tokens."""
    words = [*accumulate(sentence.split(), "{} {}".format)]
    fitting = bisect_right(words, room, key=lambda beginning: count(beginning + PART_END))
    return words[fitting - 1] + PART_END if fitting else ""


def _join(
    statements: Sequence[Statement], chosen: Collection[int], part: Callable[[Statement], int]
) -> Iterator[tuple[int, str]]:
    """Yield each ``part``, which is a text or a paragraph, by its place and with its chosen sentences.

    Marks stand where sentences between are left out. Neighbouring pieces of one long sentence are joined again.
    """
    for at, group in groupby(sorted(chosen), key=lambda place: part(statements[place])):
        parts: list[str] = []
        last = -1
        for place in group:
            words = statements[place].marked
            if parts and parts[-1].endswith(PART_END) and words.startswith(PART_BEGIN):
                words = words.removeprefix(PART_BEGIN)
                parts[-1] = parts[-1] if place > last + 1 else parts[-1].removesuffix(PART_END)
            elif parts:  # without a sign between them, entries of a list would be read back as one sentence
                parts[-1] += "" if ENDED.search(parts[-1]) else ";"
                parts += [OMITTED] if place > last + 1 else []
            parts.append(words)
            last = place
        yield at, " ".join(parts)


def _worths_in_talk(statements: Sequence[Statement]) -> list[float]:
    """Return what statements are worth if no tool was called: the rarer their words, the more.

    Names, values and dates add to that. The sum stays what it was, and no rule or correction is worth less than before.
    """
    stems = [stems_of(statement.text) for statement in statements]
    rarity = _rarities(stems)
    values_of = [{token for token, _, _ in statement.tokens.worths} for statement in statements]
    rarity_of_value = _rarities(values_of)

    def worth(statement: Statement, row: Collection[str], own: Collection[str]) -> float:
        values = sum(map(rarity_of_value.__getitem__, own)) + statement.spelled
        weight = sum(map(rarity.__getitem__, row)) * (1 + VALUE_BONUS * min(MOST_VALUES, values))
        return weight * (QUESTION if asks(statement.bare) else 1.0)

    own = [statement.worth for statement in statements]
    talk = [worth(*row) for row in zip(statements, stems, values_of, strict=True)]
    scale = sum(own) / (sum(talk) or 1.0)
    return [
        max(scale * in_talk, one.worth if one.is_rule or one.corrects else 0.0)
        for one, in_talk in zip(statements, talk, strict=True)
    ]


def _rarities(rows: Sequence[Collection[str]]) -> dict[str, float]:
    """Rate each entry by how few of the rows have it: from 0 for all of them to 1 for a single one."""
    seen = Counter(chain.from_iterable(rows))
    most = math.log(max(2, len(rows)))
    rarity_of = {times: (1 - math.log(times) / most) ** 2 for times in set(seen.values())}
    return {entry: rarity_of[times] for entry, times in seen.items()}


def _in_order(
    statements: Sequence[Statement],
    worths: Sequence[float],
    prices: Sequence[int],
    candidates: Sequence[list[int]],
    people_room: int,
) -> list[list[int]]:
    """Return the candidates that say something, the best first: by their worth for their price in tokens.

    If all that people said fits into ``people_room``, it comes before everything else, in its order.
    """
    people = [
        [place]
        for place, statement in enumerate(statements)
        if statement.role == "user" and not statement.speaker and _says_something(statement)
    ]
    first = people if sum(prices[place] for (place,) in people) <= people_room else []
    told = {place for (place,) in first}
    candidates = [left for places in candidates if (left := [place for place in places if place not in told])]
    last = max(1, len(statements) - 1)

    def rank(places: Sequence[int]) -> float:
        worth = sum(worths[place] for place in places) * (1 + RECENCY * places[0] / last)
        return -density(worth, sum(prices[place] for place in places))

    def may_stand(places: Sequence[int]) -> bool:
        if not any(_says_something(statements[place]) for place in places):
            return False
        if statements[places[0]].role == "user":
            return True
        return max(worths[place] for place in places) >= LEAST_WORTH

    ranked = sorted(candidates, key=lambda places: (rank(places), places[0]))
    return [*first, *filter(may_stand, ranked)]


def _says_something(statement: Statement) -> bool:
    return statement.holds and not statement.again and not statement.leads_on


def _candidates(statements: Sequence[Statement], prices: Sequence[int], most_whole: float) -> list[list[int]]:
    """Group the places of statements into candidates, each of which is chosen or left out as a whole.

    A text of at most ``most_whole`` tokens is one candidate, since parts of it say little. Of a longer text each
    sentence is one.
    """
    candidates: list[list[int]] = []
    for _, group in groupby(range(len(statements)), key=lambda place: statements[place].source):
        places = list(group)
        whole = sum(prices[place] for place in places) <= most_whole
        candidates += [places] if whole else [[place] for place in places]
    return candidates
