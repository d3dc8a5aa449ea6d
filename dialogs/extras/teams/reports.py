"""Reports of side dialogs: the change that brings one to rest also answers the call that waits for it."""

from django.db.models.functions import Now

from dialogs.actions import messages
from dialogs.context.tool_calls import Result, store_result
from dialogs.context.view import unresolved_calls
from dialogs.errors import NotFound
from dialogs.extras.teams import rules, sight
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Turn
from dialogs.runtime.oversized_results import Judged, keep_whole
from dialogs.store.change import Change, open_change

ASK_AGENT = "ask_agent"
NEWEST = 50  # turns that are searched for the last answer; one that was compacted while it streamed has several
SUSPENDED = (
    "{name} is suspended until a person decides: {reason} Its report comes as a message, if it goes on. You may wait, "
    "end it by stop_agent, or ask anew."
)


def answer_above(change: Change, side: SideDialog) -> None:
    """Report to the parent how the side dialog under change came to rest, in the same transaction."""
    result, why = _report(change.dialog)
    closed = {"ended_at": Now(), "reason": "it was closed"} if change.dialog.closed_at else {}
    _answer(side, result, **{"answered_at": Now(), "reason": rules.shorten(why), **closed})


def refuse_above(side: SideDialog, why: str) -> None:
    """Tell the parent why the side dialog under change cannot work."""
    _answer(side, Result(f"No report. {why}", failed=True), answered_at=Now(), reason=rules.shorten(why))


def tell_suspension(side: SideDialog, reason: str) -> None:
    """Let the parent go on while a person decides about the side dialog under change."""
    _answer(side, Result(SUSPENDED.format(name=side.name, reason=reason), failed=True))


def _report(dialog: Dialog) -> tuple[Result, str]:
    """Return the last answer, and why it is no report; that is empty if it is one."""
    message = messages.newest_message(dialog)
    text = _last_answer(dialog, message.position if message else 0)
    if message and message.status == Turn.Status.ANSWERED:
        why = "" if text else "It ended without a word."
        return Result(text or why, failed=not text), why
    why = dialog.failure or ("It was closed." if dialog.closed_at else "A person stopped it.")
    words = "\n".join(filter(None, [f"No report. {why}", text and f"Its words so far: {text}"]))
    return Result(words, failed=True), why


def _last_answer(dialog: Dialog, after: int | None) -> str:
    """Return the newest answer, of which each part that was cut for a compaction is a turn."""
    parts: list[str] = []
    for turn in dialog.turns.filter(position__gt=after).exclude(role=Turn.Role.NOTICE).order_by("-position")[:NEWEST]:
        if turn.role != Turn.Role.ASSISTANT or turn.tool_calls:
            break
        parts.insert(0, turn.text)
    return "".join(parts).strip()


def _answer(side: SideDialog, result: Result, **columns: object) -> None:
    row = SideDialog.objects.filter(pk=side.pk)
    try:
        with open_change(side.parent_id) as above:
            row.update(waits=False, **columns)
            _hand_over(above, side, result)
            sight.keep_in_sight(above)
    except NotFound:  # the parent was deleted
        row.update(waits=False, **columns)


def _hand_over(above: Change, side: SideDialog, result: Result) -> None:
    """Store a report as the result of the call that waits for it, or else as a message. If the call was given up
    meanwhile, with its message, nothing is stored.
    """
    calls = {call.id for call in unresolved_calls(above.dialog)}
    if side.waits and side.call_id in calls:
        store_result(above, side.call_id, ASK_AGENT, _fit(above, side, result))
        above.dialog.changed_since_rewrite = True
        if calls == {side.call_id}:
            above.dialog.wake_at, above.wakes = None, True
    elif not side.waits and above.dialog.closed_at is None:
        said = "ended without a report" if result.failed else "reports"
        text = f"[Runtime: the side dialog {side.name} {said}.]\n{_fit(above, side, result).text}"
        messages.accept_within(above, text, f"report of {side.call_id}", tool_name=ASK_AGENT)
        above.asks_work, above.wakes = False, True  # the dialog's own key pays, not that of the request


def _fit(above: Change, side: SideDialog, result: Result) -> Result:
    """Return the report as the parent sees it: a long one is an artifact, with its beginning and its end."""
    if len(result.text) <= (chars := rules.shown_chars(result.text)):
        return result
    shown = Result(rules.beginning_and_end(result.text, chars), result.failed)
    return keep_whole(above.dialog.pk, side.call_id, Judged(result, shown))
