"""The kinds of agents. Code that acts for an agent asks its kind how it answers, and never which kind it is."""

import math
from dataclasses import dataclass

from dominds.llm.retry import MAX_TRIES


@dataclass(frozen=True, slots=True)
class AgentKind:
    """A kind of agent, described by how it answers.

    ``is_guided``: it has tools, and gets guidance, nudges and forced clears. ``recalls``: its requests recall text.
    ``prepares_rewrites``: rewrites are prepared while its dialogs rest. ``needs_rewrites``: nothing but a rewrite
    shortens its context. ``outlasts_circuits``: its message waits while a model fails for all dialogs.
    """

    is_guided: bool
    recalls: bool
    prepares_rewrites: bool
    needs_rewrites: bool
    outlasts_circuits: bool
    most_tries: int
    longest_wait_seconds: float  # between two tries


ASSISTANT = AgentKind(
    is_guided=True,
    recalls=True,
    prepares_rewrites=True,
    needs_rewrites=False,
    outlasts_circuits=True,
    most_tries=MAX_TRIES,
    longest_wait_seconds=math.inf,
)
# A proxy passes on what a program sends. The program waits for the answer, and retries in its own way.
PROXY = AgentKind(
    is_guided=False,
    recalls=False,
    prepares_rewrites=False,
    needs_rewrites=True,
    outlasts_circuits=False,
    most_tries=3,
    longest_wait_seconds=5.0,
)
