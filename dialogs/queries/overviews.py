"""Dialogs and agents as programs see them: rows, with what the catalog says about their models now."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import structlog
from django.db.models import Model

from dialogs.context import limits
from dialogs.context.config import current_config
from dialogs.errors import DAMAGED
from dialogs.models import Agent, Dialog, Question
from dialogs.store import json_shapes
from dominds.llm.catalog.catalog import UnknownModel
from remediation.config import ContextConfig, effective_limit

log = structlog.get_logger(__name__)

Row = TypeVar("Row", bound=Model)


def describe_agents(agents: Iterable[Agent]) -> list[dict[str, Any]]:
    config = current_config()
    return list(_readable(agents, lambda agent: _of_agent(agent, config)))


def _of_agent(agent: Agent, config: ContextConfig) -> dict[str, Any]:
    """Describe an agent. ``model_context_limit`` is the window and ``context_limit`` the agent's budget, in tokens."""
    reason = limits.unusable_reason(agent)
    window = _window(agent)
    choice = limits.policy_of(agent)
    return {
        "id": agent.pk,
        "name": str(agent),
        "provider": agent.provider,
        "model": agent.model,
        "model_context_limit": window,
        "context_limit": effective_limit(config, agent.context_limit, agent.llm_type, agent.priority, window),
        "context_policy": choice.policy.name,
        "context_policy_problem": choice.problem or None,
        "critical_policy": agent.critical_policy,
        "tool_approval": agent.tool_approval,
        "priority": agent.priority,
        "priority_areas": list(agent.headings_kept_first),
        "default": agent.is_default,
        "usable": not reason,
        "reason": reason or None,
    }


def _window(agent: Agent) -> int | None:
    try:
        return limits.thresholds_of_model(limits.model_of(agent)).context_limit
    except UnknownModel:
        return None


def describe_dialogs(dialogs: Iterable[Dialog]) -> list[dict[str, Any]]:
    """Describe dialogs, which should be read with ``agent`` and ``group``. One query finds all their open questions."""
    rows = list(dialogs)
    waiting = {row.dialog_id: row for row in Question.objects.filter(dialog__in=rows, state=Question.State.OPEN)}
    return list(_readable(rows, lambda row: _overview(row, waiting.get(row.pk))))


def _readable(rows: Iterable[Row], describe: Callable[[Row], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Describe the rows, and leave out unreadable ones, which must not spoil the others."""
    for row in rows:
        try:
            yield describe(row)
        except DAMAGED:
            log.exception("row_left_out", row=str(row.pk))


def describe_dialog(dialog: Dialog) -> dict[str, Any]:
    return _overview(dialog, dialog.questions.filter(state=Question.State.OPEN).first())


def _overview(dialog: Dialog, question: Question | None) -> dict[str, Any]:
    choice = limits.policy_of(dialog)
    return {
        "id": str(dialog.pk),
        "agent": dialog.agent_id,
        "title": dialog.title,
        "round": dialog.round_number,
        "state": dialog.state,
        "health": limits.health_of(dialog),
        "question": question and {"id": str(question.pk), "kind": question.kind, "text": question.text},
        "policy": choice.policy.name,
        "policy_problem": choice.problem or None,
        "provider": dialog.provider_id,
        "model": dialog.model_id,
        "failure": dialog.failure or None,
        "cost_usd": json_shapes.usd(dialog.known_cost),
        "unpriced_generations": dialog.unpriced_generations,
        "budget_usd": json_shapes.usd(dialog.budget_in_force),
        "forked_from": str(dialog.forked_from_id) if dialog.forked_from_id else None,
        "own_from": dialog.own_from,
        "group": dialog.group.name if dialog.group else None,
        "last_turn_seq": dialog.last_turn_seq,
        "last_event_seq": dialog.last_event_seq,
        "created_at": json_shapes.when(dialog.created_at),
        "active_at": json_shapes.when(dialog.active_at),
    }
