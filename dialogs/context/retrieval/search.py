"""Search of what was said in one dialog, its archive, or all dialogs of a person, ranked as recall ranks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from dialogs.context.retrieval.meanings import MEANINGS
from dialogs.context.retrieval.text_index import (
    AT_ONCE_CHARS,
    REMOVED_UNITS,
    TURN_COLUMNS,
    TURNS,
    UNIT_COLUMNS,
    PassagesOf,
    passages_of_turn,
    passages_of_unit,
    searchable,
)
from dialogs.models import Dialog, Turn
from dialogs.models.conversation import DialogQuerySet
from dialogs.permissions import reach_of, within
from remediation.models import RemovedUnit
from remediation.recall.index import Index
from remediation.recall.passages import Passage
from remediation.recall.plain_passages import without_marks
from remediation.recall.query import Query, query_weights
from remediation.recall.scoring import FARTHEST_NEIGHBOUR
from remediation.recall.scoring import Hit as Ranked
from remediation.recall.search import MOST_HITS, HitInPlace, search
from remediation.recall.snippets import Part, snippet

MOST_QUERY_CHARS = 2_000
NEIGHBOUR_CHARS = 160
# Without an index (there is none over all dialogs of a person, and that of a long dialog may not be made yet), so many
# of the newest turns that hold a word of the query are ranked.
MOST_CANDIDATES = 1_000
# Bounds of a search over all dialogs of a person, unless it is to search everything: dialogs, turns of each, all turns.
MOST_DIALOGS = 1_000
NEWEST_TURNS = 1_000
MOST_SEARCHED = 20_000
MOST_WORDS = 12
NO_ROW = -1  # marks a gap between turns that do not follow each other


@dataclass(frozen=True, slots=True)
class Text:
    """A snippet around the words of the query. ``number`` is the seq of its turn, or the id of its archived unit."""

    number: int
    parts: tuple[Part, ...]

    @property
    def is_match(self) -> bool:
        return any(part.is_match for part in self.parts)


@dataclass(frozen=True, slots=True)
class Hit:
    """A match. ``beside`` is what was said just before and after it."""

    text: Text
    beside: tuple[Text, ...]

    def without_marks(self, numbers: Collection[int]) -> "Hit":
        """Return the hit for people to read, without Markdown's marks in the texts of these numbers."""
        texts = (
            replace(text, parts=without_marks(text.parts)) if text.number in numbers else text
            for text in (self.text, *self.beside)
        )
        return Hit(next(texts), tuple(texts))


def words_of(query: str) -> frozenset[str]:
    """Return the words of a query, in the form in which words are compared."""
    return frozenset(query_weights(Query(query[:MOST_QUERY_CHARS])))


def in_turns(dialog_id: UUID, query: str, most: int = MOST_HITS, hidden: Collection[int] = ()) -> list[Hit]:
    """Search all rounds of a dialog, best first, without ``hidden`` turns. The last hits may only be near matches."""
    with TURNS.unless_cold(dialog_id) as index:
        if index is not None:
            return _hits(index, query, most, hidden)
    turns = _rows_with_words(
        words_of(query), searchable(Turn.objects.filter(dialog_id=dialog_id)).order_by("-position")
    )
    rows = _first(turns.values_list(*TURN_COLUMNS, "position", named=True), hidden)
    return [hit for _, hit in _among(rows, passages_of_turn, lambda a, b: b.position == a.position + 1, query, most)]


def in_removed_units(dialog_id: UUID, query: str, most: int = MOST_HITS, hidden: Collection[int] = ()) -> list[Hit]:
    """Search what rewrites took out of the model's sight, best first."""
    with REMOVED_UNITS.unless_cold(dialog_id) as index:
        if index is not None:
            return _hits(index, query, most, hidden)
    units = _rows_with_words(words_of(query), RemovedUnit.objects.filter(dialog_id=dialog_id).order_by("-pk"))
    rows = _first(units.values_list(*UNIT_COLUMNS, named=True), hidden)
    return [hit for _, hit in _among(rows, passages_of_unit, lambda a, b: b.pk == a.pk + 1, query, most)]


def searches_newest(dialog_id: UUID) -> bool:
    """Check whether the dialog's index is still being made, so that a search finds only its newest matching texts."""
    return TURNS.is_being_made(dialog_id) or REMOVED_UNITS.is_being_made(dialog_id)


def _hits(index: Index, query: str, most: int, hidden: Collection[int]) -> list[Hit]:
    asked = words_of(query)
    text = query[:MOST_QUERY_CHARS]
    meaning = MEANINGS.of(text) if index.knows_meaning else None
    return [_hit(match, asked) for match in search(index, text, most, hidden=hidden, meaning=meaning)]


def _hit(match: HitInPlace, asked: Collection[str]) -> Hit:
    beside = (_text(other, asked, NEIGHBOUR_CHARS) for other in match.neighbours)
    return Hit(_text(match.hit, asked), tuple(beside))


def _text(ranked: Ranked, asked: Collection[str], *chars: int) -> Text:
    return Text(ranked.passage.turn, snippet(ranked.passage.text, asked, *chars))


@dataclass(frozen=True, slots=True)
class DialogHit:
    """A hit among many dialogs. Numbers of its texts are seqs of turns."""

    dialog_id: UUID
    title: str
    hit: Hit


