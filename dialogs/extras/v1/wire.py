"""The protocols of ``/v1``, each with a reader of requests and a writer of answers, and what they share.

Requests of other protocols are turned into bodies of chat completions, so that one reader judges them all.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dialogs.extras.v1.chat_messages import check_number
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.parsing import ChatRequest, chat_request
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.runs import Run
from dialogs.models import ApiKey

AnswerPiece = Text | Refusal | Reasoning | Compacted | Ended
MESSAGE = re.compile(r"messages\[(\d+)\]")
SHOWN = "[The image of this result follows.]"


class Writer(Protocol):
    """A writer of one answer in the words of one protocol: as events, or ``whole`` after its last piece."""

    @property
    def keep_alive(self) -> bytes: ...

    def begin(self) -> list[bytes]: ...

    def piece(self, piece: AnswerPiece) -> list[bytes]: ...

    def failure(self, error: ApiError) -> list[bytes]: ...

    def whole(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came: its body, and the headers that name a dialog and a policy."""

    body: dict[str, Any]
    dialog: str
    policy: str
    key: ApiKey


@dataclass(frozen=True, slots=True)
class Prior:
    """The part of a conversation that is compacted: all up to its last answer. ``tail`` are the messages behind that,
    and ``param`` is the client's name of the field that holds them all.
    """

    request: ChatRequest
    tail: tuple[dict[str, Any], ...] = ()
    param: str = "messages"

    @property
    def has_any(self) -> bool:
        return bool(self.request.messages) or self.request.dialog_id is not None


@dataclass(frozen=True, slots=True)
class Reading:
    """A request in the form that all protocols share, with the writer of its answer. ``names`` has the protocol's names
    of fields by those of chat completions.

    With ``prior`` the conversation is compacted first if that ``is_due``, which counts it as the model would see it;
    ``is_compaction`` says that this alone is the answer. A request that ``is_background`` is answered at once, as under
    way, and its answer is read later.
    """

    request: ChatRequest
    writer: Callable[[Run], Writer]
    names: Mapping[str, str] = field(default_factory=dict)
    prior: Callable[[], Prior] | None = None
    is_due: Callable[[], bool] = lambda: True
    is_compaction: bool = False
    is_background: bool = False


@dataclass(slots=True)
class ChatBody:
    """A request of another protocol, written as one of chat completions.

    ``sources`` has for each message the place in the client's own body from which it came, and ``names`` the client's
    names of fields. A tool's result is text, so its images are put into a user's message behind the last result.
    """

    options: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)
    instructions_end: int | None = None
    end_user: str = ""
    is_current: Callable[[], bool] = lambda: True
    _shown: list[dict[str, Any]] = field(default_factory=list)

    def say(self, role: str, content: Any, source: str, **more: Any) -> None:
        check_number(len(self.messages) + 1)
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if role == "tool" and isinstance(parts, list):
            images = [part for part in parts if isinstance(part, dict) and part.get("type") == "image_url"]
            self._shown += images
            if images:
                content = [part for part in parts if part not in images] or SHOWN
        elif role == "user" and self._shown and isinstance(parts, list):
            content, self._shown = [*self._shown, *parts], []
        elif role != "tool":
            self._show()
        self.messages.append({"role": role, "content": content, **more})
        self.sources.append(source)

    def _show(self) -> None:
        if self._shown:
            self.messages.append({"role": "user", "content": self._shown})
            self.sources.append(self.sources[-1])
            self._shown = []

    def end_instructions(self) -> None:
        """Say that what follows is the conversation."""
        self.instructions_end = len(self.messages)

    def forget(self) -> None:
        """Take back all of the conversation that was told so far."""
        del self.messages[self.instructions_end or 0 :], self.sources[self.instructions_end or 0 :]
        self._shown = []

    def say_again(self, messages: Iterable[Mapping[str, Any]], source: str) -> None:
        for message in messages:
            more = {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
            self.say(message["role"], message.get("content"), source, **more)

    def prior(self, sent: Sent, param: str) -> Prior:
        """Return what was said up to the last answer, and the newest messages apart."""
        self._show()
        end, begin = len(self.messages), self.instructions_end or 0
        for role in ("user", "tool"):
            while end > begin and self.messages[end - 1]["role"] in (role, "system", "developer"):
                end -= 1
        told = replace(self, messages=self.messages[:end], sources=self.sources[:end])
        return Prior(told.request(sent.dialog, sent.policy, is_asking=False), tuple(self.messages[end:]), param)

    def request(self, dialog_header: str, policy: str, *, is_asking: bool = True) -> ChatRequest:
        """Return the request. Raises ``ApiError``, whose ``param`` names the client's own field."""
        self._show()
        try:
            body = {**self.options, "messages": self.messages, "tools": self.tools}
            request = chat_request(body, dialog_header, policy, self.instructions_end, is_asking=is_asking)
            return replace(request, end_user=self.end_user or request.end_user, is_current=self.is_current)
        except ApiError as error:
            error.rename_param(self.names)
            error.message = self._in_own_words(error.message)
            error.param = error.param and self._in_own_words(error.param)
            raise

    def _in_own_words(self, text: str) -> str:
        """Name the client's own fields in the place of messages of chat completions."""
        return MESSAGE.sub(lambda value: self.sources[int(value[1])], text)


def call_json(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
