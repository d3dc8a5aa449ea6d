"""The request for one generation. While nothing is rewritten it only grows: instructions, tools and all that was sent
stay as they were, so that provider caches and signed reasoning hold. What is meant for one request alone stands
last."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from dialogs.context import client
from dialogs.context.images import sendable
from dialogs.context.reminder_statements import Statements, in_order, placed, statements_of
from dialogs.context.view import View
from dialogs.models import Dialog
from dominds.llm.messages import ANY_TOOL, Message, Request, Role, ToolSpec, chars_of
from dominds.llm.models.model import Forcing, ModelInfo

GO_ON = (
    "[Runtime: your answer was cut off to compact the conversation. Go on exactly where it stopped; repeat nothing.]"
)
CALL_THIS = "[Runtime: the program that you talk to expects a call of {}, and no other answer.]"


@dataclass(frozen=True, slots=True)
class Once:
    """What stands at the end of one request alone. ``called`` is a tool that it asks for in words."""

    goes_on: bool = False
    recalled: str = ""
    nudge: str = ""
    guidance: str = ""
    called: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        tool = "a tool" if self.called == ANY_TOOL else f"the tool {self.called}"
        call = self.called and CALL_THIS.format(tool)
        goes_on = GO_ON if self.goes_on else ""
        return tuple(filter(None, (goes_on, self.recalled, self.nudge, self.guidance, call)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with what is remembered of it. ``chars`` counts everything sent, ``offered`` are its tools as JSON.

    ``beginning`` is a digest of what the epoch's requests begin with. Of an answer that was ``bound_to_once``, to what
    stood in this request alone, the provider would refuse the reasoning in the next one.
    """

    request: Request
    frame: str
    base: str
    chars: int
    guided: bool
    beginning: str
    statements: Statements
    offered: str
    once: Once
    bound_to_once: bool
    system: tuple[client.SystemMessage, ...] = ()

    @property
    def text_chars(self) -> int:
        """Those of messages alone."""
        return self.chars - len(self.request.instructions) - len(self.offered)


def prepare(
    dialog: Dialog,
    view: View,
    model: ModelInfo,
    tools: Sequence[ToolSpec],
    *,
    recalled: str = "",
    guidance: str = "",
    nudge: str = "",
    required_tool: str = "",
    can_force: bool = True,
    takes_system: bool = True,
    output: int | None = None,
    cursor: str = "",
) -> Prepared:
    """``takes_system``: the model takes system messages besides the first."""
    several = model.kind.takes_several_system
    first, system = client.system_messages_of(dialog, view.units, as_user=not takes_system, takes_several=several)
    instructions = "\n\n".join(filter(None, (client.instructions_of(dialog), first)))
    offered = _tools_json(tools)
    messages, left_out = sendable(view.messages, model)
    unlike = (str(left_out),) if left_out else ()
    beginning = _digest(model.provider_id, model.model_id, instructions, offered, view.base, *unlike)
    is_new_epoch = beginning != dialog.beginning
    statements = statements_of(dialog, len(view.messages), is_new_epoch=is_new_epoch)
    asked_for = "" if required_tool else client.required_tool_of(dialog)
    forces = can_force and model.forcing is not Forcing.NONE
    once = Once(view.interrupted, recalled, nudge, guidance, "" if forces else asked_for)
    added = messages_of(once)
    request = Request(
        model=model.model_id,
        instructions=instructions,
        messages=placed(messages, in_order(system, statements)) + added,
        tools=tuple(tools),
        force=(required_tool or asked_for or None) if forces else None,
        max_output_tokens=output,
        epoch=dialog.context_epoch + (is_new_epoch and bool(dialog.beginning)),
        conversation=str(dialog.pk),
        cursor=cursor,
    )
    beside = (*(one.message for one in in_order(system, statements)), *added)
    ours = "".join(message.text for message in system)
    reminders = statements[-1].lines if statements else ""
    return Prepared(
        request=request,
        frame=_digest(model.provider_id, model.model_id, instructions, ours + reminders + recalled, offered, *unlike),
        base=view.base,
        chars=len(instructions) + view.chars + chars_of(beside) + len(offered),
        guided=bool(guidance),
        beginning=beginning,
        statements=statements,
        offered=offered,
        once=once,
        bound_to_once=bool(added) and model.is_bound,
        system=system,
    )


def messages_of(once: Once) -> tuple[Message, ...]:
    return tuple([Message(Role.USER, text) for text in once.texts])


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def tools_in(offered: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(*fields) for fields in orjson.loads(offered))


def _tools_json(tools: Sequence[ToolSpec]) -> str:
    specs = [[tool.name, tool.description, dict(tool.parameters), *([True] if tool.strict else [])] for tool in tools]
    return orjson.dumps(specs).decode()
