"""What was said in a dialog, told to a program once more: without the agent's own tools and their results."""

from dataclasses import replace
from functools import cached_property
from typing import Any

from dialogs.actions.questions import ASK_HUMAN
from dialogs.context.client import client_of
from dialogs.context.images import images_of
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.transcripts import questions_in
from dialogs.extras.v1.wire import ChatBody, call_json
from dialogs.models import Dialog, Turn
from dialogs.tools.registry import tools_of
from dominds.llm.providers.parts import data_url


class Telling:
    """A dialog as its program knows it."""

    def __init__(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self._ours = frozenset(tools_of(dialog.agent))

    def placed_turns(self, after: int) -> Any:
        turns = self.dialog.turns.exclude(role=Turn.Role.NOTICE).select_related("generation").order_by("position")
        return turns.filter(position__gt=after)

    def is_from_client(self, turn: Turn) -> bool:
        is_theirs = turn.tool_name == ASK_HUMAN or turn.tool_name not in self._ours
        return turn.role == Turn.Role.TOOL and turn.status == Turn.Status.OK and is_theirs

    @property
    def instructions(self) -> str:
        """Return what the newest request to the dialog said as developer or system."""
        client = client_of(self.dialog)
        return client.instructions if client else ""

    def calls(self, turn: Turn) -> list[dict[str, Any]]:
        """Return calls of tools that the client runs."""
        return [call for call in turn.tool_calls or () if call["name"] not in self._ours]

    def say_until(self, chat: ChatBody, last: int, source: str) -> None:
        """Tell the conversation up to the turn at position ``last``, with the system messages in it."""
        client = client_of(self.dialog)
        system = list((client.system_messages if client else None) or [])
        last_seq = 0
        for turn in self.placed_turns(0).filter(position__lte=last):
            while system and system[0][0] < turn.seq:
                chat.say("system", system.pop(0)[1], source)
            self.say(chat, turn, source)
            last_seq = turn.seq
        for _, text in filter(lambda one: one[0] <= last_seq, system):
            chat.say("system", text, source)

    def say(self, chat: ChatBody, turn: Turn, source: str) -> None:
        is_theirs = self.is_from_client(turn)
        if turn.role == Turn.Role.USER or (is_theirs and turn.tool_name == ASK_HUMAN):
            chat.say("user", [{"type": "text", "text": turn.text}, *self._images(turn)], source)
        elif turn.role == Turn.Role.ASSISTANT:
            calls = [call_json(Call(**call)) for call in self.calls(turn)]
            chat.say("assistant", text_of(turn), source, **({"tool_calls": calls} if calls else {}))
        elif is_theirs:
            chat.say("tool", self._whole(turn), source, tool_call_id=turn.tool_call_id)

    def _images(self, turn: Turn) -> list[dict[str, Any]]:
        contents = dict(self.dialog.attachments.values_list("sha256", "content")) if turn.attachments else {}
        images = (replace(image, content=bytes(contents[image.key])) for image in images_of(turn.attachments))
        return [
            {"type": "image_url", "image_url": {"url": data_url(image), "detail": image.detail}} for image in images
        ]

    @cached_property
    def _put_aside(self) -> frozenset[str]:
        """Return the ids of calls whose results were too large for the context."""
        return frozenset(self.dialog.artifacts.values_list("tool_call_id", flat=True))

    def _whole(self, turn: Turn) -> str:
        """Return a result whole: one that was put aside stands elsewhere."""
        if turn.tool_call_id not in self._put_aside:
            return turn.text
        kept = self.dialog.artifacts.filter(tool_call_id=turn.tool_call_id).values_list("text", flat=True).first()
        return turn.text if kept is None else kept


def text_of(turn: Turn) -> str:
    """Return an answer as its client saw it, with the question to a person that ended it."""
    return "\n\n".join(text for text in (turn.text, *questions_in(turn)) if text)
