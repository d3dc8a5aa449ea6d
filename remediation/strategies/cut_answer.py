"""Shortening of an answer that was cut off because it filled the window: its end stays, so that it can go on."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, Toolbox, Unit, UnitRole, Units, step_of, total_tokens
from remediation.strategies.carrying import removed_from
from remediation.strategies.conclusion import Attempt, conclude, fail
from remediation.strategies.outcome import standing_tokens

HEAD_ARCHIVED = "[The beginning of this answer is in the archive; it went on:]\n"
SMALLEST_TAIL = 24  # tokens, with that line; a shorter end does not show where to go on


def with_shorter_answer(
    units: Units, room: int, limit: int, toolbox: Toolbox, rewrite: Callable[[Units], Rewritten]
) -> Rewritten:
    """Shorten the newest unit to ``room`` tokens if it is an answer that was cut off, and run ``rewrite``.

    If ``rewrite`` finds nothing else to make smaller, the shorter answer is the whole outcome.
    """
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
    rewritten = conclude(attempt, shorter, toolbox)
    if rewritten.est_after > limit:
        says = f"The end of the cut answer leaves est. {rewritten.est_after:,} of {limit:,} tokens."
        return fail(replace(attempt, steps=()), says, toolbox)
    return rewritten


def room_for_answer(units: Units, ceiling: int) -> int:
    """Return half of what units that must stay leave of ``ceiling``. The other half is for the rest of the view."""
    return max(0, (ceiling - standing_tokens(units)) // 2)


def _tail(unit: Unit, room: int, toolbox: Toolbox) -> Unit:
    """Return the unit with the longest end of its text that takes at most ``room`` tokens, found by bisection."""
    text = unit.text.removeprefix(HEAD_ARCHIVED)

    def ending(chars: int) -> Unit:
        return unit.with_text(HEAD_ARCHIVED + text[len(text) - chars :], toolbox.count)

    return ending(bisect_right(range(1, len(text) + 1), room, key=lambda chars: ending(chars).est_tokens))
