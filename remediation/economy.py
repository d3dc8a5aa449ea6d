"""The cost and the saving of a rewrite where the provider caches the prefix of requests. Pure.

A cached token costs a tenth of an uncached one or less. A rewrite makes each later request shorter, but the provider
has to read its new prefix once without the cache.
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
    """The estimated balance of one rewrite, in USD: ``saving`` in each later request, and ``reread`` once."""

    saved_tokens: int
    saving: Decimal
    reread: Decimal  # the extra cost of reading the new prefix without the cache

    @property
    def requests_to_pay(self) -> int | None:
        """Return after how many later requests the rewrite has paid; None for never."""
        if not self.reread:
            return 0
        return ceil(self.reread / self.saving) if self.saving else None

    def pays_within(self, requests: int) -> bool:
        return self.requests_to_pay is not None and self.requests_to_pay <= requests


def balance_of(before: int, after: int, price: Price) -> Balance:
    """Weigh a rewrite from ``before`` to ``after`` estimated prompt tokens.

    The new prefix is charged as a write to the cache if the provider has a price for that.
    """
    cached = price.input if price.cached is None else price.cached
    uncached = price.input if price.write is None else price.write
    saved = max(0, before - after)
    return Balance(saved, saved * cached / PER, after * max(Decimal(0), uncached - cached) / PER)


def waits(context: Context, rewrite: Rewrite, own_policy: str) -> bool:
    """Check whether a rewrite is put off because it would cost more than it saves.

    As many later requests are expected as there were since the last rewrite or clear. A rewrite by another policy (a
    recovery) never waits, nor does one that a person asked for or that is urgent.
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
