"""The rewrite that a person asks for by hand, whatever the agent's own policy is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from remediation.budget import LEAST_GAIN, percent_of, settled_size
from remediation.context import Context
from remediation.decisions import AT_MILESTONE, BY_HAND, ClearMind, Decision, Fail, Proceed, Rewrite
from remediation.policies import fresh_start, registry
from remediation.policies.policy import Policy

CLEAR, MILESTONE = "clear", "milestone"


def before_generation(context: Context) -> Decision:
    if not context.requested:
        return Proceed()
    if context.requested == CLEAR:
        return ClearMind(BY_HAND, by_person=True)
    if context.requested == MILESTONE:
        return replace(rewrite_by_hand(fresh_start.POLICY, context.limit), reason=AT_MILESTONE)
    if policy := registry.with_verb(context.requested):
        return rewrite_by_hand(policy, context.limit)
    return Fail("", f"The rewrite that was asked for ({context.requested}) is not installed any more.")


def rewrite_by_hand(policy: Policy, limit: int | None) -> Rewrite:
    """Return the rewrite that the button performs and its preview shows."""
    percent = policy.by_hand.target_percent if policy.by_hand else policy.target_percent
    return Rewrite(policy.name, BY_HAND, percent_of(limit or 0, percent))


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one way to make room, if it were taken now. Sizes are tokens of the whole request."""

    before: int
    after: int
    limit: int | None = None  # of the agent's own policy
    is_own: bool = False  # whether the agent's own policy would do it
    keeps_words: bool = False  # whether a text replaces the units that go
    starts_over: bool = False

    @property
    def freed(self) -> int:
        return max(0, self.before - self.after)

    @property
    def settles(self) -> bool:
        """Check whether it leaves as much free room as a rewrite should."""
        return self.limit is None or self.after <= settled_size(self.limit)


def best_of(gains: Sequence[Gain]) -> int | None:
    """Return the index of the gain to advise a person to take, or None if none frees enough.

    Preferred is, in this order, a way that leaves enough room, the agent's own policy, a way that keeps words for the
    units that go, and the way that frees most. Starting over is advised only if nothing else helps.
    """
    worthwhile = [index for index, gain in enumerate(gains) if gain.freed and gain.freed >= gain.before * LEAST_GAIN]
    continuing = [index for index in worthwhile if not gains[index].starts_over]

    def preference(index: int) -> tuple[bool, bool, bool, int]:
        gain = gains[index]
        return gain.settles, gain.is_own, gain.keeps_words, gain.freed

    return max(continuing or worthwhile, key=preference, default=None)
