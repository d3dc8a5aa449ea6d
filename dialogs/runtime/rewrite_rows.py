"""Rewrites as rows. A rewrite is stored in one transaction with all that follows from it."""

from dataclasses import replace
from typing import Any

from dialogs.actions import rounds
from dialogs.actions.rewrite_requests import summary_of
from dialogs.context.limits import health_of
from dialogs.context.prepared import Made
from dialogs.context.spending import caching_price
from dialogs.context.units import unit_to_json
from dialogs.extension import installed_extensions
from dialogs.models import Turn
from dialogs.runtime import overflow_history, rewrite_progress
from dialogs.runtime.rewrite_job import Job, est_after
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds.db.prepared import insert, insert_many
from remediation.context import Rewritten, Unit, Units
from remediation.economy import balance_of
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from remediation.policies.policy import UNCHANGED
from remediation.policies.requested import CLEAR
from remediation.rewards import outcome_of, reward, reward_record, state_of

REASON_CHARS = 400  # of the column with the reason why a rewrite was rejected


def run_of(job: Job, made: Made, before_tokens: int) -> RemediationRun:
    """Make the row of a rewrite. Call it before the transaction that stores it, since it compares all units.

    ``before_tokens`` is the estimate for the whole request before the rewrite.
    """
    dialog, decision, sizes, rewritten = job.dialog, job.decision, job.sizes, made.rewritten
    after_tokens = before_tokens
    if not rewritten.failure:
        after_tokens = est_after(dialog, job.materials, sizes, rewritten, before_tokens)
    outcome = outcome_of(sizes.units, replace(rewritten, est_before=before_tokens, est_after=after_tokens))
    limit = sizes.limit or 0
    price = caching_price(job.materials.served.model, sizes.prompt)
    balance = balance_of(before_tokens, after_tokens, price) if price else None
    return RemediationRun(
        dialog=dialog,
        round_number=dialog.round_number,
        policy=decision.policy,
        reason=decision.reason[:200],
        steps=[step.as_json() for step in rewritten.steps],
        prompts=made.prompts,
        est_before=before_tokens,
        est_after=after_tokens,
        est_source=sizes.source,
        limit=limit or None,
        base_position=dialog.last_position,
        view=[] if rewritten.failure else _view_json(job, rewritten.units),
        removed=[_removed_json(rewritten, unit) for unit in rewritten.removed],
        summary=rewritten.summary,
        ledger=list(rewritten.ledger),
        recovered=rewritten.recovered,
        millis=rewritten.millis,
        saving_usd=balance.saving if balance else None,
        reread_usd=balance.reread if balance else None,
        reward=reward(outcome),
        reward_record=reward_record(
            state_of(sizes.units, before_tokens, limit),
            {"policy": decision.policy, "strategies": [step.strategy for step in rewritten.steps]},
            outcome,
            state_of(rewritten.units, after_tokens, limit),
        ),
        rejected=rewritten.failure[:REASON_CHARS],
    )


def _view_json(job: Job, after: Units) -> list[dict[str, Any]]:
    """Return the new view as JSON. ``is_new`` marks the texts that this rewrite wrote."""
    before = {unit.id: unit for unit in job.sizes.units}
    view = []
    for unit in after:
        former = before.get(unit.id)
        is_original = former is not None and former.text == unit.text and unit.id not in job.materials.view.by_value
        stored = unit_to_json(unit, original=is_original)
        if "messages" in stored and (former is None or former.messages != unit.messages):
            stored["is_new"] = True
        view.append(stored)
    return view


def _removed_json(rewritten: Rewritten, unit: Unit) -> dict[str, Any]:
    """Return a removed unit as JSON, with the strategies that took part in its removal."""
    by = [] if rewritten.recovered else [step.strategy for step in rewritten.steps if unit.id in step.touched]
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "est_tokens": unit.est_tokens,
        "turns": list(unit.source),
        "by": by,
    }


@commits
def store(lease: Lease, job: Job, run: RemediationRun, rewritten: Rewritten) -> None:
    """Store the rewrite, put its removed units into the archive, and forget the old report, in one transaction."""
    with lease.change() as change:
        dialog = change.dialog
        if dialog.history_version != job.dialog.history_version:
            return  # a person undid or cleared meanwhile: their change wins
        insert(run)
        _archive(run, rewritten.removed)
        _after_rewrite(change)
        rounds.forget_report(dialog)
        if job.policy.shows_phases and not rewritten.recovered:
            pill, limit = rewrite_progress.badge(job.sizes.units), job.task.limit + job.sizes.budget.beside
            success = ("success", run.est_after, limit)
            rewrite_progress.tell_within(change, job.sizes, pill, job.decision.reason, success)
        change.event("remediation", **summary_of(run))
        for extension in installed_extensions():
            extension.rewritten(job.dialog, run)
        _tell(change, job, replace(rewritten, est_before=run.est_before, est_after=run.est_after))
        change.event("health", **health_of(dialog, job.materials.served.thresholds))
        overflow_history.after_rewrite(change, job.sizes.budget, job.decision, rewritten, run.est_before)


def _archive(run: RemediationRun, removed: Units) -> None:
    insert_many(
        [
            RemovedUnit(
                run_id=run.pk,
                dialog_id=run.dialog_id,
                unit_id=unit.id,
                kind=unit.kind.value,
                role=unit.role.value,
                est_tokens=unit.est_tokens,
                text=unit.text,
            )
            for unit in removed
        ]
    )


def _after_rewrite(change: Change) -> None:
    dialog = change.dialog
    dialog.changed_since_rewrite = False
    dialog.restarts += 1
    if dialog.requested_rewrite != CLEAR:
        dialog.requested_rewrite = ""


def _tell(change: Change, job: Job, rewritten: Rewritten) -> None:
    """Store the notice and the events of this policy, beside the event that every rewrite has."""
    if job.policy.notices:
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=job.policy.notices[1])
    for kind, values in job.policy.events(job.sizes.units, rewritten):
        change.event(kind, **values)


@commits
def store_failure(lease: Lease, job: Job, run: RemediationRun, rewritten: Rewritten) -> None:
    """Store a failed rewrite with its reward. The model's view stays as it was. The failure counts as a restart, and is
    an error only if the request does not fit.
    """
    reason = rewritten.failure
    overflows = not job.sizes.budget.fits
    with lease.change() as change:
        by_hand = bool(change.dialog.requested_rewrite)
        insert(run)
        _after_rewrite(change)
        if overflows:
            rounds.record_context_error(
                change.dialog, ContextEvent.Code.BREAKER_FAILED, reason, run.est_before, job.sizes.limit
            )
        if job.policy.notices:
            change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=UNCHANGED)
        change.event("notice", text=f"The context could not be made smaller: {reason}")
        overflow_history.after_rewrite(change, job.sizes.budget, job.decision, rewritten, run.est_before)
        if overflows and job.policy.failure_ends_message(job.sizes.config) and not by_hand:
            change.dialog.failure = reason
            change.end_message(Turn.Status.FAILED)
