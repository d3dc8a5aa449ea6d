"""Stored responses, read from their dialogs: ids of responses and of their items name the place."""

import re
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from dialogs.actions import messages
from dialogs.actions.questions import ASK_HUMAN
from dialogs.context.client import client_of
from dialogs.context.images import images_of
from dialogs.errors import NotFound
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.transcripts import questions_in
from dialogs.extras.v1.wire import ChatBody, call_json
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.tools.registry import tools_of
from dominds.llm.providers.parts import data_url

ID = re.compile(r"[a-z]+_([0-9a-f]{32})_([0-9]{1,9})_([0-9]{1,18})(?:_[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Place:
    """A response in its dialog: what was made for message ``seq`` after ``after_generation``,
    up to a call of the client's or a question to it."""

    dialog_id: UUID
    seq: int
    after_generation: int

    @classmethod
    def of_run(cls, run: Run) -> "Place":
        return cls(run.dialog_id, run.seq, run.after_generation)

    @classmethod
    def of_id(cls, text: Any) -> "Place | None":
        match = ID.fullmatch(text) if isinstance(text, str) else None
        return cls(UUID(match[1]), int(match[2]), int(match[3])) if match else None

    def id(self, prefix: str, index: int | None = None) -> str:
        tail = "" if index is None else f"_{index}"
        return f"{prefix}_{self.dialog_id.hex}_{self.seq}_{self.after_generation}{tail}"


class Stored:
    """A response that was given, for the owner of a key. Raises ``NotFound``."""

    def __init__(self, key: ApiKey, place: Place | None) -> None:
        if place is None:
            raise NotFound
        self.place = place
        self.dialog: Dialog = messages.visible_dialog(place.dialog_id, key.owner)
        message = self.dialog.turns.filter(seq=place.seq, role=Turn.Role.USER).first()
        if message is None:
            raise NotFound
        self.message: Turn = message
        self._ours = frozenset(tools_of(self.dialog.agent))
        self.turns = self._answers()

    def _answers(self) -> list[Turn]:
        results: list[Turn] = []
        for turn in self._placed_turns(self.message.position):
            if turn.role == Turn.Role.USER or (results and self._is_from_client(turn)):
                break
            if turn.role == Turn.Role.ASSISTANT and (turn.generation_id or 0) > self.place.after_generation:
                results.append(turn)
        return results

    def _placed_turns(self, after: int | None) -> Any:
        turns = self.dialog.turns.exclude(role=Turn.Role.NOTICE).select_related("generation").order_by("position")
        return turns.filter(position__gt=after) if after is not None else turns.none()

    def _is_from_client(self, turn: Turn) -> bool:
        is_theirs = turn.tool_name == ASK_HUMAN or turn.tool_name not in self._ours
        return turn.role == Turn.Role.TOOL and turn.status == Turn.Status.OK and is_theirs

    @property
    def is_head(self) -> bool:
        """Check whether nothing was said since."""
        last = self.turns[-1] if self.turns else self.message
        return not self._placed_turns(last.position).exists() and not self.dialog.turns.queued().exists()

    @property
    def instructions(self) -> str:
        """Return what the newest request to the dialog said as developer or system."""
        client = client_of(self.dialog)
        return client.instructions if client else ""

    def calls(self, turn: Turn) -> list[dict[str, Any]]:
        """Return calls of tools that the client runs."""
        return [call for call in turn.tool_calls or () if call["name"] not in self._ours]

    def say_answer(self, chat: ChatBody, source: str) -> None:
        for turn in self.turns:
            self._say(chat, turn, source)

    def say_all(self, chat: ChatBody, source: str) -> None:
        """Tell the conversation up to the end of this response, with the system messages in it."""
        last = self.turns[-1] if self.turns else self.message
        client = client_of(self.dialog)
        system = list((client.system_messages if client else None) or [])
        for turn in self._placed_turns(0).filter(position__lte=last.position):
            while system and system[0][0] < turn.seq:
                chat.say("system", system.pop(0)[1], source)
            self._say(chat, turn, source)
        for _, text in filter(lambda one: one[0] <= last.seq, system):
            chat.say("system", text, source)

    def _say(self, chat: ChatBody, turn: Turn, source: str) -> None:
        is_theirs = self._is_from_client(turn)
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

    def _whole(self, turn: Turn) -> str:
        """Return a result whole: one that was too large for the context stands elsewhere."""
        kept = self.dialog.artifacts.filter(tool_call_id=turn.tool_call_id).values_list("text", flat=True).first()
        return turn.text if kept is None else kept


def text_of(turn: Turn) -> str:
    """Return an answer as its client saw it, with the question to a person that ended it."""
    return "\n\n".join(text for text in (turn.text, *questions_in(turn)) if text)
