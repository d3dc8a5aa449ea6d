"""Compaction for programs: a conversation is rewritten as by the button of its page, and an item stands for it.

The item names a place in a dialog. When it comes back, the conversation goes on there: the model sees what the rewrite
left, the archive has the rest, and a person who undoes the rewrite brings all of it back.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dialogs.actions import rewrite_requests
from dialogs.actions.access import visible_dialog
from dialogs.context.view import view_of
from dialogs.errors import NotFound
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.health import COUNTS, WITHOUT_ANSWER
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.telling import Telling
from dialogs.extras.v1.wire import ChatBody, Prior
from dialogs.models import ApiKey, Dialog, Generation
from remediation.models import RemediationRun

VERB = "summarize"
PREFACE = "This is what was said before, as it was compacted:"
NOTHING = "compaction_nothing_to_summarize"
SHARE_PERCENT = 80  # of the window, if the program names no size

Teller = Callable[[ChatBody, Compacted, str], None]


def tell_text(chat: ChatBody, compacted: Compacted, source: str) -> None:
    """Put the text of a compaction in the place of all that was said before it. One without text is that of a summary
    that failed, and stands for nothing.
    """
    if not compacted.text:
        return
    chat.forget()
    chat.say("user", f"{PREFACE}\n\n{compacted.text}", source)
    chat.say_again(compacted.tail, source)


def tell_nothing(chat: ChatBody, compacted: Compacted, source: str) -> None:
    """Leave out what a newer compaction stands for, too: a loop sends all of its compactions back each time."""
    chat.forget()


def teller_for(key: ApiKey) -> Teller:
    """Return what tells the conversation itself, word for word, as long as its dialog is kept."""

    def tell(chat: ChatBody, compacted: Compacted, source: str) -> None:
        try:
            if compacted.dialog_id is None or not compacted.text:
                raise NotFound
            dialog = visible_dialog(compacted.dialog_id, key.owner)
        except NotFound:
            return tell_text(chat, compacted, source)
        chat.forget()
        Telling(dialog).say_until(chat, compacted.position, source)
        if len(chat.messages) == chat.instructions_end:
            return tell_text(chat, compacted, source)
        chat.say_again(compacted.tail, source)
        return None

    return tell


def is_due(request: ChatRequest, threshold: int, known_tokens: int = 0) -> bool:
    """Check whether a request is larger than a program wants it: than ``threshold``, or most of the window."""
    _, served = conversations.agent_of(request)
    window = served.thresholds.context_limit
    limits = [*([threshold] if threshold else []), *([window * SHARE_PERCENT // 100] if window else [])]
    return bool(limits) and known_tokens + est_tokens(request) > min(limits)


def begin(key: ApiKey, prior: Prior) -> Run:
    """Find or make the dialog of a conversation and ask for its rewrite. Raises ``ApiError`` or ``Refusal``."""
    if not prior.has_any:
        raise ApiError(400, NOTHING, "Nothing was answered yet, so there is nothing to compact.", param=prior.param)
    run = conversations.begin(key, prior.request)
    rewrite_requests.request(run.dialog_id, VERB, key.owner)
    return run


@dataclass(frozen=True, slots=True)
class Outcome:
    """A compaction that ended, with the counts of its model calls where all were reported."""

    compacted: Compacted
    usage: dict[str, int] | None


def outcome_of(run: Run, prior: Prior) -> Outcome | None:
    """Return how the rewrite ended; None while it is under way. One that could not help leaves all as it was."""
    dialog = Dialog.objects.select_related("agent").get(pk=run.dialog_id)
    if dialog.requested_rewrite:
        return None
    if not RemediationRun.attempts.filter(dialog=dialog, pk__gt=run.after_rewrite).exists():
        raise ApiError(503, "compaction_unavailable", dialog.failure or "The conversation could not be compacted.")
    view = view_of(dialog)
    text = "\n\n".join(unit.text for unit in view.units)
    calls = list(Generation.objects.filter(dialog=dialog, pk__gt=run.after_generation).exclude(purpose="reply"))
    calls = [call for call in calls if call.outcome not in WITHOUT_ANSWER]
    is_known = all(getattr(call, name) is not None for call in calls for name in COUNTS)
    usage = {name: sum(getattr(call, name) for call in calls) for name in COUNTS} if is_known else None
    return Outcome(Compacted(dialog.pk, view.position, text, prior.tail), usage)
