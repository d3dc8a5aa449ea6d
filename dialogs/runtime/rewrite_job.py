"""A rewrite as a value: what is to be rewritten, with which tools, and what came of it. Nothing is stored here."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from dialogs.actions import rounds
from dialogs.actions.rewrite_requests import policy_with
from dialogs.context.config import prompts_folder
from dialogs.context.retrieval.recall import NOTHING, PushRecall
from dialogs.context.sizes import Sizes
from dialogs.models import Dialog, Generation
from dialogs.runtime import auxiliary_calls
from dialogs.runtime.materials import Materials
from dialogs.runtime.repeats import SHORTER
from dominds import budgets
from remediation.context import Assistant, Rewritten, Toolbox
from remediation.decisions import Rewrite
from remediation.models import ContextEvent
from remediation.policies.policy import Policy, RewriteTask, obstacle
from remediation.policies.registry import policy_named
from remediation.policies.requested import rewrite_by_hand
from remediation.policies.rewriting import rewrite_by
from remediation.prompts import Prompt, load
from remediation.similarity import embeddings

log = structlog.get_logger(__name__)

Ask = Callable[[str, str, str], str]  # purpose, instructions, text; returns the answer, raises ``ProviderError``

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


def toolbox_with_model(job: Job, ask: Ask, report: Callable[[str, int, int], None], prompts: dict[str, str]) -> Toolbox:
    """Make a toolbox that has a model write summaries and prune. It notes the versions of its ``prompts``, by name."""
    dialog = job.dialog

    def prompt(name: str) -> Prompt:
        loaded = load(name, prompts_folder())
        prompts[name] = loaded.version
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


def within_archive(rewritten: Rewritten) -> Rewritten:
    """Refuse a rewrite that would archive more than one transaction should store."""
    bound = budgets.ARCHIVED_UNITS
    if len(rewritten.removed) <= bound.most:
        return rewritten
    return replace(rewritten, failure=bound.sentence("The rewrite would archive"))


def why_not_smaller(job: Job, rewritten: Rewritten) -> str:
    """Explain the failure, and how much the parts of the request beside its messages take."""
    budget = job.sizes.budget
    if budget.limit and budget.beside >= budget.limit:
        return obstacle(budget)
    beside = "Instructions, tools and reminders"
    return f"{rewritten.failure} {beside} take est. {budget.frame:,} tokens beside the messages."


def est_after(dialog: Dialog, materials: Materials, sizes: Sizes, rewritten: Rewritten, before: int) -> int:
    """Return the estimated tokens of the whole request after a rewrite, recalled text included."""
    budget, view = sizes.budget, materials.view
    after = replace(budget, view=rewritten.est_after).after_rewrite(before)
    standing = {unit.id: unit.messages for unit in sizes.units if unit.id not in view.by_value}
    by_value = frozenset(unit.id for unit in rewritten.units if standing.get(unit.id) != unit.messages)
    recall = PushRecall(dialog, replace(view, units=rewritten.units, base="", by_value=by_value))
    recalled = recall.within(after, sizes) if recall.is_on and not view.interrupted and not dialog.restarts else NOTHING
    return after.prompt + recalled.est_tokens


def preview(dialog: Dialog, materials: Materials, verb: str) -> Rewritten:
    """Show what a rewrite would do now, without a model and without doing it. Raises ``Refusal``."""
    policy = policy_with(verb)
    job = job_for(dialog, materials, rewrite_by_hand(policy, materials.sizes.under(policy).limit))
    toolbox = toolbox_of(job.sizes, lambda text, tokens: "", lambda *_: None)
    rewritten = rewrite_by(job.policy, job.task, toolbox)
    return replace(rewritten, failure=why_not_smaller(job, rewritten)) if rewritten.failure else rewritten
