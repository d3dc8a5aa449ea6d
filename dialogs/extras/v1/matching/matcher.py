"""A client's habits as a value."""

from collections.abc import Callable
from dataclasses import dataclass

from dialogs.extras.v1.matching.incoming import Candidate, Incoming


def find_none(_: Incoming) -> Candidate | None:
    """Find no dialog beyond those that the digests find."""
    return None


def ask_nothing(_: Incoming, __: str) -> bool:
    """Recognise no request as one beside a conversation."""
    return False


@dataclass(frozen=True, slots=True)
class Matcher:
    """The habits of a ``client`` that do not follow from the likeness of histories.

    ``find`` returns the dialog that a history of its continues where digests found none. ``asks_beside`` says that
    the client asks by a text for something of its own, and not for its user: for a title, say. ``is_title`` says the
    same of a newest message behind the conversation itself.
    """

    client: str
    find: Callable[[Incoming], Candidate | None] = find_none
    asks_beside: Callable[[Incoming, str], bool] = ask_nothing
    is_title: Callable[[str], bool] = lambda _: False
