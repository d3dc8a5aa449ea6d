"""Push recall: what is out of sight of a dialog and bears on its newest message, for the end of one request.

It stands in that request alone: in no turn, event or export. What is remembered is which turns came back.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from dialogs.context.retrieval.text_index import TURNS
from dialogs.context.sizes import Sizes
from dialogs.context.view import WHOLE, View
from dialogs.models import Dialog, PersonSettings, RecallChoice
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import ModelInfo
from health.levels import Thresholds
from remediation.policies.policy import limit_for_trigger
from remediation.recall.query import query_of
from remediation.recall.recall import recall, render, room_for
from remediation.tokens.calibration import output_buffer

UNKNOWN_LIMIT_TOKENS = 1_024  # for recalled text where nobody knows the model's window
MOST_PERCENT = 90  # of a limit, for request and answer: a policy that watches answers interrupts one that goes beyond


@dataclass(frozen=True, slots=True)
class Recall:
    """``text`` ends the request. ``turns`` are the seqs that came back, ``passages`` those with the parts of their
    texts; ``raw_tokens`` is the size before calibration."""

    text: str = ""
    turns: tuple[int, ...] = ()
    passages: tuple[tuple[int, int], ...] = ()
    est_tokens: int = 0
    raw_tokens: int = 0


NOTHING = Recall()


def is_wanted(dialog: Dialog) -> bool:
    """Unless the agent or the dialog's owner has it off. A proxy's requests are the program's own."""
    return dialog.agent.recall and not dialog.agent.proxy and _owners_choice.first(dialog.owner_id) is not False


def is_on(dialog: Dialog, view: View) -> bool:
    """From the first rewrite or clear on."""
    return view.base != WHOLE and is_wanted(dialog)


def limit_beside(limit: int) -> int:
    """The limit to judge a view by, so that at the usual trigger recalled text still has its share of the whole one."""
    return min(limit, limit_for_trigger(limit - room_for(limit, 0)))


def recalled_for(dialog: Dialog, view: View, sizes: Sizes, model: ModelInfo, thresholds: Thresholds) -> Recall:
    choices = _choices(dialog.pk)
    dismissed = {seq for seq, choice in choices if choice == RecallChoice.Choice.DISMISSED}
    pinned = [seq for seq, choice in choices if choice == RecallChoice.Choice.PINNED]
    hidden = _in_sight(view) | dismissed
    with TURNS.at_once(dialog.pk, hidden, pinned) as index:
        result = recall(
            index,
            hidden,
            "\n".join(_texts_of_no_turn(view)),
            query_of(view.units),
            math.floor(_room(sizes, model, thresholds) / sizes.factor),
            sizes.counter.count,
            pinned=pinned,
        )
    est_tokens = math.ceil(result.est_tokens * sizes.factor)
    return Recall(render(result), result.turns, result.passages, est_tokens, result.est_tokens)


def _room(sizes: Sizes, model: ModelInfo, thresholds: Thresholds) -> int:
    """Calibrated tokens for recalled text: its share, as far as the request leaves that free
    beside room for the answer.

    It never lifts the level of the context: what is brought back must not be what the agent clears its mind for.
    """
    window = thresholds.context_limit
    answer = output_buffer(model.output_length, window)
    ceilings = (
        sizes.limit and sizes.limit * MOST_PERCENT // 100 - answer,
        window and window - answer,
        thresholds.effective_optimal_max,
        thresholds.effective_critical_max,
    )
    free = min(ceiling for ceiling in ceilings if ceiling is not None) - sizes.prompt
    return min(UNKNOWN_LIMIT_TOKENS if sizes.limit is None else room_for(sizes.limit, 0), free)


def _in_sight(view: View) -> set[int]:
    """Turns that the view shows as they were said."""
    return {seq for unit in view.units if unit.id not in view.by_value for seq in unit.source}


def _texts_of_no_turn(view: View) -> Iterable[str]:
    return (unit.text for unit in view.units if unit.id in view.by_value or not unit.source)


@Select
def _owners_choice(owner_id: int) -> QuerySet[PersonSettings, bool]:
    return PersonSettings.objects.filter(user_id=owner_id).values_list("recall", flat=True)[:1]


@Select
def _choices(dialog_id: UUID) -> QuerySet[RecallChoice, tuple[int, str]]:
    return RecallChoice.objects.filter(dialog_id=dialog_id).order_by("seq").values_list("seq", "choice")
