"""Performs rewrites of the view and stores each as a row; ``dialogs.actions.rewrite_requests`` is how people ask for them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import structlog

from dialogs.actions import rounds
from dialogs.actions.rewrite_requests import check_kind, summary_of
from dialogs.context.limits import health_of
from dialogs.context.sizes import Sizes
from dialogs.context.units import unit_to_json
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime import auxiliary_calls, breaking_history, breaking_progress
from dialogs.runtime.situation import Situation, situation_of
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds.llm.provider import ProviderError
from remediation.context import Rewritten, Toolbox, Units, total_tokens
from remediation.decisions import Rewrite
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from remediation.policies import requested
from remediation.policies.autocompaction import REQUEST_PERCENT
from remediation.rewards import outcome_of, reward, reward_record, state_of
from remediation.similarity import embeddings
from remediation.strategies.chain import break_context
from remediation.strategies.fresh_start import start_fresh
from remediation.strategies.importance import Weights, retain
from remediation.strategies.pruning import (
    PrunerProblem,
    apply_pruned,
    fallback,
    merged,
    parse_pruned,
    pruner_prompt,
    split_for,
)
from remediation.text.summaries import extractive_summary

log = structlog.get_logger(__name__)

COMPACTING = "Compacting conversation history..."
COMPACTED = "Context compacted, continuing..."
SMALLEST_UNIT_BUDGET = 200  # tokens; less leaves no room for any message


class PruningFailed(Exception):
    """Why the pruning agent's answer cannot be used; the fallback goes on."""


@dataclass(frozen=True, slots=True)
class Job:
    """One rewrite to perform: what for, on which view, with which room for units."""

    lease: Lease | None  # None: a preview, which may neither write nor ask a model
    situation: Situation
    decision: Rewrite
    sizes: Sizes
    budget: int  # tokens for units: the policy's limit less what stands in every request
    target: int

    @property
    def dialog(self) -> Dialog:
        return self.situation.dialog

    @property
    def enough(self) -> int:
        """Tokens for units that leave headroom: R15 aims at half the limit, and two thirds are still far from the trigger.

        Where what must stay takes more than half, a request that triggers no further compaction has to do.
        """
        limit, standing = self.sizes.limit or 0, self.sizes.standing - self.sizes.fixed
        whole = limit * 2 // 3 if standing <= self.target else limit * REQUEST_PERCENT // 100
        return max(self.target, whole - self.sizes.fixed)


def perform(lease: Lease, situation: Situation, decision: Rewrite) -> None:
    """Rewrite what the model sees, as a policy or a person decided, and store it if it became smaller (R10)."""
    job = _job(lease, situation, decision)
    log.info(
        "rewriting",
        dialog_id=str(job.dialog.pk),
        policy=decision.policy,
        reason=decision.reason,
        est_tokens=job.sizes.request,
        limit=job.sizes.limit,
        restart=job.dialog.restarts + 1,
    )
    if decision.policy == RemediationRun.Policy.AUTOCOMPACTION:
        _notice(lease, COMPACTING)
    rewritten = rewrite(job, _toolbox(job))
    log.info(
        "rewritten",
        dialog_id=str(job.dialog.pk),
        policy=decision.policy,
        steps=[step.strategy for step in rewritten.steps],
        est_before=rewritten.est_before,
        est_after=rewritten.est_after,
        failure=rewritten.failure,
    )
    if rewritten.failure:
        _store_failure(job, rewritten)
    else:
        _store(job, rewritten)


def _job(lease: Lease | None, situation: Situation, decision: Rewrite) -> Job:
    sizes = situation.sizes_for(decision.policy)
    limit = sizes.limit or max(sizes.request, 1)
    target = decision.target_tokens or limit // 2
    budget = max(SMALLEST_UNIT_BUDGET, limit - sizes.fixed)
    return Job(lease, situation, decision, sizes, budget, max(1, min(budget, target - sizes.fixed)))


def rewrite(job: Job, toolbox: Toolbox) -> Rewritten:
    """One way for each policy; the rules are in ``remediation``."""
    units = job.sizes.units
    match job.decision.policy:
        case RemediationRun.Policy.AUTOCOMPACTION:
            return _compact(job, toolbox)
        case RemediationRun.Policy.BREAKING:
            return break_context(units, job.sizes.config, toolbox, job.budget, job.target)
        case RemediationRun.Policy.RETENTION:
            return retain(units, job.budget, job.target, Weights(), toolbox)
        case _:
            return start_fresh(units, toolbox, job.budget)


