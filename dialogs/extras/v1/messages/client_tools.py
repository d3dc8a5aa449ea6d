"""Tools of Anthropic's that clients run: their models know them by type, others by what is said here."""

from collections.abc import Mapping
from typing import Any

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
LINES = {"type": "array", "items": NUMBER, "description": "The first and the last line; -1 is the end."}


def _commands(*names: str, **fields: Any) -> dict[str, Any]:
    """Return the schema of a tool whose ``command`` says which of the other fields it takes."""
    command = {**TEXT, "enum": list(names)}
    return {"type": "object", "properties": {"command": command, **fields}, "required": ["command"]}


BASH = (
    "Run a command in a shell that keeps its state. restart begins a new one.",
    {"type": "object", "properties": {"command": TEXT, "restart": {"type": "boolean"}}},
)
FIELDS = {"path": TEXT, "view_range": LINES, "file_text": TEXT, "old_str": TEXT, "insert_line": NUMBER}
NEW = {**TEXT, "description": "What takes the place of old_str; the inserted text."}
EDITOR = "View, create and edit files: create takes file_text, str_replace old_str and new_str, insert insert_line and "
EDITORS = (
    f"{EDITOR}new_str. undo_edit takes back the last edit.",
    _commands("view", "create", "str_replace", "insert", "undo_edit", **FIELDS, new_str=NEW),
)
NEWER_EDITORS = (
    f"{EDITOR}insert_text.",
    _commands("view", "create", "str_replace", "insert", **FIELDS, new_str=TEXT, insert_text=TEXT),
)
MEMORY = (
    "Keep notes over conversations as files below /memories. View the directory before a task, and note what a later "
    "conversation needs. create takes file_text, str_replace old_str and new_str, insert insert_line and insert_text, "
    "rename old_path and new_path.",
    _commands(
        *("view", "create", "str_replace", "insert", "delete", "rename"),
        **FIELDS,
        new_str=TEXT,
        insert_text=TEXT,
        old_path=TEXT,
        new_path=TEXT,
    ),
)
CLIENT_TOOLS: Mapping[str, tuple[str, dict[str, Any]]] = {  # by type: description and schema
    "bash_20241022": BASH,
    "bash_20250124": BASH,
    "text_editor_20241022": EDITORS,
    "text_editor_20250124": EDITORS,
    "text_editor_20250429": NEWER_EDITORS,
    "text_editor_20250728": NEWER_EDITORS,
    "memory_20250818": MEMORY,
}
