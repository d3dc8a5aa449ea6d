"""Warnings, over-hits and loops of a dialog's recent past, and the tasks that they raise."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from dialogs.context.sizes import Sizes
from dialogs.context.view import View
from dialogs.models import Dialog, Turn
from dialogs.store.change import Change
from dominds.db.prepared import Select
from remediation.context import Rewritten
from remediation.decisions import BY_HAND, Rewrite
from remediation.loops import LOOP_REASON, NO_LOOP, Loop, LoopAction, ToolUse, judge_loop
from remediation.models import CleanupTask, ContextEvent, RemediationRun
from remediation.strategies.headroom import POOR_IN_A_ROW, is_poor, should_stop

WARNINGS_BEFORE_TASK = 3  # in an hour
RECENT_REPLIES = 16
RECENT = timedelta(hours=1)
POOR = (
    f"{POOR_IN_A_ROW} rewrites in a row gained little or left little room, so the next one waits until the limit is "
    "near. What must stay takes most of the context: shorten instructions and reminders, clear the agent's mind, or "
    "raise the limit."
)


@dataclass(frozen=True, slots=True)
class RecentContext:
    over_hits: int
    loop: Loop


def recent_context(dialog: Dialog, view: View) -> RecentContext:
    over_hits = _over_hits_since_recovery(dialog)
    return RecentContext(over_hits, _loop(dialog, _replies_since(dialog, view), min(over_hits, 2)))


def loop_in(dialog: Dialog, view: View) -> Loop:
    """Whatever its context does."""
    return _loop(dialog, _replies_since(dialog, view), 0)


def _loop(dialog: Dialog, replies: list[list[dict[str, str]]], over_hits: int) -> Loop:
    """Results are looked up only where calls are repeated. Nudged was who repeated itself before the newest reply."""
    if judge_loop(_uses(replies, {}), over_hits, nudged=False).action is LoopAction.NONE:
        return NO_LOOP
    ids = [call["id"] for calls in replies for call in calls]
    results = dict(dialog.turns.filter(role=Turn.Role.TOOL, tool_call_id__in=ids).values_list("tool_call_id", "text"))
    nudged = judge_loop(_uses(replies[:-1], results), over_hits, nudged=False).action is LoopAction.NUDGE
    return judge_loop(_uses(replies, results), over_hits, nudged=nudged)


def _uses(replies: list[list[dict[str, str]]], results: dict[str, str]) -> list[ToolUse]:
    return [
        (call["name"], call["arguments"], *([results[call["id"]]] if call["id"] in results else []))
        for calls in replies
        for call in calls
    ]


def _recent(dialog: Dialog, code: str) -> int:
    return ContextEvent.objects.filter(dialog=dialog, code=code, created_at__gt=Now() - RECENT).count()


def _over_hits_since_recovery(dialog: Dialog) -> int:
    """A recovery answers the over-hits before it; counting them again would start afresh at every turn."""
    codes = _newest_codes(dialog.pk)
    return next((index for index, code in enumerate(codes) if code == ContextEvent.Code.RECOVERY_TRIGGERED), len(codes))


@Select
def _newest_codes(dialog_id: UUID) -> QuerySet[ContextEvent, str]:
    events = ContextEvent.objects.filter(dialog_id=dialog_id, created_at__gt=Now() - RECENT).order_by("-id")
    codes = [ContextEvent.Code.OVER_HIT, ContextEvent.Code.RECOVERY_TRIGGERED]
    return events.filter(code__in=codes).values_list("code", flat=True)[:10]


def _replies_since(dialog: Dialog, view: View) -> list[list[dict[str, str]]]:
    """The tool calls of each reply since the newest rewrite, oldest first:
    what a rewrite answered must not trigger the next."""
    newest = _newest_calls(dialog.pk, dialog.round_number, view.base_position)
    return [list(calls) for calls in reversed(newest) if calls]


@Select
def _newest_calls(dialog_id: UUID, round_number: int, after: int) -> QuerySet[Turn, Any]:
    replies = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.ASSISTANT, round_number=round_number)
    newest = replies.filter(position__gt=after).order_by("-position")
    return newest.values_list("tool_calls", flat=True)[:RECENT_REPLIES]


def were_poor(dialog: Dialog) -> bool:
    """Whether the last rewrites of the round, those by hand apart, gained too little to go on like that."""
    return should_stop(_poor(dialog, POOR_IN_A_ROW))


def _poor(dialog: Dialog, newest: int) -> list[bool]:
    sizes = _newest_sizes(newest)(dialog.pk, dialog.round_number)
    return [is_poor(before, after, limit or before) for before, after, limit in sizes]


@cache
def _newest_sizes(newest: int) -> Select[Any]:
    def sizes(dialog_id: UUID, round_number: int) -> Any:
        runs = RemediationRun.objects.filter(dialog_id=dialog_id, round_number=round_number, undone_at=None)
        result = runs.exclude(reason=BY_HAND).order_by("-pk")
        return result.values_list("est_before", "est_after", "limit")[:newest]

    return Select(sizes)


def after_rewrite(
    change: Change, sizes: Sizes, judged_limit: int | None, decision: Rewrite, rewritten: Rewritten
) -> None:
    """Record what led to a rewrite and what came of it, and raise the operator's task when it happens often."""
    dialog, limit = change.dialog, sizes.limit
    if limit is None:
        return
    if sizes.request > (judged_limit or limit) * sizes.config.warning_threshold:
        _record(dialog, ContextEvent.Code.WARNING, f"est. {sizes.request:,} of {limit:,} tokens", sizes)
    over = sizes.request > limit
    if over:
        _record(dialog, ContextEvent.Code.OVER_HIT, f"est. {sizes.request:,} tokens, over {limit:,}", sizes)
    if decision.reason == LOOP_REASON:
        _record(dialog, ContextEvent.Code.LOOP_DETECTED, "The agent ran in circles, so it was started afresh.", sizes)
    if rewritten.recovered and not rewritten.failure:
        _record(dialog, ContextEvent.Code.RECOVERY_TRIGGERED, "The context was started afresh or truncated.", sizes)
    beside = sizes.fixed - sizes.output_room
    is_own = not rewritten.failure and decision.reason != BY_HAND
    if is_own and is_poor(rewritten.est_before + beside, rewritten.est_after + beside, limit):
        _note_poor_rewrites(change)
    if over and dialog.agent.priority == 1:
        raise_task(dialog, "A priority-1 agent went over its limit.")
    elif _recent(dialog, ContextEvent.Code.WARNING) >= WARNINGS_BEFORE_TASK:
        raise_task(dialog, f"{WARNINGS_BEFORE_TASK} context warnings within an hour.")


def _note_poor_rewrites(change: Change) -> None:
    """Once for those that follow each other."""
    poor = _poor(change.dialog, POOR_IN_A_ROW + 1)
    if should_stop(poor[:POOR_IN_A_ROW]) and not should_stop(poor[1:]):
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=POOR)
        raise_task(change.dialog, POOR)


def raise_task(dialog: Dialog, reason: str) -> None:
    CleanupTask.objects.get_or_create(dialog=dialog, state=CleanupTask.State.OPEN, defaults={"reason": reason})


def _record(dialog: Dialog, code: str, message: str, sizes: Sizes) -> None:
    ContextEvent.objects.create(dialog=dialog, code=code, message=message, est_tokens=sizes.request, limit=sizes.limit)