def _compact(job: Job, toolbox: Toolbox) -> Rewritten:
    """Document B: the pruning agent, and on any failure the system message and the last five.

    A view with too little headroom would be compacted again at the next turn: then the smaller of both views is taken.
    """
    pruned: Rewritten | None = None
    try:
        pruned = _pruned_by_agent(job, toolbox)
        if not pruned.failure and pruned.est_after <= job.enough:
            return pruned
        reason = pruned.failure or f"the pruned conversation still has est. {pruned.est_after:,} tokens"
    except (PruningFailed, ProviderError) as error:
        reason = str(error)
    log.warning("pruner_failed", dialog_id=str(job.dialog.pk), reason=reason)
    rounds.record_context_error(job.dialog, ContextEvent.Code.PRUNER_FAILED, reason)
    cut = fallback(job.sizes.units, toolbox, job.budget, reason, job.target)
    is_usable = pruned is not None and not pruned.failure and pruned.est_after <= job.budget
    if pruned is not None and is_usable and (cut.failure or pruned.est_after <= cut.est_after):
        return pruned
    return cut


def _pruned_by_agent(job: Job, toolbox: Toolbox) -> Rewritten:
    assert job.lease is not None
    window = auxiliary_calls.pruning_window(job.dialog) or job.budget
    batches = split_for(job.sizes.units, window)
    replies = []
    for batch in batches.batches:
        share = max(1, job.target * total_tokens(batch) // max(1, total_tokens(job.sizes.units)))
        prompt = pruner_prompt(batch, share, secrets.token_hex(8))
        answer = auxiliary_calls.ask(
            job.lease, job.dialog, Generation.Purpose.PRUNE, prompt.instructions, prompt.content
        )
        reply = parse_pruned(answer)
        if isinstance(reply, PrunerProblem):
            raise PruningFailed(reply.reason)
        replies.append(reply)
    if not replies:
        raise PruningFailed("no part of the conversation fits the pruning agent's own window")
    return apply_pruned(job.sizes.units, merged(replies), toolbox, job.budget)


def _toolbox(job: Job) -> Toolbox:
    is_document_c = job.decision.policy in (RemediationRun.Policy.BREAKING, RemediationRun.Policy.FRESH_START)
    pill = breaking_progress.badge(job.sizes.units) if is_document_c else (None, "")

    def report(phase: str, tokens: int, limit: int) -> None:
        if is_document_c:
            assert job.lease is not None
            est_tokens, ceiling = tokens + job.sizes.fixed, limit + job.sizes.fixed
            breaking_progress.tell(job.lease, job.sizes, pill, phase, est_tokens, ceiling)

    def summarise(text: str, tokens: int) -> str:
        assert job.lease is not None
        return auxiliary_calls.summarise(job.lease, job.dialog, text, tokens) or extractive_summary(
            text, tokens, job.sizes.count_text
        )

    return toolbox_of(job.sizes, summarise, report)


def toolbox_of(sizes: Sizes, summarise: Callable[[str, int], str], report: Callable[[str, int, int], None]) -> Toolbox:
    return Toolbox(
        count=sizes.count,
        summarise=summarise,
        relevance=embeddings.relevance,
        similarity=embeddings.similarity,
        clock=lambda: time.monotonic() * 1000,
        report=report,
    )


# -- storing ---------------------------------------------------------------------------------------------------------


@commits
def _notice(lease: Lease, text: str) -> None:
    with lease.change(durable=False) as change:
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=text)


@commits
def _store(job: Job, rewritten: Rewritten) -> None:
    """The rewrite as a row, its removed units in the archive, and the old report forgotten, in one transaction."""
    assert job.lease is not None
    with job.lease.change() as change:
        dialog = change.dialog
        if dialog.history_version != job.dialog.history_version:
            return  # a person undid or cleared meanwhile: their change wins
        run = _run_row(job, rewritten)
        _archive(run, rewritten.removed)
        _after_rewrite(change, job)
        rounds.forget_report(dialog)
        change.event("remediation", **summary_of(run))
        _tell(change, job, rewritten)
        change.event("health", **health_of(dialog))
        breaking_history.after_rewrite(change, job.sizes, job.decision, rewritten)


