"""Push recall, which ends one request with passages that have left the context and bear on the newest message.

They are part of that request alone, and of no turn, event or export. Only the numbers of their turns are stored.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from dialogs.context.retrieval.meanings import MEANINGS
from dialogs.context.retrieval.text_index import TURNS
from dialogs.context.sizes import Sizes
from dialogs.context.view import WHOLE, View
from dialogs.models import Dialog, PersonSettings, RecallChoice, Round, Turn
from dominds.db.prepared import Select
from remediation.budget import Budget
from remediation.recall.query import query_of
from remediation.recall.recall import SMALLEST_BUDGET, Allowance, InSight, recall


@dataclass(frozen=True, slots=True)
class Recall:
    """The recalled text, which ends the request.

    ``turns`` are the seqs of its turns. ``passages`` has for each passage its turn's seq, its number in that turn, and
    for each sentence that no longer holds its end in the passage and the turn that says something newer.
    ``raw_tokens`` is the size before calibration.
    """

    text: str = ""
    turns: tuple[int, ...] = ()
    passages: tuple[tuple[int, ...], ...] = ()
    est_tokens: int = 0
    raw_tokens: int = 0


NOTHING = Recall()


def is_wanted(dialog: Dialog) -> bool:
    """Check whether agent and owner want recall. A proxy's requests are the program's own, so it has none."""
    return dialog.agent.recall and dialog.agent.kind.recalls and _owners_choice.first(dialog.owner_id) is not False


class PushRecall:
    """The recall for the next request of a dialog. Whether it is on is looked up once, when first needed."""

    def __init__(self, dialog: Dialog, view: View) -> None:
        self._dialog, self._view = dialog, view

    @functools.cached_property
    def is_on(self) -> bool:
        """Check whether recall is on: from the first rewrite or clear on, where it is wanted."""
        return self._view.base != WHOLE and is_wanted(self._dialog)

    def within(self, budget: Budget, sizes: Sizes) -> Recall:
        """Recall as much as the budget of the request has room for."""
        room = math.floor(budget.recall_room() / sizes.factor)
        if room < SMALLEST_BUDGET:
            return NOTHING
        dialog_id = self._dialog.pk
        choices = _choices(dialog_id)
        dismissed = {seq for seq, choice in choices if choice == RecallChoice.Choice.DISMISSED}
        pinned = [seq for seq, choice in choices if choice == RecallChoice.Choice.PINNED]
        hidden = _in_sight(self._view) | dismissed
        query = query_of(self._view.units)
        with TURNS.at_once(dialog_id, hidden, pinned) as index:
            may_compare = MEANINGS.is_started or index.knows_meaning  # if not, the configuration need not be read
            compares_meanings = may_compare and sizes.config.relevance == "minilm"
            if compares_meanings and index.knows_meaning:
                query = replace(query, meaning=MEANINGS.of(query.newest))
            recalled = recall(
                index,
                query,
                InSight(hidden, "\n".join(_texts_of_no_turn(self._view))),
                Allowance(room, sizes.counter.count),
                pinned=pinned,
                since_clear=self._since_clear(),
            )
            if compares_meanings and MEANINGS.is_started:
                MEANINGS.note(dialog_id, index.lacking_meaning(hidden))
        est_tokens = math.ceil(recalled.est_tokens * sizes.factor)
        return Recall(recalled.text, recalled.turns, recalled.passages, est_tokens, recalled.est_tokens)

    def _since_clear(self) -> list[int] | None:
        """Return the seqs of the round's turns, or None if it did not begin by a clear."""
        dialog_id, number = self._dialog.pk, self._dialog.round_number
        if number == 1 or _cause.first(dialog_id, number) == Round.Cause.UNDO:
            return None
        return list(_of_round(dialog_id, number))


def _in_sight(view: View) -> set[int]:
    """Return the turns that the view shows as they were said."""
    return {seq for unit in view.units if unit.id not in view.by_value for seq in unit.source}


def _texts_of_no_turn(view: View) -> Iterable[str]:
    return (unit.text for unit in view.units if unit.id in view.by_value or not unit.source)


@Select
def _of_round(dialog_id: UUID, round_number: int) -> QuerySet[Turn, int]:
    return Turn.objects.filter(dialog_id=dialog_id, round_number=round_number).values_list("seq", flat=True)


@Select
def _cause(dialog_id: UUID, number: int) -> QuerySet[Round, str]:
    return Round.objects.filter(dialog_id=dialog_id, number=number).values_list("cause", flat=True)[:1]


@Select
def _owners_choice(owner_id: int) -> QuerySet[PersonSettings, bool]:
    return PersonSettings.objects.filter(user_id=owner_id).values_list("recall", flat=True)[:1]


@Select
def _choices(dialog_id: UUID) -> QuerySet[RecallChoice, tuple[int, str]]:
    return RecallChoice.objects.filter(dialog_id=dialog_id).order_by("seq").values_list("seq", "choice")
