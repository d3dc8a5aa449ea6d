"""Dominds' own export of a dialog as JSON."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall
from remediation.evaluation.dialogs import Dialog, Turn


def recognises(content: Any) -> bool:
    return isinstance(content, dict) and {"dialog", "turns", "generations"} <= content.keys()


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    rows = [row for row in content["turns"] if row["role"] != "notice" and row["position"] is not None]
    return (Dialog(name, "export", tuple(_turns(sorted(rows, key=lambda row: row["position"])))),)


def _turns(rows: list[Mapping[str, Any]]) -> Iterator[Turn]:
    for row in rows:
        calls = tuple(ToolCall(call["id"], call["name"], _text(call["arguments"])) for call in row["tool_calls"] or ())
        message = Message(Role(row["role"]), row["text"], calls, row["tool_call_id"] or "")
        yield Turn(str(row["seq"]), row["role"], message, row["text"], row["status"] == "error")


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
