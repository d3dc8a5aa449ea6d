"""Gain and headroom of a rewrite, and when further ones are pointless."""

from collections.abc import Sequence

from remediation.context import Context
from remediation.decisions import Rewrite
from remediation.economy import MOST_WAITING_PERCENT

LEAST_GAIN = 0.1  # of the size before; a rewrite below it is refused
LEAST_FREE = 0.25  # of the limit, which a rewrite that the runtime starts is to leave free
POOR_IN_A_ROW = 2  # after this many the runtime stops until the limit is near, says so, and raises the operator's task


def most_of(limit: int) -> int:
    """Tokens that a rewrite may fill where its aim is too small for what must be said."""
    return int(limit * (1 - LEAST_FREE))


def gain_of(est_before: int, est_after: int) -> float:
    return 1 - est_after / est_before if est_before else 0.0


def is_poor(est_before: int, est_after: int, limit: int) -> bool:
    """Little gained, or little left free: the next message would trigger the next rewrite."""
    return gain_of(est_before, est_after) < LEAST_GAIN or not leaves_headroom(est_after, limit)


def leaves_headroom(est_after: int, limit: int) -> bool:
    return est_after <= most_of(limit)


def should_stop(poor: Sequence[bool]) -> bool:
    """``poor`` says of each of the newest rewrites whether it was."""
    return len(poor) >= POOR_IN_A_ROW and all(poor)


def stops(context: Context, rewrite: Rewrite, own_policy: str) -> bool:
    """Whether a rewrite is put off, since the last two were poor: another one would only come
    again at the next message.

    Near the limit it is made all the same, and so is what a person, an overflow or a recovery asks for.
    """
    is_asked = context.requested or context.overflowed or context.interrupted or context.loop_detected
    if not context.poor_rewrites or is_asked or rewrite.policy != own_policy or context.limit is None:
        return False
    return context.est_tokens * 100 <= context.limit * MOST_WAITING_PERCENT
