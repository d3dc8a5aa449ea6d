"""JSON shapes of rows, shared by the API, the events, the sockets and the export."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson

from dialogs.models import ContextState, Dialog, Generation, Question, Reminder, Turn
from dialogs.models.agents import texts_in
from health.levels import Judgement, Thresholds
from health.models import HealthSnapshot


def when(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def usd(cost: Decimal | None) -> str | None:
    """Write dollars as digits with at least two decimals, so that no reader rounds them."""
    if cost is None:
        return None
    if not cost.is_finite():
        return "NaN"  # damaged; None would read as unknown, or as no limit
    digits = format(cost, "f")
    whole, _, part = digits.partition(".")
    return f"{whole}.{part.rstrip('0'):0<2}"


def usage(row: Generation | HealthSnapshot | Dialog | None) -> dict[str, int | None] | None:
    if row is None or row.prompt_tokens is None:
        return None
    return {
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "total_tokens": row.total_tokens,
    }


def tool_calls(calls: list[dict[str, str]] | None) -> list[dict[str, Any]]:
    """Return calls with their arguments as an object. Malformed arguments stay the text that the model wrote."""
    return [
        {"id": call["id"], "name": call["name"], "arguments": _arguments(call["arguments"])} for call in calls or []
    ]


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text


def turn(row: Turn) -> dict[str, Any]:
    generation = row.generation
    snapshot: HealthSnapshot | None = getattr(generation, "snapshot", None) if generation else None
    return {
        "seq": row.seq,
        "round": row.round_number,
        "position": row.position,
        "role": row.role,
        "author": row.author.get_username() if row.author else None,
        "text": row.text,
        "attachments": row.attachments or [],
        "reasoning": row.reasoning,
        "tool_calls": tool_calls(row.tool_calls),
        "tool_call_id": row.tool_call_id or None,
        "tool_name": row.tool_name or None,
        "status": row.status,
        "feedback": None if row.liked is None else "up" if row.liked else "down",
        "usage": usage(generation),
        "level": snapshot.level if snapshot else None,
        "generation": generation.pk if generation else None,
        "created_at": when(row.created_at),
    }


def health(context_state: ContextState, judgement: Judgement, thresholds: Thresholds) -> dict[str, Any]:
    """Return the indicator: the dialog's last report, judged by the present limits. Unknown numbers are null."""
    return {
        "level": judgement.level.value,
        "reason": judgement.reason.value if judgement.reason else None,
        "prompt_tokens": context_state.prompt_tokens,
        "completion_tokens": context_state.completion_tokens,
        "total_tokens": context_state.total_tokens,
        "model_context_limit": thresholds.context_limit,
        "limit_source": thresholds.limit_source or None,
        "optimal_max_tokens": thresholds.effective_optimal_max,
        "critical_max_tokens": thresholds.effective_critical_max,
        "hard_util": judgement.hard_util,
        "optimal_util": judgement.optimal_util,
    }


def generation(row: Generation) -> dict[str, Any]:
    snapshot: HealthSnapshot | None = getattr(row, "snapshot", None)
    turns = [turn.seq for turn in row.turns.all() if turn.role == Turn.Role.ASSISTANT]
    return {
        "id": row.pk,
        "round": row.round_number,
        "purpose": row.purpose,
        "outcome": row.outcome,
        "attempt": row.attempt,
        "provider": row.provider,
        "model": row.model,
        "usage": usage(row),
        "level": snapshot.level if snapshot else None,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "cost_usd": usd(row.cost_usd),
        "guided": row.guided,
        "recalled": row.recalled,
        "turn_seq": turns[0] if turns else None,
        "error": {"kind": row.error_kind, "message": row.error} if row.error_kind else None,
        "started_at": when(row.started_at),
        "finished_at": when(row.finished_at),
    }


def reminder(row: Reminder, est_tokens: int) -> dict[str, Any]:
    return {"id": row.pk, "position": row.position, "text": row.text, "est_tokens": est_tokens}


def question(row: Question, attempts: list[Generation]) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "dialog": str(row.dialog_id),
        "kind": row.kind,
        "text": row.text,
        "choices": texts_in(row.choices),
        "approves": row.tool or None,
        "state": row.state,
        "attempts": [{"outcome": attempt.outcome, "usage": usage(attempt)} for attempt in attempts],
        "draft": row.draft or None,
        "answer": row.answer or None,
        "action": row.action or None,
        "created_at": when(row.created_at),
        "resolved_by": row.resolved_by.get_username() if row.resolved_by else None,
        "resolved_at": when(row.resolved_at),
    }
