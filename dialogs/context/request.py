"""The request for one generation. Its prefix is byte-stable while nothing is rewritten, so that provider caches hold:
instructions, tools and history first; reminders, recalled text and guidance last; nothing carries a clock."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet

from dialogs.context import client
from dialogs.context.view import View
from dialogs.models import Dialog, Reminder
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import Message, Request, Role, ToolSpec, chars_of

GO_ON = (
    "[Runtime: your answer was cut off to compact the conversation. Go on exactly where it stopped; repeat nothing.]"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with what is remembered of it for the truncation rule. ``chars`` counts everything sent."""

    request: Request
    frame: str
    base: str
    chars: int
    guided: bool


def prepare(
    dialog: Dialog,
    view: View,
    model: ModelInfo,
    tools: Sequence[ToolSpec],
    *,
    recalled: str = "",
    guidance: str = "",
    required_tool: str = "",
    cursor: str = "",
) -> Prepared:
    reminders = reminders_text(dialog)
    added = tuple(
        [Message(Role.USER, text) for text in (view.interrupted and GO_ON, reminders, recalled, guidance) if text]
    )
    required_tool = required_tool or client.required_tool_of(dialog)
    if required_tool:
        tools = [tool for tool in tools if tool.name == required_tool]
    request = Request(
        model=model.model_id,
        instructions=client.instructions_of(dialog),
        messages=view.messages + added,
        tools=tuple(tools),
        force=required_tool or None,
        max_output_tokens=model.output_length,
        conversation=str(dialog.pk),
        cursor=cursor,
    )
    offered = _tools_json(request.tools)
    chars = len(request.instructions) + view.chars + chars_of(added) + len(offered)
    return Prepared(request, _frame(model, request, reminders + recalled, offered), view.base, chars, bool(guidance))


def reminders_text(dialog: Dialog) -> str:
    lines = [f"[reminder {pk}] {text}" for pk, text in _REMINDERS(dialog.pk)] if dialog.has_reminders else []
    return "\n".join(["[Your reminders; update_reminder and delete_reminder take these ids]", *lines]) if lines else ""


def _reminders(dialog_id: UUID) -> QuerySet[Reminder, Any]:
    return Reminder.objects.filter(dialog_id=dialog_id).values_list("pk", "text")


_REMINDERS = Select(_reminders)


def _frame(model: ModelInfo, request: Request, beside: str, tools: str) -> str:
    """``beside`` are the texts behind the messages: where they differ, reported sizes cannot be compared."""
    parts = (model.provider_id, model.model_id, request.instructions, beside, tools)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _tools_json(tools: Sequence[ToolSpec]) -> str:
    return orjson.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in tools]).decode()
