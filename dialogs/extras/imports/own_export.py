"""Dominds' own JSON export of a dialog: what was said and done, in order."""

from collections.abc import Iterator, Mapping

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
    builder.left_out["reminders"] += len(list(items(item.get("reminders"))))
    images = {text_of(image.get("sha256")): text_of(image.get("data")) for image in items(item.get("images"))}
    for turn in sorted(placed, key=lambda turn: float(turn["position"])):
        _add(builder, turn, images)
    return builder.conversation("dominds", dialog["id"], dialog.get("title"))


def dialogs_within(item: Item) -> Iterator[Item]:
    """Yield the dialogs that worked for this one, each of which becomes a conversation of its own."""
    for side in items(item.get("side_dialogs")):
        yield mapping(side.get("export"))


def _add(builder: Builder, turn: Item, images: Mapping[str, str]) -> None:
    text, at = text_of(turn.get("text")), moment_of(turn.get("created_at"))
    attached = [file for file in items(turn.get("attachments")) if "chars" not in file]  # the text holds text files
    held = [
        (text_of(file.get("name")), content) for file in attached if (content := images.get(file.get("sha256", "")))
    ]
    builder.left_out["images and files"] += len(attached) - len(held)
    builder.left_out["thoughts"] += bool(turn.get("reasoning"))
    calls = [
        (text_of(call.get("id")), text_of(call.get("name")), json_text(call.get("arguments") or "{}"))
        for call in items(turn.get("tool_calls"))
    ]
    if turn.get("role") == "tool":
        builder.result(text, text_of(turn.get("tool_call_id")), at)
    elif calls:
        builder.call(text, calls, at)
    elif turn.get("role") == "user":
        builder.say(Role.USER, text, at, held)
    else:
        builder.say(Role.ASSISTANT, text, at)
