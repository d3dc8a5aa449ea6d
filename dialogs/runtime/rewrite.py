"""Rewrites of the view, made and stored. People ask for them by ``actions.rewrite_requests``."""

from dataclasses import replace
from functools import partial

import structlog

from dialogs.context import prepared
from dialogs.context.prepared import Made
from dialogs.models import Dialog, Turn
from dialogs.runtime import auxiliary_calls, rewrite_progress, rewrite_rows, tracing
from dialogs.runtime.next_call import next_prompt
from dialogs.runtime.rewrite_deadline import RewriteTooLong, within
from dialogs.runtime.rewrite_job import Job, toolbox_with_model, why_not_smaller, within_archive
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds import budgets
from remediation.budget import Budget
from remediation.policies.policy import obstacle
from remediation.policies.rewriting import rewrite_by
from remediation.strategies.pruning import fallback

log = structlog.get_logger(__name__)


def perform(lease: Lease, job: Job, seconds: float = budgets.REWRITE_SECONDS.most) -> None:
    """Rewrite what the model sees, as a policy or a person decided, and store it if it became smaller."""
    dialog, decision, sizes = job.dialog, job.decision, job.sizes
    before = next_prompt(dialog, job.materials, sizes)
    log.info(
        "rewriting",
        dialog_id=str(dialog.pk),
        policy=decision.policy,
        reason=decision.reason,
        est_tokens=before,
        limit=sizes.limit,
        restart=dialog.restarts + 1,
    )
    if job.policy.notices:
        _notice(lease, job.policy.notices[0])
    with tracing.trace_rewrite(dialog, decision.policy, before, sizes.limit) as traced:
        made = _take_prepared(job) or _make_in_time(lease, job, before, seconds)
        rewritten = within_archive(made.rewritten)
        if rewritten.failure:
            rewritten = replace(rewritten, failure=why_not_smaller(job, rewritten))
        run = rewrite_rows.run_of(job, replace(made, rewritten=rewritten), before)
        traced(run)
    log.info(
        "rewritten",
        dialog_id=str(dialog.pk),
        policy=decision.policy,
        steps=[step.strategy for step in rewritten.steps],
        est_before=run.est_before,
        est_after=run.est_after,
        failure=rewritten.failure,
    )
    if rewritten.failure:
        rewrite_rows.store_failure(lease, job, run, rewritten)
    else:
        rewrite_rows.store(lease, job, run, rewritten)


def _take_prepared(job: Job) -> Made | None:
    """Return the rewrite prepared while the dialog rested, if it is still valid and no person asked for this one."""
    if not prepared.is_wanted(job.dialog) or job.dialog.requested_rewrite or job.materials.view.interrupted:
        return None
    return prepared.prepared_for(job.dialog, job.policy.name, job.sizes)


def _make_in_time(lease: Lease, job: Job, before: int, seconds: float) -> Made:
    """Rewrite as the policy does. When its time is up, keep what must stay and the newest units, without a model."""
    units = job.sizes.units if job.policy.shows_phases else ()
    show = partial(rewrite_progress.tell, lease, job.sizes, rewrite_progress.badge(units), job.decision.reason)
    phases = rewrite_progress.Progress(show)

    def report(phase: str, tokens: int, limit: int) -> None:
        if job.policy.shows_phases and phase != "success":  # told when the rewrite is stored and its size is known
            budget = job.sizes.budget
            phases.add(phase, tokens + before - budget.view, limit + budget.beside)

    def ask(purpose: str, instructions: str, content: str) -> str:
        phases.write()
        return auxiliary_calls.ask(lease, job.dialog, purpose, instructions, content)

    prompts: dict[str, str] = {}
    is_slow = job.sizes.config.relevance == "minilm"
    toolbox = phases.with_phases_shown(toolbox_with_model(job, ask, report, prompts), is_slow)
    try:
        rewritten = rewrite_by(job.policy, job.task, within(toolbox, seconds))
    except RewriteTooLong as error:
        log.warning("rewrite_too_long", dialog_id=str(job.dialog.pk), policy=job.policy.name, seconds=seconds)
        _notice(lease, f"{error} What must stay and the newest messages are kept instead.")
        cheap = replace(toolbox, assistant=None)
        rewritten = fallback(job.task.units, cheap, job.task.limit, str(error), job.task.target)
    phases.write()
    return Made(rewritten, prompts)


def tell_obstacle(lease: Lease, dialog: Dialog, model: str, budget: Budget) -> None:
    """Say once per round and model that a rewrite is due but could not help, and what stands in its way."""
    start = f"{model} has too little room for this conversation. "
    notices = dialog.turns.filter(role=Turn.Role.NOTICE, round_number=dialog.round_number)
    if not notices.filter(text__startswith=start).exists():
        _notice(lease, start + obstacle(budget))


@commits
def _notice(lease: Lease, text: str) -> None:
    with lease.change(durable=False) as change:
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=text)
