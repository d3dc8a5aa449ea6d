"""A conversation in the format of Anthropic's Messages API: blocks of content in alternating turns."""

from typing import Any

from dominds.llm.json_text import arguments_object
from dominds.llm.messages import ImagePart, Message, Part, Request, Role, ToolCall
from dominds.llm.models.model import Echo
from dominds.llm.providers.echoes import Opaque, Owner, replay
from dominds.llm.providers.outgoing import GO_ON
from dominds.llm.providers.parts import base64_of, in_order

CACHE_HERE = {"cache_control": {"type": "ephemeral"}}
THINKING = ("thinking", "redacted_thinking")


def messages_of(request: Request, owner: Owner, echo: Echo) -> list[dict[str, Any]]:
    """Return the messages in the format of this API.

    Roles must alternate, so neighbours of one role are merged. Empty blocks are refused, so they are dropped. A system
    message may stand only between a user's turn and an answer, so an earlier one moves to the end of that turn. The
    first turn must be the user's, so a history that begins with an answer gets a short text before it.
    """
    stable = _last_stable(request.messages)
    merged: list[dict[str, Any]] = []
    system: list[dict[str, Any]] = []
    for position, message in enumerate(request.messages):
        blocks = _blocks(message, owner, echo)
        if message.role is Role.SYSTEM:
            system += blocks
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if position == stable and blocks:
            blocks[-1] = {**blocks[-1], **CACHE_HERE}
        if system and role == "assistant" and blocks and merged and merged[-1]["role"] == "user":
            merged.append({"role": "system", "content": system})
            system = []
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"].extend(blocks)
        elif blocks:
            merged.append({"role": role, "content": blocks})
    if system:
        merged.append({"role": "system", "content": system})
    if merged and merged[0]["role"] != "user":
        merged.insert(0, {"role": "user", "content": _text_blocks(GO_ON)})
    return merged


def _last_stable(messages: tuple[Message, ...]) -> int:
    """Return the place of the last message that the next request will repeat, so that the cache should end there.

    That is the last tool result since the last answer, or else the first user message since then. Only texts of this
    one request follow it.
    """
    start = next((at + 1 for at in reversed(range(len(messages))) if messages[at].role is Role.ASSISTANT), 0)
    start = next((at for at in range(start, len(messages)) if messages[at].role is not Role.SYSTEM), start)
    results = [at for at in range(start, len(messages)) if messages[at].role is Role.TOOL]
    return results[-1] if results else start


def _blocks(message: Message, owner: Owner, echo: Echo) -> list[dict[str, Any]]:
    match message.role:
        case Role.USER | Role.SYSTEM:
            return [block for piece in in_order(message) for block in _piece_blocks(piece)]
        case Role.TOOL:
            return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text or "(empty)"}]
        case Role.ASSISTANT:
            blocks = [block for piece in replay(owner, message) for block in _answer_blocks(piece)]
            thoughts = [block for block in blocks if block["type"] in THINKING]
            if len(thoughts) == len(blocks):
                return []
            if echo is Echo.CALLS and message.tool_calls and not thoughts:
                return [{"type": "thinking", "thinking": ""}, *blocks]
            return blocks


def _answer_blocks(piece: str | ToolCall | Opaque) -> list[dict[str, Any]]:
    match piece:
        case Opaque(item):
            return [item] if item.get("type") in THINKING else []
        case ToolCall(call_id, name, arguments):
            return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments_object(arguments)}]
        case text:
            return _text_blocks(text)


def _text_blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _piece_blocks(piece: str | Part) -> list[dict[str, Any]]:
    return _text_blocks(piece) if isinstance(piece, str) else [_part(piece)]


def _part(given: Part) -> dict[str, Any]:
    source = {"type": "base64", "media_type": given.media_type, "data": base64_of(given)}
    if isinstance(given, ImagePart):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": given.name}
