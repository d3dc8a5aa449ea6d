"""Warnings, over-hits and loops of a dialog's recent past, and the tasks for operators that follow from them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet
from django.db.models.functions import Now

from dialogs.context.sent import Category, Sent, sizes_of
from dialogs.context.view import View
from dialogs.models import Dialog, Generation, Turn
from dialogs.store.change import Change
from dominds.db.prepared import Select, insert
from health.levels import Thresholds
from remediation.budget import Budget, LastRewrite
from remediation.context import Rewritten
from remediation.decisions import Rewrite
from remediation.loops import LOOP_REASON, NO_LOOP, Loop, LoopAction, ToolUse, judge_loop
from remediation.models import CleanupTask, ContextEvent, RemediationRun

WARNINGS_BEFORE_TASK = 3  # warnings within an hour
RECENT_REPLIES = 16
RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RecentContext:
    over_hits: int
    loop: Loop


def recent_context(dialog: Dialog, view: View) -> RecentContext:
    over_hits = _over_hits_since_recovery(dialog)
    return RecentContext(over_hits, _loop(dialog, _replies_since(dialog, view.base_position), min(over_hits, 2)))


def loop_in(dialog: Dialog, after: int) -> Loop:
    """Look for a loop in the agent's calls after a position, however full its context is."""
    return _loop(dialog, _replies_since(dialog, after), 0)


def _loop(dialog: Dialog, replies: list[list[dict[str, str]]], over_hits: int) -> Loop:
    """Judge the newest calls. Results are looked up only if calls are repeated. An agent that repeated itself already
    before its newest reply has been nudged.
    """
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


@Select
def _recent_warnings(dialog_id: UUID) -> QuerySet[ContextEvent, int]:
    recent = ContextEvent.objects.filter(dialog_id=dialog_id, created_at__gt=Now() - RECENT)
    warnings = recent.filter(code=ContextEvent.Code.WARNING)
    return warnings.values_list("pk", flat=True)[:WARNINGS_BEFORE_TASK]


def _over_hits_since_recovery(dialog: Dialog) -> int:
    """Count over-hits since the last recovery. Earlier ones would cause another fresh start at every turn."""
    codes = _newest_codes(dialog.pk)
    return next((index for index, code in enumerate(codes) if code == ContextEvent.Code.RECOVERY_TRIGGERED), len(codes))


@Select
def _newest_codes(dialog_id: UUID) -> QuerySet[ContextEvent, str]:
    events = ContextEvent.objects.filter(dialog_id=dialog_id, created_at__gt=Now() - RECENT).order_by("-id")
    codes = [ContextEvent.Code.OVER_HIT, ContextEvent.Code.RECOVERY_TRIGGERED]
    return events.filter(code__in=codes).values_list("code", flat=True)[:10]


def _replies_since(dialog: Dialog, after: int) -> list[list[dict[str, str]]]:
    """Return the tool calls of each reply after a position, oldest first. Older ones must not trigger a rewrite."""
    newest = _newest_calls(dialog.pk, dialog.round_number, after)
    return [list(calls) for calls in reversed(newest) if calls]


@Select
def _newest_calls(dialog_id: UUID, round_number: int, after: int) -> QuerySet[Turn, Any]:
    replies = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.ASSISTANT, round_number=round_number)
    newest = replies.filter(position__gt=after).order_by("-position")
    return newest.values_list("tool_calls", flat=True)[:RECENT_REPLIES]


def last_rewrite(dialog: Dialog) -> LastRewrite | None:
    """Return the round's newest rewrite or attempt at one, with the number of messages since; None without one."""
    row = _newest_run.first(dialog.pk, dialog.round_number)
    if row is None:
        return None
    before, after, rejected, position = row
    since = _said_since.first(dialog.pk, position) or 0
    return LastRewrite(0 if rejected else max(0, before - after), after, since)


def size_before_last_rewrite(dialog: Dialog) -> int | None:
    """Return the estimated tokens of the request that led to the rewrite in force, or None without one."""
    row = _newest_run.first(dialog.pk, dialog.round_number)
    return None if row is None or row[2] else int(row[0])


@Select
def _newest_run(dialog_id: UUID, round_number: int) -> QuerySet[RemediationRun, Any]:
    runs = RemediationRun.attempts.filter(dialog_id=dialog_id, round_number=round_number, undone_at=None)
    return runs.order_by("-pk").values_list("est_before", "est_after", "rejected", "base_position")[:1]


@Select
def _said_since(dialog_id: UUID, position: int) -> QuerySet[Turn, int]:
    """Select the number of messages that people sent after a position. There is no row if they sent none."""
    turns = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.USER, position__gt=position)
    return turns.values("dialog_id").annotate(number=Count("pk")).values_list("number", flat=True)


def is_red_by_recall(dialog: Dialog, thresholds: Thresholds) -> bool:
    """Check whether the last reported prompt is critical only because of recalled text, whose tokens are estimated by
    its share of the request's characters.

    There is no query unless the report is critical.
    """
    critical, reported = thresholds.effective_critical_max, dialog.prompt_tokens
    if critical is None or reported is None or reported <= critical or dialog.report != Dialog.Report.REPORTED:
        return False
    row = _last_sent.first(dialog.pk)
    sizes = sizes_of(Sent.of(row)) if row is not None else {}
    chars = sizes.get(Category.RECALLED, 0)
    recalled = min(reported * chars // max(1, sum(sizes.values())), chars)  # hardly any character takes two tokens
    return reported - recalled <= critical


@Select
def _last_sent(dialog_id: UUID) -> QuerySet[Generation, Any]:
    replies = Generation.objects.filter(dialog_id=dialog_id, purpose=Generation.Purpose.REPLY, prompt_tokens__gt=0)
    return replies.order_by("-id").values_list("sent", flat=True)[:1]


def after_rewrite(change: Change, budget: Budget, decision: Rewrite, rewritten: Rewritten, est_before: int) -> None:
    """Record the cause and the outcome of a rewrite, and raise a task for operators if warnings are frequent.

    A rejected rewrite does not raise one for that. An agent of priority 1 that is over its limit raises one at once.
    """
    dialog, limit = change.dialog, budget.limit
    if limit is None:
        return
    codes = ContextEvent.Code
    is_over = budget.prompt > limit
    told = [
        (codes.WARNING, f"est. {est_before:,} of {limit:,} tokens", budget.is_over_trigger),
        (codes.OVER_HIT, f"est. {est_before:,} tokens, over {limit:,}", is_over),
        (codes.LOOP_DETECTED, "The agent ran in circles, so it was started afresh.", decision.reason == LOOP_REASON),
        (codes.RECOVERY_TRIGGERED, "The context was started afresh or truncated.", rewritten.recovered),
    ]
    for code, message, holds in told:
        if holds:
            insert(ContextEvent(dialog=dialog, code=code, message=message, est_tokens=est_before, limit=limit))
    if is_over and dialog.agent.priority == 1:
        raise_task(dialog, "A priority-1 agent went over its limit.")
    if not rewritten.failure and len(_recent_warnings(dialog.pk)) == WARNINGS_BEFORE_TASK:
        raise_task(dialog, f"{WARNINGS_BEFORE_TASK} context warnings within an hour.")


def raise_task(dialog: Dialog, reason: str) -> None:
    CleanupTask.objects.get_or_create(dialog=dialog, state=CleanupTask.State.OPEN, defaults={"reason": reason})
