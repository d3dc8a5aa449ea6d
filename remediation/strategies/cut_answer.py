"""An answer that the stream watch cut, and that is itself too long to go on from:
its head goes, its tail stays word for word."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, Toolbox, Unit, UnitRole, Units, step_of, total_tokens
from remediation.strategies.carrying import removed_from
from remediation.strategies.conclusion import Attempt, conclude, fail
from remediation.strategies.outcome import standing_tokens

HEAD_ARCHIVED = "[The beginning of this answer is in the archive; it went on:]\n"
SMALLEST_TAIL = 24  # tokens, the line above included; less shows nobody where to go on


def with_shorter_answer(
    units: Units, room: int, limit: int, toolbox: Toolbox, rewrite: Callable[[Units], Rewritten]
) -> Rewritten:
    """Run ``rewrite`` once the newest unit, an answer that was cut off, is shortened to at most ``room`` tokens."""
    answer = units[-1] if units and units[-1].role is UnitRole.ASSISTANT else None
    if answer is None or answer.pinned or answer.est_tokens <= room or any(one.tool_calls for one in answer.messages):
        return rewrite(units)
    begun = toolbox.clock()
    tail = _tail(answer, max(room, SMALLEST_TAIL), toolbox)
    if tail.est_tokens >= answer.est_tokens:
        return rewrite(units)
    shorter = (*units[:-1], tail)
    step = step_of("cut_answer", units, shorter, "the tail stays word for word")
    rewritten = rewrite(shorter)
    if not rewritten.failure:
        removed, steps = removed_from(units, rewritten.units), (step, *rewritten.steps)
        return replace(rewritten, removed=removed, est_before=total_tokens(units), steps=steps)
    attempt = Attempt(units, limit, begun, (step,))
    rewritten = conclude(attempt, shorter, toolbox)  # there is nothing else to make smaller
    if rewritten.est_after > limit:
        says = f"The end of the cut answer leaves est. {rewritten.est_after:,} of {limit:,} tokens."
        return fail(replace(attempt, steps=()), says, toolbox)
    return rewritten


def room_for_answer(units: Units, ceiling: int) -> int:
    """Return half of the room below ``ceiling`` beside what must stay: the other half is for what else is kept."""
    return max(0, (ceiling - standing_tokens(units)) // 2)


def _tail(unit: Unit, room: int, toolbox: Toolbox) -> Unit:
    """Find by bisection the longest end of the answer that takes at most ``room`` tokens."""
    text = unit.text.removeprefix(HEAD_ARCHIVED)

    def ending(chars: int) -> Unit:
        return unit.with_text(HEAD_ARCHIVED + text[len(text) - chars :], toolbox.count)

    return ending(bisect_right(range(1, len(text) + 1), room, key=lambda chars: ending(chars).est_tokens))
