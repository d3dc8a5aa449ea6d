"""Dominds' own JSON export of a dialog: what was said and done, in order."""

from collections.abc import Iterator

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    items,
    json_text,
    mapping,
    moment_of,
    text_of,
)
from dominds.llm.messages import Role


def recognises(item: Item) -> bool:
    return "turns" in item and "id" in mapping(item.get("dialog"))


def read(item: Item) -> Conversation:
    builder = Builder()
    dialog, turns = mapping(item["dialog"]), [*items(item["turns"])]
    placed = [turn for turn in turns if isinstance(turn.get("position"), int | float) and turn.get("role") != "notice"]
    builder.left_out["notices and queued messages"] += len(turns) - len(placed)
    for turn in sorted(placed, key=lambda turn: float(turn["position"])):
        _add(builder, turn)
    return builder.conversation("dominds", dialog["id"], dialog.get("title"))


def dialogs_within(item: Item) -> Iterator[Item]:
    """Yield the dialogs that worked for this one, each of which becomes a conversation of its own."""
    for side in items(item.get("side_dialogs")):
        yield mapping(side.get("export"))


def _add(builder: Builder, turn: Item) -> None:
    text, at = text_of(turn.get("text")), moment_of(turn.get("created_at"))
    builder.left_out["images and files"] += len(list(items(turn.get("attachments"))))
    builder.left_out["thoughts"] += bool(turn.get("reasoning"))
    calls = [
        (text_of(call.get("id")), text_of(call.get("name")), json_text(call.get("arguments") or "{}"))
        for call in items(turn.get("tool_calls"))
    ]
    if turn.get("role") == "tool":
        builder.result(text, text_of(turn.get("tool_call_id")), at)
    elif calls:
        builder.call(text, calls, at)
    else:
        builder.say(Role.USER if turn.get("role") == "user" else Role.ASSISTANT, text, at)
