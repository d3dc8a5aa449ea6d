"""Stored responses, read from their dialogs: ids of responses and of their items name the place."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q

from dialogs.actions import access
from dialogs.errors import NotFound
from dialogs.extras.v1.relay import UNDER_WAY
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.telling import Telling
from dialogs.extras.v1.wire import ChatBody
from dialogs.models import ApiKey, Turn

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


class Stored(Telling):
    """A response that was given, for the owner of a key. Raises ``NotFound``."""

    def __init__(self, key: ApiKey, place: Place | None) -> None:
        if place is None:
            raise NotFound
        self.place = place
        super().__init__(access.visible_dialog(place.dialog_id, key.owner))
        message = self.dialog.turns.filter(seq=place.seq, role=Turn.Role.USER).first()
        if message is None:
            raise NotFound
        self.message: Turn = message

    @property
    def turns(self) -> list[Turn]:
        return self._answer[0]

    @property
    def ends_its_message(self) -> bool:
        """Check whether no later response to the same message, with a result of the client's, has begun."""
        return self._answer[1]

    @cached_property
    def _answer(self) -> tuple[list[Turn], bool]:
        results: list[Turn] = []
        for turn in self._turns_behind(self.message):
            if turn.role == Turn.Role.USER:
                break
            if results and self.is_from_client(turn):
                return results, False
            if turn.role == Turn.Role.ASSISTANT and (turn.generation_id or 0) > self.place.after_generation:
                results.append(turn)
        return results, True

    def _turns_behind(self, turn: Turn) -> Any:
        return self.placed_turns(turn.position) if turn.position is not None else self.dialog.turns.none()

    @property
    def _last(self) -> Turn:
        """Return the end of the response; of a compaction, which says nothing itself, that of what it stands for."""
        if self.turns:
            return self.turns[-1]
        last = self.message
        for turn in self._turns_behind(self.message):
            if turn.role == Turn.Role.USER or (turn.generation_id or 0) > self.place.after_generation:
                break
            last = turn
        return last

    @property
    def is_head(self) -> bool:
        """Check whether nothing was said since. The message may still wait for its answer."""
        kept = Q(position__isnull=False) | Q(status=Turn.Status.QUEUED)
        later = self.dialog.turns.filter(kept, role=Turn.Role.USER, seq__gt=self.message.seq)
        return not self._turns_behind(self._last).exists() and not later.exists()

    @property
    def is_under_way(self) -> bool:
        return self.message.status in UNDER_WAY and self.ends_its_message

    def say_answer(self, chat: ChatBody, source: str) -> None:
        for turn in self.turns:
            self.say(chat, turn, source)

    def say_all(self, chat: ChatBody, source: str) -> None:
        """Tell the conversation up to the end of this response, with the system messages in it."""
        self.say_until(chat, self._last.position or 0, source)
