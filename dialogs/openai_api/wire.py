"""What each protocol of ``/v1`` supplies: a reader of requests, and a writer for each answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dialogs.models import ApiKey
from dialogs.openai_api.conversations import Run
from dialogs.openai_api.errors import ApiError
from dialogs.openai_api.parsing import ChatRequest
from dialogs.openai_api.relay import Ended, Reasoning, Text

Said = Text | Reasoning | Ended


class Writer(Protocol):
    """One answer in the words of one protocol: as events, or ``whole`` after its last piece."""

    @property
    def keep_alive(self) -> bytes: ...

    def begin(self) -> list[bytes]: ...

    def piece(self, piece: Said) -> list[bytes]: ...

    def failed(self, error: ApiError) -> list[bytes]: ...

    def whole(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """What came: a body, and the headers that name a dialog and a policy."""

    body: dict[str, Any]
    dialog: str
    policy: str
    key: ApiKey


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as all protocols have it, and who writes its answer."""

    request: ChatRequest
    writer: Callable[[Run], Writer]