def _run_row(job: Job, rewritten: Rewritten) -> RemediationRun:
    before, outcome = job.sizes.units, outcome_of(job.sizes.units, rewritten)
    unchanged = {unit.id: unit.text for unit in before if unit.id not in job.situation.view.by_value}
    beside = job.sizes.fixed - job.sizes.output_room
    limit = job.sizes.limit or 0
    return RemediationRun.objects.create(
        dialog=job.dialog,
        round_number=job.dialog.round_number,
        policy=job.decision.policy,
        reason=job.decision.reason[:200],
        steps=[asdict(step) for step in rewritten.steps],
        est_before=rewritten.est_before + beside,
        est_after=rewritten.est_after + beside,
        est_source=job.sizes.source,
        limit=limit or None,
        base_position=job.dialog.last_position,
        view=[unit_to_json(unit, original=unchanged.get(unit.id) == unit.text) for unit in rewritten.units],
        removed=[
            {"id": unit.id, "kind": unit.kind.value, "est_tokens": unit.est_tokens, "turns": list(unit.source)}
            for unit in rewritten.removed
        ],
        summary=rewritten.summary,
        ledger=list(rewritten.ledger),
        recovered=rewritten.recovered,
        coherence=rewritten.coherence,
        millis=rewritten.millis,
        reward=reward(outcome),
        reward_record=reward_record(
            state_of(before, limit),
            {"policy": job.decision.policy, "strategies": [step.strategy for step in rewritten.steps]},
            outcome,
            state_of(rewritten.units, limit),
        ),
    )


def _archive(run: RemediationRun, removed: Units) -> None:
    RemovedUnit.objects.bulk_create(
        RemovedUnit(
            run=run,
            dialog=run.dialog,
            unit_id=unit.id,
            kind=unit.kind.value,
            role=unit.role.value,
            est_tokens=unit.est_tokens,
            text=unit.text,
        )
        for unit in removed
    )


def _after_rewrite(change: Change, job: Job) -> None:
    dialog = change.dialog
    dialog.changed_since_rewrite = False
    dialog.restarts += 1
    if dialog.requested_rewrite != "clear":
        dialog.requested_rewrite = ""


def _tell(change: Change, job: Job, rewritten: Rewritten) -> None:
    """The events of documents B and D beside the common one."""
    match job.decision.policy:
        case RemediationRun.Policy.AUTOCOMPACTION:
            change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=COMPACTED)
        case RemediationRun.Policy.RETENTION:
            change.event(
                "context:pruned",
                original=rewritten.est_before,
                final=rewritten.est_after,
                removed=len(rewritten.removed),
                tokenReduction=rewritten.est_before - rewritten.est_after,
            )
            change.event(
                "context:summarized",
                summarized=len(rewritten.removed),
                kept=len(job.sizes.units) - len(rewritten.removed),
                summary=rewritten.summary,
            )


@commits
def _store_failure(job: Job, rewritten: Rewritten) -> None:
    """Nothing changed in what the model sees. It counts as a restart (R10), and the operator can read why."""
    assert job.lease is not None
    with job.lease.change() as change:
        by_hand = bool(change.dialog.requested_rewrite)
        _after_rewrite(change, job)
        rounds.record_context_error(
            change.dialog, ContextEvent.Code.BREAKER_FAILED, rewritten.failure, rewritten.est_before, job.sizes.limit
        )
        change.event("notice", text=f"The context could not be made smaller: {rewritten.failure}")
        breaking_history.after_rewrite(change, job.sizes, job.decision, rewritten)
        if (
            job.decision.policy == RemediationRun.Policy.BREAKING
            and job.sizes.config.recovery_mode == "error"
            and not by_hand
        ):
            change.dialog.failure = rewritten.failure
            change.end_message(Turn.Status.FAILED)


def preview(dialog: Dialog, kind: str) -> Rewritten:
    """What a rewrite would do now, without a model and without doing it. Raises ``Refusal``."""
    check_kind(kind)
    policy = requested.policy_of(kind)
    situation = situation_of(dialog)
    limit = situation.sizes_for(policy).limit or 0
    job = _job(None, situation, Rewrite(policy, "preview", limit * 8 // 10 if kind == "prune" else limit // 2))
    count = job.sizes.count_text
    toolbox = toolbox_of(job.sizes, lambda text, tokens: extractive_summary(text, tokens, count), lambda *_: None)
    if policy == RemediationRun.Policy.AUTOCOMPACTION:
        return fallback(job.sizes.units, toolbox, job.budget, "preview without the pruning agent", job.target)
    return rewrite(job, toolbox)
