"""Loops of an agent: the same calls with the same results again and again, or a context that keeps overflowing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from remediation.prompts import load, render

REPEATS = 4  # identical cycles of calls that make a loop; polling twice or thrice is normal
REPEATS_AFTER_OVER_HIT = 3  # the same after an over-hit within the hour, which makes a loop likelier
NUDGE_REPEATS = 3  # the agent is told from this number on, before any recovery
LONGEST_CYCLE = 3  # calls
ENDLESS_CALLS = 15  # repeated calls after which a message ends
MAX_OVER_HITS = 2  # in an hour; more make a loop
LOOP_REASON = "a loop was detected"  # the reason of a rewrite that ends a loop
RESULT_CHARS = 300  # the part of a result that a nudge quotes

ToolUse = tuple[str, ...]  # name, arguments as raw JSON, and the result where it is known


class LoopAction(StrEnum):
    NONE = "none"
    NUDGE = "nudge"  # the next request tells the agent which calls it repeated, and with which result
    RECOVER = "recover"  # the agent repeats itself in spite of a nudge, or its context overflows again and again


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: ``calls`` is one cycle, oldest first; ``result`` is what its last call returned."""

    action: LoopAction
    calls: tuple[ToolUse, ...] = ()
    times: int = 0
    result: str = ""

    @property
    def is_endless(self) -> bool:
        """Check whether a message that consists of this loop has to end."""
        return self.times * len(self.calls) >= ENDLESS_CALLS

    @property
    def names(self) -> str:
        return ", ".join(use[0] for use in self.calls)

    @property
    def failure(self) -> str:
        """Explain to the person why the message ended."""
        return (
            f"The agent made the same calls {self.times} times and got the same results, although it was told so: "
            f"{self.names}. Say what it is to do instead, or try again."
        )


NO_LOOP = Loop(LoopAction.NONE)


def loop_detected(recent_tool_calls: Sequence[ToolUse], over_hits: int) -> str:
    """Return why the agent seems to be in a loop, or an empty text.

    Calls are oldest first. ``over_hits`` are those of the last hour.
    """
    if over_hits > MAX_OVER_HITS:
        return f"the context went over its limit {over_hits} times within an hour"
    repeats = REPEATS_AFTER_OVER_HIT if over_hits else REPEATS
    cycle = _cycle(recent_tool_calls, repeats)
    return f"the same calls were repeated {repeats} times: {', '.join(use[0] for use in cycle)}" if cycle else ""


def judge_loop(recent_tool_calls: Sequence[ToolUse], over_hits: int, *, nudged: bool) -> Loop:
    """Decide about the newest calls: first tell the agent, and recover only if it goes on after that.

    A call whose result changes is polling and no loop. ``nudged`` says that the agent was already told about these
    calls.
    """
    if over_hits > MAX_OVER_HITS:
        return Loop(LoopAction.RECOVER)
    repeats = _most_repeats(recent_tool_calls)
    if repeats < NUDGE_REPEATS:
        return NO_LOOP
    cycle = _cycle(recent_tool_calls, repeats)
    recovers = nudged and bool(loop_detected(recent_tool_calls, over_hits))
    result = cycle[-1][2] if len(cycle[-1]) > 2 else ""
    return Loop(LoopAction.RECOVER if recovers else LoopAction.NUDGE, cycle, repeats, result)


def nudge(loop: Loop, folder: Path | None = None) -> str:
    """Write the text at the end of the next request that tells the agent of its loop. It is stored nowhere."""
    calls = "\n".join(f"{use[0]}({use[1]})" for use in loop.calls)
    result = " ".join(loop.result.split())
    shown = result if len(result) <= RESULT_CHARS else f"{result[:RESULT_CHARS]}…"
    return render(load("loop_nudge", folder), times=loop.times, calls=calls, result=shown or "nothing")


def _cycle(uses: Sequence[ToolUse], repeats: int) -> tuple[ToolUse, ...]:
    """Return the shortest cycle that stands ``repeats`` times at the end of the calls, or nothing.

    Known results have to be the same, too.
    """
    same = [_same(use) for use in uses]
    for length in range(1, LONGEST_CYCLE + 1):
        tail = same[-length * repeats :]
        if len(tail) == length * repeats and all(tail[i] == tail[i % length] for i in range(len(tail))):
            return tuple(uses[-length:])
    return ()


def _most_repeats(uses: Sequence[ToolUse]) -> int:
    most = 0
    while _cycle(uses, most + 1) and (most + 1) <= len(uses):
        most += 1
    return most


def _same(use: ToolUse) -> ToolUse:
    return (use[0], _canonical(use[1]), *(" ".join(result.split()) for result in use[2:]))


def _canonical(arguments: str) -> str:
    """Return one text for equal arguments in any order and spacing. Malformed JSON is only stripped."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments.strip()
