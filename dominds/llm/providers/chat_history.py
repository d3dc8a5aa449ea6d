"""A conversation in the format of OpenAI's chat completions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dominds.llm.json_text import arguments_text, dump
from dominds.llm.messages import FilePart, ImagePart, Message, Part, Request, Role, ToolCall
from dominds.llm.models.model import Echo, ModelInfo
from dominds.llm.providers.chat_reasoning import REASONING_FIELDS
from dominds.llm.providers.echoes import Opaque, Owner, replay
from dominds.llm.providers.message_json import MessageJson
from dominds.llm.providers.outgoing import form_of
from dominds.llm.providers.parts import base64_of, data_url, in_order

# Google accepts this instead of a signature, for calls that another model made.
NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}

_MESSAGES = MessageJson()


def messages_json(request: Request, owner: Owner, model: ModelInfo) -> bytes:
    """Return the messages as JSON without brackets. Most of it is remembered from the last request."""
    # Templates of local models fail on null in place of a text.
    silence = "" if model.kind.is_local else None
    writer = _Writer(owner, model.echo, _names_for(model.echo, request.messages), silence)
    conversation = (request.conversation, owner, model.echo, form_of(model), silence)
    return _MESSAGES.json(conversation, request.messages, writer.write)


def _names_for(echo: Echo, messages: Sequence[Message]) -> dict[str, str]:
    """Map ids of calls to names of tools, for Google, which refuses results that do not name their tool."""
    return {call.id: call.name for one in messages for call in one.tool_calls} if echo is Echo.SIGNATURES else {}


@dataclass(frozen=True, slots=True)
class _Writer:
    """A writer of messages for one model. ``silence`` stands for the text of an answer that only calls tools."""

    owner: Owner
    echo: Echo
    names: Mapping[str, str]
    silence: str | None

    def write(self, messages: Sequence[Message]) -> bytes:
        written = [  # plain messages are written inline: a function call for each takes longer than writing its JSON
            self._rich_message(message)
            if message.tool_calls or message.role is Role.TOOL or message.provider_items or message.parts
            else {"role": message.role, "content": message.text}
            for message in messages
        ]
        return dump(written)[1:-1]

    def _rich_message(self, message: Message) -> dict[str, Any]:
        """Write a result, an answer with calls or reasoning, or a message with parts."""
        match message.role:
            case Role.TOOL:
                call = message.tool_call_id
                named = {"name": self.names[call]} if call in self.names else {}
                return {"role": "tool", "tool_call_id": call, **named, "content": message.text}
            case Role.USER | Role.SYSTEM:
                return {"role": message.role, "content": [*map(_part, in_order(message))]}
            case Role.ASSISTANT:
                return self._answer(message)

    def _answer(self, message: Message) -> dict[str, Any]:
        pieces = [piece.item for piece in replay(self.owner, message) if isinstance(piece, Opaque)]
        opaque = {key: value for item in pieces for key, value in item.items()}
        extras = opaque.pop("calls", {})
        if self.echo is Echo.NEVER or (self.echo is Echo.CALLS and not message.tool_calls):
            for name in REASONING_FIELDS:
                opaque.pop(name, None)
        elif self.echo is Echo.CALLS and not any(name in opaque for name in REASONING_FIELDS):
            opaque[REASONING_FIELDS[0]] = ""
        text = message.text or (self.silence if message.tool_calls else "")
        answer = {"role": "assistant", "content": text, **opaque}
        if message.tool_calls:
            if self.echo is Echo.SIGNATURES and not extras:
                extras = {"0": NO_SIGNATURE}
            answer["tool_calls"] = [_call(call, extras.get(str(at))) for at, call in enumerate(message.tool_calls)]
        return answer


def _call(call: ToolCall, extra: Any) -> dict[str, Any]:
    # Several servers parse the arguments of past calls and refuse the request when they are malformed.
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    written = {"id": call.id, "type": "function", "function": function}
    return {**written, "extra_content": extra} if extra else written


def _part(given: str | Part) -> dict[str, Any]:
    match given:
        case str():
            return {"type": "text", "text": given}
        case ImagePart():
            detail = {"detail": given.detail} if given.detail else {}
            return {"type": "image_url", "image_url": {"url": data_url(given), **detail}}
        case FilePart(name, media_type):
            content = f"data:{media_type};base64,{base64_of(given)}"
            return {"type": "file", "file": {"filename": name, "file_data": content}}
