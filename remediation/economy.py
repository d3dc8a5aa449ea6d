"""The balance of a rewrite where the provider keeps the beginning of requests in a cache. Pure.

A cached token costs a tenth of an uncached one or less. A rewrite makes each later request shorter, and makes the
provider read its new beginning once without the cache.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from dominds.llm.models.prices import PER, Price
from health.levels import Level
from remediation.budget import is_above
from remediation.context import Context
from remediation.decisions import Rewrite

MOST_WAITING_PERCENT = 90  # of the limit; above it there may be no room for the answer


@dataclass(frozen=True, slots=True)
class Balance:
    """The estimated saving and cost of one rewrite, in USD, the saving for each later request."""

    saved_tokens: int
    saving: Decimal
    reread: Decimal  # once: the new beginning is read again, above what reading it from the cache would cost

    @property
    def requests_to_pay(self) -> int | None:
        """Return after how many later requests the rewrite has paid; None for never."""
        if not self.reread:
            return 0
        return ceil(self.reread / self.saving) if self.saving else None

    def pays_within(self, requests: int) -> bool:
        return self.requests_to_pay is not None and self.requests_to_pay <= requests


def balance_of(before: int, after: int, price: Price) -> Balance:
    """Weigh a rewrite from ``before`` to ``after`` estimated prompt tokens. The new beginning is charged as a
    write to the cache where the provider charges for that.
    """
    cached = price.input if price.cached is None else price.cached
    uncached = price.input if price.write is None else price.write
    saved = max(0, before - after)
    return Balance(saved, saved * cached / PER, after * max(Decimal(0), uncached - cached) / PER)


def waits(context: Context, rewrite: Rewrite, own_policy: str) -> bool:
    """Check whether a rewrite is put off because it would cost more than it saves, and nothing is urgent.

    As many requests are expected as there were since the last rewrite or clear. A recovery, which is another
    policy's rewrite, never waits; neither does what a person or an overflow asked for.
    """
    economy, limit = context.economy, context.limit
    if economy is None or limit is None or rewrite.policy != own_policy or context.level is not Level.HEALTHY:
        return False
    if context.requested or context.overflowed or context.interrupted or context.loop_detected or context.restarts:
        return False
    prompt = context.budget.prompt
    if is_above(context.budget.taken, limit, MOST_WAITING_PERCENT):
        return False
    balance = balance_of(prompt, min(rewrite.target_tokens, prompt), economy.price)
    return not balance.pays_within(economy.requests)