def everywhere(
    person: User, query: str, most: int = MOST_HITS, *, all_of_it: bool = False
) -> tuple[list[DialogHit], bool]:
    """Search the dialogs that this person takes part in, best first: their newest messages, or all of them.

    Returns the hits, and whether older messages were left out. Prompts that programs sent beside a conversation
    are never searched: they only repeat what was said there.
    """
    within_reach, is_cut = (
        (within(person.pk, reach_of(person).groups, "dialog__"), False) if all_of_it else _newest(person)
    )
    within_reach &= ~Q(dialog__origin=Dialog.Origin.BACKGROUND)
    # Sorted by an expression: by the index on ``pk``, PostgreSQL would read everybody's turns from the newest on.
    turns = _rows_with_words(
        words_of(query), searchable(Turn.objects.filter(within_reach, dialog__removed_at=None)).order_by(-F("pk"))
    )
    rows = turns.values_list(*TURN_COLUMNS, "position", "dialog_id", named=True)
    in_order = sorted(rows, key=lambda row: (str(row.dialog_id), row.position))
    hits = list(_among(in_order, passages_of_turn, _follows, query, most))
    titles = dict(Dialog.objects.filter(pk__in={row.dialog_id for row, _ in hits}).values_list("pk", "title"))
    return [DialogHit(row.dialog_id, titles.get(row.dialog_id, ""), hit) for row, hit in hits], is_cut


def has_older_messages(dialogs: QuerySet[Dialog]) -> bool:
    """Check whether these dialogs have messages that ``holding_words`` does not search."""
    return dialogs.filter(last_position__gt=NEWEST_TURNS).exists()


def _newest(person: User) -> tuple[Q, bool]:
    """Return the newest messages, some 20,000 at most, of the latest active dialogs, and whether there are more."""
    by_activity = Coalesce("active_at", "created_at").desc()
    conversations = Dialog.objects.shared_with(person).exclude(origin=Dialog.Origin.BACKGROUND)
    dialogs = conversations.order_by(by_activity).values_list("pk", "last_position")
    whole: list[UUID] = []
    newest, is_cut = Q(), False
    room = MOST_SEARCHED
    for number, (dialog, last) in enumerate(dialogs[: MOST_DIALOGS + 1]):
        if number == MOST_DIALOGS or room <= 0:
            return newest | Q(dialog__in=whole), True
        if last > NEWEST_TURNS:
            newest |= Q(dialog=dialog, position__gt=last - NEWEST_TURNS)
            is_cut = True
        else:
            whole.append(dialog)
        room -= min(last, NEWEST_TURNS)
    return newest | Q(dialog__in=whole), is_cut


def holding_words(dialogs: DialogQuerySet, words: str, person: User, *, everywhere: bool = False) -> DialogQuerySet:
    """Filter dialogs with these letters in their title, their folder's name, or the newest messages of people and
    agents.

    ``everywhere`` searches all of these messages, which without an index of words takes as long as reading them.
    """
    named = Q(title__icontains=words) | Q(folder__icontains=words, owner=person)  # a folder is its owner's
    texts = Turn.objects.filter(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT], text__icontains=words).order_by()
    if everywhere:
        matching = dialogs.filter(named).order_by().values("pk").union(texts.values("dialog"), all=True)
        return dialogs.filter(pk__in=matching)
    newest = texts.filter(dialog=OuterRef("pk"), position__gt=OuterRef("last_position") - NEWEST_TURNS)
    return dialogs.filter(named | Exists(newest))


def _follows(before: Any, row: Any) -> bool:
    return bool(row.dialog_id == before.dialog_id and row.position == before.position + 1)


def _rows_with_words(asked: Iterable[str], rows: QuerySet[Any]) -> QuerySet[Any]:
    """Filter rows that contain one of the longest words, as a substring. No more are returned than are ranked."""
    stems = sorted((word.removesuffix("y") for word in asked), key=lambda stem: (-len(stem), stem))[:MOST_WORDS]
    if not stems:
        return rows.none()
    return rows.filter(reduce(or_, (Q(text__icontains=stem) for stem in stems)))[:MOST_CANDIDATES]


def _first(rows: Iterable[Any], hidden: Collection[int]) -> list[Any]:
    """Take as many rows, newest first, as a search may wait for, and return them oldest first.

    Each row begins with its number.
    """
    kept: list[Any] = []
    room = AT_ONCE_CHARS
    for row in rows:
        if row[0] not in hidden:
            room -= len(row.text)
            if room < 0 and kept:
                break
            kept.append(row)
    return kept[::-1]


def _among(
    rows: Sequence[Any], passages_of_row: PassagesOf, follows: Callable[[Any, Any], bool], query: str, most: int
) -> Iterator[tuple[Any, Hit]]:
    """Yield hits among these rows alone, best first, each with its row."""
    asked, numbers = words_of(query), [row[0] for row in rows]
    index = Index(_apart(rows, passages_of_row, follows))
    for match in search(index, query[:MOST_QUERY_CHARS], most, hidden=[NO_ROW]):
        yield rows[match.hit.passage.turn], _renumber(_hit(match, asked), numbers)


def _apart(rows: Sequence[Any], passages_of_row: PassagesOf, follows: Callable[[Any, Any], bool]) -> Iterator[Passage]:
    """Yield the passages of rows, numbered by row, with a gap between rows that do not follow each other."""
    before: Any = None
    for place, row in enumerate(rows):
        if before and not follows(before, row):
            yield from [Passage(NO_ROW, "", "", 0)] * FARTHEST_NEIGHBOUR
        yield from (replace(passage, turn=place) for passage in passages_of_row(row))
        before = row


def _renumber(hit: Hit, numbers: list[int]) -> Hit:
    texts = [replace(text, number=numbers[text.number]) for text in (hit.text, *hit.beside)]
    return Hit(texts[0], tuple(texts[1:]))
