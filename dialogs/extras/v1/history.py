"""Conversations as clients tell them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from dialogs.actions.attachments import Attached

LONGEST_ID = 100  # characters of an id to which a number is added; a turn stores 120


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. ``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One message of a conversation. ``role`` is system, user, assistant or tool; ``position`` is its place in a stored
    dialog.

    ``digests`` are those of its files; a message that a client tells has these with their contents in ``attached``.
    ``leads`` says of a system message that it stands before the conversation, and behind the first system message.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    position: int = 0
    digests: tuple[str, ...] = ()
    attached: tuple[Attached, ...] = ()
    leads: bool = False

    def with_lead(self, lead: str) -> "ClientMessage":
        """Return the message with words before its own. What stands before all of these still does."""
        attached = (replace(file, at=file.at + len(lead)) if file.at else file for file in self.attached)
        return replace(self, text=lead + self.text, attached=tuple(attached)) if lead else self

    @property
    def spoken(self) -> str:
        """Return what both sides know of a user's message, with its files by their digests."""
        return " ".join((self.text, *self.digests))


@dataclass(frozen=True, slots=True)
class SystemPlace:
    """A system message in the middle of what is told, and its place: behind the result of ``call_id``, behind a message
    of the user's (``behind_user``), behind an answer, or before all (``leads``).

    ``before_end`` counts the user's messages after it. By these it is found in the dialog, which holds turns that the
    client does not know, but none of the user's.
    """

    text: str
    before_end: int
    behind_user: bool = False
    call_id: str = ""
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation: what was said before, and a new user message, new results of the tools called last, or
    both.

    ``ahead`` are new messages before that one: the user's, or what was said beside the dialog. ``system`` are the
    messages of that role, which stand in none of these. The new message may be empty: ``has_message`` says whether
    there is one.
    """

    before: tuple[ClientMessage, ...]
    message: str = ""
    has_message: bool = False
    results: tuple[ClientMessage, ...] = ()
    ahead: tuple[ClientMessage, ...] = ()
    attached: tuple[Attached, ...] = ()
    system: tuple[SystemPlace, ...] = ()

    def as_one(self) -> tuple[str, tuple[Attached, ...]]:
        """Return the new messages as one: their texts and their files."""
        text, attached = "", list[Attached]()
        for message in (*self.ahead, ClientMessage("user", self.message, attached=self.attached)):
            attached = [replace(file, at=len(text)) if file.at is None else file for file in attached]
            text += "\n\n" if text else ""
            attached += [
                file if file.at is None else replace(file, at=len(text) + file.at) for file in message.attached
            ]
            text += message.text
        return text, tuple(attached)

    @property
    def whole(self) -> tuple[ClientMessage, ...]:
        newest = ClientMessage("user", self.message, digests=tuple(file.sha256 for file in self.attached))
        return (*self.before, *self.ahead, *([newest] if self.has_message else []))


def conversation_of(history: Sequence[ClientMessage]) -> Conversation:
    """Split messages before the user messages, and before the tool results, at the end.

    The last message is one of these, except for system messages.
    """
    messages = [message for message in history if message.role != "system"]
    last = len(messages)
    while last and messages[last - 1].role == "user":
        last -= 1
    first = last
    while first and messages[first - 1].role == "tool":
        first -= 1
    *ahead, newest = messages[last:] or [ClientMessage("user", "")]
    return Conversation(
        tuple(messages[:first]),
        newest.text,
        bool(messages[last:]),
        tuple(messages[first:last]),
        tuple(ahead),
        newest.attached,
        tuple(_system_places(history)),
    )


def with_ids_apart(history: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Give calls that share an id one each, and their results the same. The newest call keeps it.

    A result belongs to the newest answer before it, and in that to the first such call without one.
    """
    left = Counter(call.id for message in history for call in message.calls)
    if all(number == 1 for number in left.values()):
        return list(history)
    taken, waiting = set(left), dict[str, list[str]]()
    apart: list[ClientMessage] = []
    for message in history:
        names = waiting.get(message.call_id)
        if message.calls:
            calls = tuple(replace(call, id=_another_id(call.id, left, taken)) for call in message.calls)
            waiting |= {call.id: [] for call in message.calls}
            for call, new in zip(message.calls, calls, strict=True):
                waiting[call.id].append(new.id)
            apart.append(replace(message, calls=calls))
        elif names:
            apart.append(replace(message, call_id=names.pop(0) if len(names) > 1 else names[0]))
        else:
            apart.append(message)
    return apart


def _another_id(call_id: str, left: Counter[str], taken: set[str]) -> str:
    """Return the id itself for the last of the calls that have it; else one that none has."""
    left[call_id] -= 1
    if not left[call_id]:
        return call_id
    numbers = count(left[call_id])  # the number of calls left with this id, which is another one for each
    new = next(new for number in numbers if (new := f"{call_id[:LONGEST_ID]}~{number}") not in taken)
    taken.add(new)
    return new


LEADS = -1
Row = tuple[int, str, str]  # of a turn: its seq, its role, and the call whose result it is


def place_system(system: Iterable[SystemPlace], turns: Sequence[Row]) -> list[tuple[int, str]]:
    """Return system messages, each with the seq of the turn of a dialog that it follows, 0 for none, ``LEADS``
    where it stands before all.
    """
    results = {call_id: seq for seq, _, call_id in turns if call_id}
    users = [place for place, (_, role, _) in enumerate(turns) if role == "user"]
    matches: list[tuple[int, str]] = []
    for one in system:
        if one.leads:
            matches.append((LEADS, one.text))
            continue
        number = len(users) - one.before_end  # how many of the user's messages stand before it
        if one.behind_user:
            behind = users[number - 1] if number > 0 else -1
        else:
            behind = users[max(number, 0)] - 1 if users and number < len(users) else len(turns) - 1
        matches.append((results.get(one.call_id) or (turns[behind][0] if behind >= 0 else 0), one.text))
    return matches


def _system_places(history: Sequence[ClientMessage]) -> Iterator[SystemPlace]:
    left = sum(message.role == "user" for message in history)
    behind = ClientMessage("assistant", "")
    for message in history:
        if message.role == "system":
            yield SystemPlace(message.text, left, behind.role == "user", behind.call_id, message.leads)
            continue
        left -= message.role == "user"
        behind = message
