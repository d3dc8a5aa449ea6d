"""smolagents repeats its newest message after a call that failed: without the call, and with its outcome behind it."""

import re
from itertools import islice
from uuid import UUID

from django.db.models import F

from dialogs.extras.v1.exchanges import DISTINCT_CHARS
from dialogs.extras.v1.history import Call, ClientMessage
from dialogs.extras.v1.likeness import Fit, fit
from dialogs.extras.v1.matching.incoming import Candidate, Incoming
from dialogs.extras.v1.matching.matcher import Matcher
from dialogs.extras.v1.transcripts import CANDIDATES, arguments_of, calls_of, messages_in
from dialogs.models import Turn
from dialogs.runtime.client_tools import UNANSWERED
from dialogs.state import State

RETRY_TURNS = 64  # of calls that failed one after another, with their results
WORD = re.compile(r"\S+")


def find(incoming: Incoming) -> Candidate | None:
    """Return the one of the newest dialogs that waits for results, and whose newest message is repeated with them."""
    conversation = incoming.conversation
    asked = "\n\n".join(one.text for one in conversation.whole[len(conversation.before) :])
    if conversation.results or conversation.attached or len(asked) < DISTINCT_CHARS:
        return None
    newest = incoming.dialogs.filter(state=State.IDLE).values("pk")[:CANDIDATES]
    waiting = Turn.objects.filter(
        dialog__in=newest, role=Turn.Role.ASSISTANT, text="", tool_calls__isnull=False, seq=F("dialog__last_turn_seq")
    )
    results = [result for turn in list(waiting) if (result := _with_outcome(incoming, turn, asked))]
    return results[0] if len(results) == 1 else None


def _with_outcome(incoming: Incoming, turn: Turn, asked: str) -> Candidate | None:
    """Return the dialog of ``turn``, which holds the calls, if ``asked`` tells their outcome behind what is known."""
    calls = calls_of(turn)
    outcome = asked[_end_of_known(turn.dialog_id, asked) :].strip()
    if not outcome or outcome == asked.strip() or not any(_names(call, outcome) for call in calls):
        return None
    stored = tuple(incoming.comparable(messages_in(turn.dialog_id)))
    if not incoming.history and len(stored) == 1:
        result: Fit | None = Fit(True, 0, 0)
    else:
        result = fit(incoming.history, stored[:-1])
    if result is None:
        return None
    results = tuple(
        ClientMessage("tool", outcome if _names(call, outcome) else UNANSWERED.text, call_id=call.id) for call in calls
    )
    return Candidate(turn.dialog_id, turn.seq, stored, len(stored) - 1, result, results=results)


def _end_of_known(dialog_id: UUID, asked: str) -> int:
    """Return where a message stops repeating a dialog's newest message and the results of its calls; 0 where it
    does not.

    It is 0, too, where something else was answered.
    """
    placed = Turn.objects.filter(dialog=dialog_id, position__isnull=False).order_by("-position")
    known: list[str] = []
    for turn in placed.exclude(role=Turn.Role.NOTICE)[:RETRY_TURNS]:
        if turn.role == Turn.Role.ASSISTANT and turn.text:
            return 0
        known = [*turn.text.split(), *known]
        if turn.role == Turn.Role.USER:
            words = list(islice(WORD.finditer(asked), len(known)))
            return words[-1].end() if known and [word[0] for word in words] == known else 0
    return 0


def _names(call: Call, text: str) -> bool:
    """Check whether a text mentions a call: its tool's name in quotation marks, or the name and all its arguments."""
    name = re.escape(call.name)
    if re.search(rf"""(["'`‘“«]){name}["'`’”»]""", text):
        return True
    values = arguments_of(call)
    return bool(values and re.search(rf"\b{name}\b", text) and all(value in text for value in values))


MATCHER = Matcher("smolagents", find)
