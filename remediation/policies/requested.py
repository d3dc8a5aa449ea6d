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
    """The outcome that one way to make room would have now. Sizes are tokens of the whole request, before and after."""

    before: int
    after: int
    limit: int | None = None  # what the dialog's own policy works within
    is_own: bool = False  # whether the agent's own policy would do it
    keeps_words: bool = False  # whether a text stands for what goes
    starts_over: bool = False

    @property
    def freed(self) -> int:
        return max(0, self.before - self.after)

    @property
    def settles(self) -> bool:
        """Check whether it leaves as much room as a rewrite is to leave."""
        return self.limit is None or self.after <= settled_size(self.limit)


def best_of(gains: Sequence[Gain]) -> int | None:
    """Return the place of the way that a person is advised to take, or None where none frees enough.

    One that leaves enough room comes before one that does not, then the agent's own, then one that leaves words for
    what goes, then the one that frees most. Starting over is advised only where nothing else helps.
    """
    worth = [at for at, gain in enumerate(gains) if gain.freed and gain.freed >= gain.before * LEAST_GAIN]
    going_on = [at for at in worth if not gains[at].starts_over]
    return max(
        going_on or worth,
        key=lambda at: (gains[at].settles, gains[at].is_own, gains[at].keeps_words, gains[at].freed),
        default=None,
    )
