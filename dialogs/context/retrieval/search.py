"""Search of what was said: one dialog, its archive, or all dialogs of a person, by the ranking that recall has."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import F, Q

from dialogs.context.retrieval.text_index import REMOVED_UNITS, TURN_COLUMNS, TURNS, passages_of_turn, said
from dialogs.models import Turn
from dialogs.permissions import reach_of, within
from remediation.recall.index import Index
from remediation.recall.passages import Passage
from remediation.recall.query import Query, query_weights
from remediation.recall.scoring import FARTHEST_NEIGHBOUR
from remediation.recall.scoring import Hit as Ranked
from remediation.recall.search import MOST_HITS, Found, search
from remediation.recall.snippets import Part, snippet

MOST_QUERY_CHARS = 2_000
NEIGHBOUR_CHARS = 160
# Of all dialogs of a person no index is kept: the newest turns that hold a word of the query are ranked among themselves.
MOST_CANDIDATES = 1_000
MOST_WORDS = 12
NO_ROW = -1  # between turns that do not follow each other


@dataclass(frozen=True, slots=True)
class Text:
    """What was found, where the words of the query stand. ``number`` is a turn's, or a unit's of the archive."""

    number: int
    parts: tuple[Part, ...]

    @property
    def is_match(self) -> bool:
        return any(part.is_match for part in self.parts)


@dataclass(frozen=True, slots=True)
class Hit:
    """``beside`` is what was said just before and after it."""

    text: Text
    beside: tuple[Text, ...]


def words_of(query: str) -> frozenset[str]:
    """The words that a query asks for, in the form that is compared."""
    return frozenset(query_weights(Query(query[:MOST_QUERY_CHARS])))


def in_turns(dialog_id: UUID, query: str, most: int = MOST_HITS, hidden: Collection[int] = ()) -> list[Hit]:
    """Over all rounds of a dialog, best first, without the ``hidden`` turns. The last may only be near what is asked for."""
    with TURNS.of(dialog_id) as index:
        return _hits(index, query, most, hidden)


def in_removed_units(dialog_id: UUID, query: str, most: int = MOST_HITS, hidden: Collection[int] = ()) -> list[Hit]:
    """In what rewrites took out of the model's sight, best first."""
    with REMOVED_UNITS.of(dialog_id) as index:
        return _hits(index, query, most, hidden)


def _hits(index: Index, query: str, most: int, hidden: Collection[int]) -> list[Hit]:
    asked = words_of(query)
    return [_hit(found, asked) for found in search(index, query[:MOST_QUERY_CHARS], most, hidden=hidden)]


def _hit(found: Found, asked: Collection[str]) -> Hit:
    beside = (_text(other, asked, NEIGHBOUR_CHARS) for other in found.neighbours)
    return Hit(_text(found.hit, asked), tuple(beside))


def _text(ranked: Ranked, asked: Collection[str], *chars: int) -> Text:
    return Text(ranked.passage.turn, snippet(ranked.passage.text, asked, *chars))


@dataclass(frozen=True, slots=True)
class DialogHit:
    """A hit among many dialogs. Numbers of its texts are seqs of turns."""

    dialog_id: UUID
    title: str
    hit: Hit


def everywhere(person: User, query: str, most: int = MOST_HITS) -> list[DialogHit]:
    """Over all dialogs that this person takes part in, best first."""
    asked = words_of(query)
    rows = _candidates(person, asked)
    index = Index(_apart(rows))
    hits = []
    numbers = [row.seq for row in rows]
    for found in search(index, query[:MOST_QUERY_CHARS], most, hidden=[NO_ROW]):
        row = rows[found.hit.passage.turn]
        hits.append(DialogHit(row.dialog_id, row.title, _renumbered(_hit(found, asked), numbers)))
    return hits


def _candidates(person: User, asked: Iterable[str]) -> list[Any]:
    """Turns that hold a word by its letters, in the order of their dialogs. The longest words are looked for."""
    stems = sorted((word.removesuffix("y") for word in asked), key=lambda stem: (-len(stem), stem))[:MOST_WORDS]
    if not stems:
        return []
    held = reduce(or_, (Q(text__icontains=stem) for stem in stems))
    theirs = within(person.pk, reach_of(person).groups, "dialog__")
    turns = said(Turn.objects.filter(held, theirs)).order_by("-pk").annotate(title=F("dialog__title"))
    rows = turns.values_list(*TURN_COLUMNS, "position", "dialog_id", "title", named=True)[:MOST_CANDIDATES]
    return sorted(rows, key=lambda row: (str(row.dialog_id), row.position))


def _apart(rows: Sequence[Any]) -> Iterator[Passage]:
    """Passages by the places of their rows; what lies between rows that do not follow each other keeps them apart."""
    before: Any = None
    for place, row in enumerate(rows):
        if before and not (row.dialog_id == before.dialog_id and row.position == before.position + 1):
            yield from [Passage(NO_ROW, "", "", 0)] * FARTHEST_NEIGHBOUR
        yield from (replace(passage, turn=place) for passage in passages_of_turn(row))
        before = row


def _renumbered(hit: Hit, numbers: list[int]) -> Hit:
    texts = [replace(text, number=numbers[text.number]) for text in (hit.text, *hit.beside)]
    return Hit(texts[0], tuple(texts[1:]))
