"""The client's part in a request of ``/v1``.

It consists of instructions after the agent's, system messages in the middle of the conversation, settings, and
the tool that the client insists on.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from dialogs.models import Client, Dialog
from dominds.llm.messages import NO_TOOL, Message, Role
from remediation.context import Unit


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """A client's instruction that stands behind the first ``at`` messages of the view.

    ``as_user``: it is sent as a marked message of the user, to a model that takes no system message there.
    """

    at: int
    text: str
    as_user: bool = False

    @property
    def message(self) -> Message:
        return (
            Message(Role.USER, f"<system>\n{self.text}\n</system>") if self.as_user else Message(Role.SYSTEM, self.text)
        )


def client_of(dialog: Dialog) -> Client | None:
    """Return the dialog's client, without a query when the dialog was read with it."""
    return getattr(dialog, "client", None)


def instructions_of(dialog: Dialog) -> str:
    """Return the agent's instructions, followed by the client's system messages."""
    client = client_of(dialog)
    return "\n\n".join(text for text in (dialog.agent.instructions, client.instructions if client else "") if text)


def system_messages_of(
    dialog: Dialog, units: Sequence[Unit], *, as_user: bool = False, takes_several: bool = False
) -> tuple[str, tuple[SystemMessage, ...]]:
    """Return the client's system messages, apart from its instructions: the leading ones as one text, and the others
    with their places.

    Each stands where it was said: before the first unit that is made of later turns only, and so behind a summary of
    the turns before it. Messages with nothing before them join the leading text. But if the model ``takes_several`` at
    the beginning, those that the client put there stay messages of their own.
    """
    client = client_of(dialog)
    stored: list[tuple[int, str]] = (client.system_messages if client else None) or []
    if not stored:
        return "", ()
    ends = [0, *accumulate(len(unit.messages) for unit in units)]
    newest_so_far = list(accumulate((min(unit.source, default=0) for unit in units), max))
    leading = (
        tuple(SystemMessage(0, text) for after, text in stored if after < 0) if takes_several and not as_user else ()
    )
    placed = [SystemMessage(ends[bisect_right(newest_so_far, after)], text, as_user) for after, text in stored]
    placed.sort(key=attrgetter("at"))
    first = [message for message in placed if not message.at]
    return "\n\n".join(message.text for message in first[len(leading) :]), (*leading, *placed[len(first) :])


def params_of(dialog: Dialog) -> dict[str, Any]:
    """Return the settings for the model in the client's newest request, by their names in chat completions."""
    client = client_of(dialog)
    return (client.params if client else None) or {}


def required_tool_of(dialog: Dialog) -> str:
    """Return the tool that the client insists on for the next answer, ``ANY_TOOL``, ``NO_TOOL``, or nothing.

    ``NO_TOOL`` does not hold for an agent with tools of its own, which is merely offered none of the client's.
    """
    client = client_of(dialog)
    required = client.required_tool if client else ""
    return "" if required == NO_TOOL and dialog.agent.kind.is_guided else required
