"""The request for one generation.

Until something is rewritten, requests only grow: instructions, tools and all earlier messages stay as they were sent,
so that provider caches and signed reasoning stay valid. Messages that belong to one request alone stand last.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from dialogs.context import client
from dialogs.context.model_calls import ModelCall
from dialogs.context.reminder_statements import Statements, in_order, interleave, statements_of
from dialogs.models import Dialog
from dominds.llm.json_text import dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL, Message, Request, Role, ToolSpec, chars_of
from dominds.llm.models.model import Forcing, ModelInfo

GO_ON = (
    "[Runtime: your answer was cut off to compact the conversation. Go on exactly where it stopped; repeat nothing.]"
)
CALL_THIS = "[Runtime: the program that you talk to expects a call of {}, and no other answer.]"


@dataclass(frozen=True, slots=True)
class Once:
    """The messages that end this request and are in no other. ``called`` is a tool that they ask for."""

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
    """A request with the facts about it that are stored. ``chars`` counts everything sent, ``offered`` is its tools as
    JSON.

    ``beginning`` is a digest of what all requests of an epoch begin with; ``frame`` adds system messages, reminders and
    recalled text. ``bound_to_once``: the answer's reasoning is bound to the messages that end this request, so the
    provider would refuse it in the next one.
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
        """Count the characters of messages alone."""
        return self.chars - len(self.request.instructions) - len(self.offered)


@dataclass(frozen=True, slots=True)
class Form:
    """The form of request that a model takes, as far as its refusals tell.

    ``takes_system``: it takes system messages besides the first. ``cursor`` is what its provider wants back from the
    last call.
    """

    can_force: bool = True
    takes_system: bool = True
    cursor: str = ""


def prepare(dialog: Dialog, model: ModelInfo, call: ModelCall, form: Form = Form()) -> Prepared:
    view = call.view
    first, system = client.system_messages_of(
        dialog, view.units, as_user=not form.takes_system, takes_several=model.kind.takes_several_system
    )
    instructions = "\n\n".join(filter(None, (client.instructions_of(dialog), first)))
    tools, force, called = _insist(call, model, form)
    offered = _tools_json(tools)
    messages, left_out = view.sendable(model)
    images_left_out = (str(left_out),) if left_out else ()
    beginning = _digest(model.provider_id, model.model_id, instructions, offered, view.base, *images_left_out)
    is_new_epoch = beginning != dialog.beginning
    statements = statements_of(dialog, len(view.messages), is_new_epoch=is_new_epoch)
    recalled = call.recalled.text
    once = Once(view.interrupted, recalled, call.nudge, call.guidance, called)
    added = messages_of(once)
    request = Request(
        model=model.model_id,
        instructions=instructions,
        messages=interleave(messages, in_order(system, statements)) + added,
        tools=tools,
        force=force,
        max_output_tokens=call.output,
        epoch=dialog.context_epoch + (is_new_epoch and bool(dialog.beginning)),
        conversation=str(dialog.pk),
        cursor=form.cursor,
        is_plain=view.is_plain,
    )
    beside = (*(item.message for item in in_order(system, statements)), *added)
    reminders = statements[-1].lines if statements else ""
    between = "".join(message.text for message in system) + reminders + recalled
    return Prepared(
        request=request,
        frame=_digest(model.provider_id, model.model_id, instructions, between, offered, *images_left_out),
        base=view.base,
        chars=len(instructions) + view.chars + chars_of(beside) + len(offered),
        guided=bool(call.guidance),
        beginning=beginning,
        statements=statements,
        offered=offered,
        once=once,
        bound_to_once=bool(added) and model.is_bound,
        system=system,
    )


def _insist(call: ModelCall, model: ModelInfo, form: Form) -> tuple[tuple[ToolSpec, ...], str | None, str]:
    """Return the tools that are sent, the request's ``force``, and the tool that is asked for in words."""
    wanted, tools = call.required_tool, call.tools
    if wanted == NO_TOOL:
        return (tools, wanted, "") if form.can_force and model.reads_tool_choice else ((), None, "")
    if not wanted or not form.can_force or model.forcing is Forcing.NONE:
        return tools, None, call.tool_in_words
    is_named = model.forcing is not Forcing.REQUIRED or wanted == ANY_TOOL or len(tools) == 1
    return tools, wanted, "" if is_named else call.tool_in_words


def messages_of(once: Once) -> tuple[Message, ...]:
    return tuple([Message(Role.USER, text) for text in once.texts])


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def tools_in(offered: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(*fields) for fields in orjson.loads(offered))


def _tools_json(tools: Sequence[ToolSpec]) -> str:
    specs = [[tool.name, tool.description, dict(tool.parameters), *([True] if tool.strict else [])] for tool in tools]
    return dump(specs).decode()
