"""Rewrites of the view, performed and stored as rows. People ask for them by ``actions.rewrite_requests``."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog

from dialogs.actions import rounds
from dialogs.actions.rewrite_requests import policy_with, summary_of
from dialogs.context import prepared
from dialogs.context.config import prompts_folder
from dialogs.context.limits import health_of
from dialogs.context.retrieval.recall import NOTHING, PushRecall
from dialogs.context.sizes import Sizes
from dialogs.context.spending import caching_price
from dialogs.context.units import unit_to_json
from dialogs.extension import installed_extensions
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime import auxiliary_calls, overflow_history, rewrite_progress, tracing
from dialogs.runtime.materials import Materials
from dialogs.runtime.next_call import next_prompt
from dialogs.runtime.repeats import SHORTER
from dialogs.runtime.rewrite_deadline import RewriteTooLong, within
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds import budgets
from dominds.db.prepared import insert, insert_many
from remediation.budget import Budget
from remediation.context import Assistant, Rewritten, Toolbox, Unit, Units
from remediation.decisions import Rewrite
from remediation.economy import balance_of
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from remediation.policies.policy import UNCHANGED, Policy, RewriteTask, obstacle
from remediation.policies.registry import policy_named
from remediation.policies.requested import CLEAR, rewrite_by_hand
from remediation.policies.rewriting import rewrite_by
from remediation.prompts import Prompt, load
from remediation.rewards import outcome_of, reward, reward_record, state_of
from remediation.similarity import embeddings
from remediation.strategies.pruning import fallback

log = structlog.get_logger(__name__)

Ask = Callable[[str, str, str], str]  # purpose, instructions, text; returns the answer, raises ``ProviderError``

REASON_CHARS = 400  # of the column with the reason why a rewrite was rejected
SMALLEST_UNIT_BUDGET = 200  # tokens; less leaves no room for any message


@dataclass(frozen=True, slots=True)
class Job:
    """One rewrite: its reason, its policy, and the view as that policy counts it."""

    dialog: Dialog
    materials: Materials
    decision: Rewrite
    policy: Policy
    sizes: Sizes
    task: RewriteTask
    est_before: int = 0  # tokens of the whole request; 0 in a preparation, which does not need it
    prompts: dict[str, str] = field(default_factory=dict)  # the version of each prompt that was used, by name


def perform(lease: Lease, job: Job, seconds: float = budgets.REWRITE_SECONDS.most) -> None:
    """Rewrite what the model sees, as a policy or a person decided, and store it if it became smaller."""
    decision, before = job.decision, next_prompt(job.dialog, job.materials, job.sizes)
    job = replace(job, est_before=before)
    log.info(
        "rewriting",
        dialog_id=str(job.dialog.pk),
        policy=decision.policy,
        reason=decision.reason,
        est_tokens=before,
        limit=job.sizes.limit,
        restart=job.dialog.restarts + 1,
    )
    if job.policy.notices:
        _notice(lease, job.policy.notices[0])
    with tracing.trace_rewrite(job.dialog, decision.policy, before, job.sizes.limit) as traced:
        rewritten = within_archive(_take_prepared(job) or _rewrite_in_time(lease, job, seconds))
        if rewritten.failure:
            rewritten = replace(rewritten, failure=_why_not_smaller(job, rewritten))
        run = _run_row(job, rewritten)  # made before the transaction, since it compares all units
        traced(run)
    log.info(
        "rewritten",
        dialog_id=str(job.dialog.pk),
        policy=decision.policy,
        steps=[step.strategy for step in rewritten.steps],
        est_before=run.est_before,
        est_after=run.est_after,
        failure=rewritten.failure,
    )
    if rewritten.failure:
        _store_failure(lease, job, run, rewritten)
    else:
        _store(lease, job, run, rewritten)


def _take_prepared(job: Job) -> Rewritten | None:
    """Return the rewrite prepared while the dialog rested, if it is still valid and no person asked for this one."""
    if not prepared.is_wanted(job.dialog) or job.dialog.requested_rewrite or job.materials.view.interrupted:
        return None
    result = prepared.prepared_for(job.dialog, job.policy.name, job.sizes)
    if result is None:
        return None
    job.prompts.update(result.prompts)
    return result.rewritten


def _rewrite_in_time(lease: Lease, job: Job, seconds: float) -> Rewritten:
    """Rewrite as the policy does. When its time is up, keep what must stay and the newest units, without a model."""
    units = job.sizes.units if job.policy.shows_phases else ()
    show = partial(rewrite_progress.tell, lease, job.sizes, rewrite_progress.badge(units), job.decision.reason)
    phases = rewrite_progress.Progress(show)

    def report(phase: str, tokens: int, limit: int) -> None:
        if job.policy.shows_phases and phase != "success":  # told when the rewrite is stored and its size is known
            budget = job.sizes.budget
            phases.add(phase, tokens + job.est_before - budget.view, limit + budget.beside)

    def ask(purpose: str, instructions: str, content: str) -> str:
        phases.write()
        return auxiliary_calls.ask(lease, job.dialog, purpose, instructions, content)

    is_slow = job.sizes.config.relevance == "minilm"
    toolbox = phases.with_phases_shown(toolbox_with_model(job, ask, report), is_slow)
    try:
        rewritten = rewrite_by(job.policy, job.task, within(toolbox, seconds))
    except RewriteTooLong as error:
        log.warning("rewrite_too_long", dialog_id=str(job.dialog.pk), policy=job.policy.name, seconds=seconds)
        _notice(lease, f"{error} What must stay and the newest messages are kept instead.")
        cheap = replace(toolbox, assistant=None)
        rewritten = fallback(job.task.units, cheap, job.task.limit, str(error), job.task.target)
    phases.write()
    return rewritten


def within_archive(rewritten: Rewritten) -> Rewritten:
    """Refuse a rewrite that would archive more than one transaction should store."""
    bound = budgets.ARCHIVED_UNITS
    if len(rewritten.removed) <= bound.most:
        return rewritten
    return replace(rewritten, failure=bound.sentence("The rewrite would archive"))


def job_for(dialog: Dialog, materials: Materials, decision: Rewrite) -> Job:
    policy = policy_named(decision.policy)
    sizes = materials.sizes.under(policy)
    budget = sizes.budget
    limit = budget.limit or max(budget.taken, 1)
    target = decision.target_tokens or replace(budget, limit=limit).aim
    if share := dialog.repeats.get(SHORTER):  # the provider refused a request of this size
        limit = target = min(target, int(budget.taken * share))
    task = RewriteTask(
        units=sizes.units,
        limit=max(SMALLEST_UNIT_BUDGET, budget.units_room(limit)),
        target=max(SMALLEST_UNIT_BUDGET, budget.units_room(min(limit, target))),
        fixed=budget.beside,
        standing=budget.stays,
        request_limit=limit,
        config=sizes.config,
        reason=decision.reason,
    )
    return Job(dialog, materials, decision, policy, sizes, task)


def toolbox_with_model(job: Job, ask: Ask, report: Callable[[str, int, int], None]) -> Toolbox:
    """Make a toolbox that has a model write summaries and prune. The job notes which prompts were used."""
    dialog = job.dialog

    def prompt(name: str) -> Prompt:
        loaded = load(name, prompts_folder())
        job.prompts[name] = loaded.version
        return loaded

    def summarise(text: str, tokens: int) -> str:
        by_model = partial(ask, Generation.Purpose.SUMMARY)
        return auxiliary_calls.summarise(by_model, dialog, text, tokens, prompt("hand_off_summary"))

    def failed(reason: str) -> None:
        log.warning("pruner_failed", dialog_id=str(dialog.pk), reason=reason)
        rounds.record_context_error(dialog, ContextEvent.Code.PRUNER_FAILED, reason)

    assistant = Assistant(
        ask=partial(ask, Generation.Purpose.PRUNE),
        window=lambda: auxiliary_calls.pruning_window(dialog),
        nonce=lambda: secrets.token_hex(8),
        failed=failed,
    )
    return replace(toolbox_of(job.sizes, summarise, report), assistant=assistant, prompt=prompt)


def toolbox_of(sizes: Sizes, summarise: Callable[[str, int], str], report: Callable[[str, int, int], None]) -> Toolbox:
    return Toolbox(
        count=sizes.count,
        summarise=summarise,
        relevance=embeddings.RELEVANCE[sizes.config.relevance],
        similarity=embeddings.likeness_of_wording,
        clock=lambda: time.monotonic() * 1000,
        report=report,
        prompt=lambda name: load(name, prompts_folder()),
    )


# -- storing ---------------------------------------------------------------------------------------------------------


@commits
def _notice(lease: Lease, text: str) -> None:
    with lease.change(durable=False) as change:
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=text)


def tell_obstacle(lease: Lease, dialog: Dialog, model: str, budget: Budget) -> None:
    """Say once per round and model that a rewrite is due but could not help, and what stands in its way."""
    start = f"{model} has too little room for this conversation. "
    notices = dialog.turns.filter(role=Turn.Role.NOTICE, round_number=dialog.round_number)
    if not notices.filter(text__startswith=start).exists():
        _notice(lease, start + obstacle(budget))


@commits
def _store(lease: Lease, job: Job, run: RemediationRun, rewritten: Rewritten) -> None:
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


def est_after(dialog: Dialog, materials: Materials, sizes: Sizes, rewritten: Rewritten, before: int) -> int:
    """Return the estimated tokens of the whole request after a rewrite, recalled text included."""
    budget, view = sizes.budget, materials.view
    after = replace(budget, view=rewritten.est_after).after_rewrite(before)
    standing = {unit.id: unit.messages for unit in sizes.units if unit.id not in view.by_value}
    by_value = frozenset(unit.id for unit in rewritten.units if standing.get(unit.id) != unit.messages)
    recall = PushRecall(dialog, replace(view, units=rewritten.units, base="", by_value=by_value))
    recalled = recall.within(after, sizes) if recall.is_on and not view.interrupted and not dialog.restarts else NOTHING
    return after.prompt + recalled.est_tokens


def _run_row(job: Job, rewritten: Rewritten) -> RemediationRun:
    before = job.sizes.units
    unchanged = {unit.id: unit.text for unit in before if unit.id not in job.materials.view.by_value}
    standing = {unit.id: unit.messages for unit in before}
    before_tokens = after_tokens = job.est_before
    if not rewritten.failure:
        after_tokens = est_after(job.dialog, job.materials, job.sizes, rewritten, before_tokens)
    outcome = outcome_of(before, replace(rewritten, est_before=before_tokens, est_after=after_tokens))
    limit = job.sizes.limit or 0
    price = caching_price(job.materials.served.model, job.sizes.prompt)
    balance = balance_of(before_tokens, after_tokens, price) if price else None
    return RemediationRun(
        dialog=job.dialog,
        round_number=job.dialog.round_number,
        policy=job.decision.policy,
        reason=job.decision.reason[:200],
        steps=[step.as_json() for step in rewritten.steps],
        prompts=job.prompts,
        est_before=before_tokens,
        est_after=after_tokens,
        est_source=job.sizes.source,
        limit=limit or None,
        base_position=job.dialog.last_position,
        view=[] if rewritten.failure else [_unit_json(unit, unchanged, standing) for unit in rewritten.units],
        removed=[
            {
                "id": unit.id,
                "kind": unit.kind.value,
                "est_tokens": unit.est_tokens,
                "turns": list(unit.source),
                "by": [] if rewritten.recovered else [s.strategy for s in rewritten.steps if unit.id in s.touched],
            }
            for unit in rewritten.removed
        ],
        summary=rewritten.summary,
        ledger=list(rewritten.ledger),
        recovered=rewritten.recovered,
        millis=rewritten.millis,
        saving_usd=balance.saving if balance else None,
        reread_usd=balance.reread if balance else None,
        reward=reward(outcome),
        reward_record=reward_record(
            state_of(before, before_tokens, limit),
            {"policy": job.decision.policy, "strategies": [step.strategy for step in rewritten.steps]},
            outcome,
            state_of(rewritten.units, after_tokens, limit),
        ),
        rejected=rewritten.failure[:REASON_CHARS],
    )


def _unit_json(unit: Unit, unchanged: Mapping[str, str], before: Mapping[str, object]) -> dict[str, Any]:
    """Return a unit as JSON. ``is_new`` marks a text that this rewrite wrote, not an earlier one."""
    stored = unit_to_json(unit, original=unchanged.get(unit.id) == unit.text)
    is_new = "messages" in stored and before.get(unit.id) != unit.messages
    return {**stored, "is_new": True} if is_new else stored


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
def _store_failure(lease: Lease, job: Job, run: RemediationRun, rewritten: Rewritten) -> None:
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


def _why_not_smaller(job: Job, rewritten: Rewritten) -> str:
    """Explain the failure, and how much the parts of the request beside its messages take."""
    budget = job.sizes.budget
    if budget.limit and budget.beside >= budget.limit:
        return obstacle(budget)
    beside = "Instructions, tools and reminders"
    return f"{rewritten.failure} {beside} take est. {budget.frame:,} tokens beside the messages."


def preview(dialog: Dialog, materials: Materials, verb: str) -> Rewritten:
    """Show what a rewrite would do now, without a model and without doing it. Raises ``Refusal``."""
    policy = policy_with(verb)
    job = job_for(dialog, materials, rewrite_by_hand(policy, materials.sizes.under(policy).limit))
    toolbox = toolbox_of(job.sizes, lambda text, tokens: "", lambda *_: None)
    rewritten = rewrite_by(job.policy, job.task, toolbox)
    return replace(rewritten, failure=_why_not_smaller(job, rewritten)) if rewritten.failure else rewritten
