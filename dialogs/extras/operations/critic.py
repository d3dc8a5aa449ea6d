"""The critic, which reads rewards and errors of the recent past, proposes changes, and applies those that a person
accepts."""

from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from dialogs.agents.team_file import is_stated
from dialogs.context.config import current_config, save_edits
from dialogs.context.limits import thresholds_of
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.extras.operations.dashboard import first_since
from dialogs.models import Agent
from dialogs.queries.dry_run import DryRun, dry_run
from remediation.context import StrategyStep
from remediation.critic import PastError, PastRewrite, ProposalDraft, propose
from remediation.models import ContextEvent, ContextSettings, Proposal, RemediationRun
from remediation.policies.registry import rewriting_policies

REVIEWED = timedelta(days=7)
MOST_REWRITES = 2_000
ERRORS = (
    ContextEvent.Code.TOKEN_LIMIT_EXCEEDED,
    ContextEvent.Code.BREAKER_FAILED,
    ContextEvent.Code.RECOVERY_TRIGGERED,
)


def review() -> int:
    """Propose what the last week suggests, and return the number of new proposals. Nothing is proposed while another
    proposal of the kind is open for the agent, or if the same change was decided on within the week.
    """
    drafts = propose(_rewrites(), _errors())
    return sum(_keep(draft) for draft in drafts)


def replay(proposal: Proposal) -> DryRun:
    """Try a change on the agent's newest dialogs, beside the settings in force. Raises ``UnknownModel``."""
    agent, config = proposal.agent, current_config()
    if agent is None:
        raise NotFound("The agent of this proposal is gone.")
    tried = copy(agent)
    if proposal.kind == "limit":
        tried.context_limit = proposal.change["context_limit"]
    else:
        strategy = replace(config.breaking_strategy, chain_order=tuple(proposal.change["chain_order"]))
        config = replace(config, breaking_strategy=strategy)
    return dry_run(agent, tried, config)


def accept(proposal_id: int, user: User) -> Proposal:
    """Apply a proposal: to its agent's limit, or to the chain's order for all."""
    with transaction.atomic():
        proposal = _decide(proposal_id, user, Proposal.State.ACCEPTED)
        if proposal.kind == "limit":
            _set_limit(proposal.agent, proposal.change["context_limit"])
        elif result := save_edits(_with_order(proposal.change["chain_order"])):
            raise Invalid("; ".join(f"{problem.path}: {problem.reason}" for problem in result))
    return proposal


def reject(proposal_id: int, user: User) -> Proposal:
    with transaction.atomic():
        return _decide(proposal_id, user, Proposal.State.REJECTED)


def _decide(proposal_id: int, user: User, state: str) -> Proposal:
    proposal = Proposal.objects.select_for_update().filter(pk=proposal_id).first()
    if proposal is None:
        raise NotFound("There is no such proposal.")
    if proposal.state != Proposal.State.OPEN:
        raise Conflict("already_decided", f"This proposal was {proposal.state} before.")
    proposal.state, proposal.decided_by, proposal.decided_at = state, user, timezone.now()
    proposal.save(update_fields=["state", "decided_by", "decided_at"])
    return proposal


def _set_limit(agent: Agent | None, limit: int) -> None:
    if agent is None:
        raise NotFound("The agent of this proposal is gone.")
    if agent.is_listed and is_stated(agent.pk, "context_limit"):
        raise Invalid(f"The file that lists {agent.pk} states its context_limit. Write {limit} there instead.")
    Agent.objects.filter(pk=agent.pk).update(context_limit=limit)


def _with_order(order: list[str]) -> dict[str, Any]:
    edits = ContextSettings.objects.values_list("config", flat=True).first() or {}
    strategy = {**edits.get("breaking_strategy", {}), "chain_order": order}
    return {**edits, "breaking_strategy": strategy}


def _keep(draft: ProposalDraft) -> bool:
    same = Proposal.objects.filter(agent_id=draft.agent, kind=draft.kind)
    if same.filter(state=Proposal.State.OPEN).exists():
        return False
    if same.filter(change=dict(draft.change), decided_at__gt=Now() - REVIEWED).exists():
        return False
    Proposal.objects.create(agent_id=draft.agent, kind=draft.kind, change=dict(draft.change), grounds=draft.grounds)
    return True


def _rewrites() -> list[PastRewrite]:
    reviewed = [policy.name for policy in rewriting_policies() if policy.is_reviewed]
    runs = (
        RemediationRun.attempts.counted()
        .filter(policy__in=reviewed, pk__gte=_first(RemediationRun.attempts.counted()), created_at__gt=Now() - REVIEWED)
        .select_related("dialog__agent")
        .order_by("-id")[:MOST_REWRITES]
    )
    order = current_config().breaking_strategy.chain_order
    return [
        PastRewrite(
            agent=run.dialog.agent_id,
            limit=run.limit or 0,
            window=thresholds_of(run.dialog).context_limit,
            chain_order=order,
            steps=tuple(StrategyStep(**step) for step in run.steps),
            reward=run.reward or 0.0,
            recovered=run.recovered,
        )
        for run in reversed(runs)
    ]


def _errors() -> list[PastError]:
    newest = ContextEvent.objects.filter(pk__gte=_first(ContextEvent.objects.all()), created_at__gt=Now() - REVIEWED)
    rows = newest.filter(code__in=ERRORS)
    return [PastError(agent, code) for agent, code in rows.values_list("dialog__agent_id", "code")[:MOST_REWRITES]]


def _first(rows: QuerySet[Any]) -> int:
    return first_since(rows, "created_at", timezone.now() - REVIEWED)
