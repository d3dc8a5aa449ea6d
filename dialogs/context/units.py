"""Turns as units of context, and units as a rewrite stores them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialogs.context.images import images_of
from dialogs.models import Turn
from dominds.llm.messages import ImagePart, Message, Role, ToolCall
from remediation.context import Unit, UnitKind, UnitRole

NO_RESULT = "[No result was recorded for this call.]"
CUT_STATUSES = (Turn.Status.FAILED.value, Turn.Status.STOPPED.value)
_ROLES = {role.value: role for role in Role}  # a look-up, since calling an enumeration costs three times as much
_UNIT_ROLES = {role.value: role for role in UnitRole}


def group(rows: Iterable[Any]) -> list[Unit]:
    """Group turns into units. A tool call and its results are one unit.

    A result without its call is left out, and a call without a result gets a stand-in, since providers refuse requests
    with either. The beginning of an answer that was cut off is left out if another answer follows it.
    """
    units: list[Unit] = []
    rows = list(rows)
    results = _results_of_calls(rows)
    for at, row in enumerate(rows):
        if row.role == "tool":
            continue
        if not row.tool_calls:
            is_replaced = is_cut_off(row) and rows[at + 1 : at + 2] and rows[at + 1].role == row.role
            if (row.text or row.attachments or row.role == "user") and not is_replaced:  # programs may say nothing
                units.append(_text_unit(row))
            continue
        calls = _calls(row.tool_calls)
        message = Message(_ROLES[row.role], row.text, calls, "", tuple(row.provider_items or ()))
        answers = [(call, results.get((at, number))) for number, call in enumerate(calls)]
        units.append(
            Unit(
                id=f"turn-{row.seq}",
                kind=UnitKind.MESSAGE,
                role=UnitRole.TOOL,
                messages=(message, *(_result(call, answer) for call, answer in answers)),
                source=(row.seq, *(answer.seq for _, answer in answers if answer)),
                failed=any(answer.status == Turn.Status.ERROR for _, answer in answers if answer),
            )
        )
    return units


def is_cut_off(row: Any) -> bool:
    """Check whether the turn is the beginning of an answer that failed or was stopped. It is part of the conversation
    once its user has gone on from there.
    """
    return row.status in CUT_STATUSES and row.role == "assistant"


def _results_of_calls(rows: Sequence[Any]) -> dict[tuple[int, int], Any]:
    """Map the places of calls, each a row and a number in it, to the rows of their results.

    Calls of conversations that were held elsewhere may have the same id: a result belongs to the newest reply before
    it, and in that to the first such call without one. A call's last result counts.
    """
    results: dict[tuple[int, int], Any] = {}
    waiting: dict[str, list[tuple[int, int]]] = {}
    for at, row in enumerate(rows):
        if row.role == "tool":
            if places := waiting.get(row.tool_call_id):
                results[places[0]] = row
                if len(places) > 1:
                    places.pop(0)
        elif row.tool_calls:
            for number, call in enumerate(row.tool_calls):
                if (places := waiting.get(call["id"], [])) and places[0][0] == at:
                    places.append((at, number))
                else:
                    waiting[call["id"]] = [(at, number)]
    return results


def _text_unit(row: Any) -> Unit:
    """Return the unit of a turn without tool calls."""
    images = images_of(row.attachments) if row.attachments else ()
    message = Message(_ROLES[row.role], row.text, (), "", tuple(row.provider_items or ()), images)
    # What a tool brought has the user's role in a request, but no person said it.
    role = UnitRole.ASSISTANT if row.tool_name else _UNIT_ROLES[row.role]
    return Unit(f"turn-{row.seq}", UnitKind.MESSAGE, role, (message,), (row.seq,))


def _calls(calls: Sequence[dict[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in calls)


def _result(call: ToolCall, row: Any | None) -> Message:
    return Message(Role.TOOL, row.text if row else NO_RESULT, tool_call_id=call.id)


def unit_to_json(unit: Unit, original: bool) -> dict[str, Any]:
    """Return a unit as a rewrite stores it: by reference when it stands as it was said, else by value."""
    if original and unit.source:
        return {"turns": list(unit.source)}
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "role": unit.role.value,
        "sources": list(unit.source),
        "priority": unit.priority,
        "area": unit.area,
        "pinned": unit.pinned,
        "failed": unit.failed,
        "messages": [
            {
                "role": message.role.value,
                "text": message.text,
                "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
                "tool_call_id": message.tool_call_id,
                **_parts_json(message),
            }
            for message in unit.messages
        ],
    }


def _parts_json(message: Message) -> dict[str, Any]:
    """Write images by name and key, never their bytes."""
    images = [_image_json(part) for part in message.parts if isinstance(part, ImagePart)]
    return {"images": images} if images else {}


def _image_json(image: ImagePart) -> list[Any]:
    known = [image.media_type, image.name, image.key, image.size, image.pixels]
    if image.at is not None:
        return [*known, image.detail, image.at]
    return [*known, image.detail] if image.detail else known


def _parts_from_json(images: Sequence[Sequence[Any]]) -> tuple[ImagePart, ...]:
    return tuple(
        ImagePart(media_type, b"", name, key, size, pixels and tuple(pixels), *optional)
        for media_type, name, key, size, pixels, *optional in images
    )


def unit_from_json(item: Mapping[str, Any]) -> Unit:
    return Unit(
        id=item["id"],
        kind=UnitKind(item["kind"]),
        role=UnitRole(item["role"]),
        messages=tuple(
            Message(
                Role(message["role"]),
                message["text"],
                tuple(ToolCall(*call) for call in message["tool_calls"]),
                message["tool_call_id"],
                parts=_parts_from_json(message.get("images", ())),
            )
            for message in item["messages"]
        ),
        source=tuple(item["sources"]),
        priority=item["priority"],
        area=item["area"],
        pinned=item["pinned"],
        failed=item.get("failed", False),  # older rewrites have no such field
    )
