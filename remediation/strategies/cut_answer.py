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
    if not units or not _is_answer(units[-1]) or units[-1].est_tokens <= room:
        return rewrite(units)
    begun = toolbox.clock()
    tail = _tail(units[-1], max(room, SMALLEST_TAIL), toolbox)
    if tail.est_tokens >= units[-1].est_tokens:
        return rewrite(units)
    shorter = (*units[:-1], tail)
    attempt = Attempt(units, limit, begun)
    step = step_of("cut_answer", units, shorter, "the tail stays word for word")
    rewritten = rewrite(shorter)
    if rewritten.failure:  # there is nothing else to make smaller
        rewritten = conclude(replace(attempt, steps=(step,)), shorter, toolbox)
        if rewritten.est_after > limit:
            return fail(
                attempt, f"The end of the cut answer leaves est. {rewritten.est_after:,} of {limit:,} tokens.", toolbox
            )
        return rewritten
    return replace(
        rewritten,
        removed=removed_from(units, rewritten.units),
        est_before=total_tokens(units),
        steps=(step, *rewritten.steps),
    )


def room_for_answer(units: Units, ceiling: int) -> int:
    """Return half of the room below ``ceiling`` beside what must stay: the other half is for what else is kept."""
    return max(0, (ceiling - standing_tokens(units)) // 2)


def _is_answer(unit: Unit) -> bool:
    return unit.role is UnitRole.ASSISTANT and not unit.pinned and not any(m.tool_calls for m in unit.messages)


def _tail(unit: Unit, room: int, toolbox: Toolbox) -> Unit:
    """Find by bisection the longest end of the answer that takes at most ``room`` tokens."""
    text = unit.text.removeprefix(HEAD_ARCHIVED)
    kept = bisect_right(range(1, len(text) + 1), room, key=lambda chars: _ending(unit, text, chars, toolbox).est_tokens)
    return _ending(unit, text, kept, toolbox)


def _ending(unit: Unit, text: str, chars: int, toolbox: Toolbox) -> Unit:
    return unit.with_text(HEAD_ARCHIVED + text[len(text) - chars :], toolbox.count)
