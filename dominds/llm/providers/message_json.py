"""The JSON of a conversation's messages. That of the last request is cached, since the next one repeats most of it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from dominds.llm.messages import Message
from dominds.weighted_cache import Bounded

REMEMBERED_BYTES = 20_000_000
BYTES_PER_MESSAGE = 200  # memory of a message's objects, which are kept for comparison
PASSING = 3  # the newest messages are not cached: reminders, guidance and the like stand in one request only


@dataclass(frozen=True, slots=True)
class _Known:
    messages: tuple[Message, ...] = ()
    json: bytes = b""


Write = Callable[[Sequence[Message]], bytes]  # makes the JSON of some messages, without brackets


class MessageJson:
    """A cache of the JSON of conversations in one wire format."""

    def __init__(self, most: int = REMEMBERED_BYTES) -> None:
        self._known = Bounded[_Known](most)

    def json(self, conversation: Hashable, messages: tuple[Message, ...], write: Write) -> bytes:
        """Return the messages' JSON, without brackets.

        Requests of one conversation begin alike until a rewrite. ``conversation`` must name everything that ``write``
        depends on.
        """
        known = self._known.get(conversation) or _Known()
        standing = messages[: max(0, len(messages) - PASSING)]
        if standing[: len(known.messages)] != known.messages:
            known = _Known()
        if len(standing) > len(known.messages):
            known = _Known(standing, _join(known.json, write(standing[len(known.messages) :])))
            self._known.put(conversation, known, len(known.json) + BYTES_PER_MESSAGE * len(standing))
        return _join(known.json, write(messages[len(standing) :]))


def _join(*parts: bytes) -> bytes:
    return b",".join([part for part in parts if part])
