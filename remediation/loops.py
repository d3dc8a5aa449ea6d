"""When an agent runs in circles: the same tool calls again and again, or a context that keeps overflowing."""

import json
from collections.abc import Sequence

REPEATS = 4  # identical cycles of calls at the end of the run; polling twice or thrice is normal
REPEATS_AFTER_OVER_HIT = 3  # an overflow within the hour makes circles likelier
LONGEST_CYCLE = 3  # calls
MAX_OVER_HITS = 2  # in an hour
LOOP_REASON = "a loop was detected"  # of a rewrite that ends one

ToolUse = tuple[str, str]  # name, arguments as raw JSON


def loop_detected(recent_tool_calls: Sequence[ToolUse], over_hits: int) -> str:
    """The reason to believe in a loop, or an empty text. Calls are oldest first, ``over_hits`` of the last hour."""
    if over_hits > MAX_OVER_HITS:
        return f"the context went over its limit {over_hits} times within an hour"
    calls = [(name, _canonical(arguments)) for name, arguments in recent_tool_calls]
    repeats = REPEATS_AFTER_OVER_HIT if over_hits else REPEATS
    for length in range(1, LONGEST_CYCLE + 1):
        if _ends_in_cycle(calls, length, repeats):
            names = ", ".join(name for name, _ in calls[-length:])
            return f"the same calls were repeated {repeats} times: {names}"
    return ""


def _ends_in_cycle(calls: Sequence[ToolUse], length: int, repeats: int) -> bool:
    tail = calls[-length * repeats :]
    return len(tail) == length * repeats and all(tail[i] == tail[i % length] for i in range(len(tail)))


def _canonical(arguments: str) -> str:
    """The same text for the same arguments, whatever their order and spacing; malformed JSON stands for itself."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments.strip()
