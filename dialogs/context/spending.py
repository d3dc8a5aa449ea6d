"""The spending of a dialog and its owner, and the cost of a rewrite against the requests to come, from rows."""

from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, Max
from django.utils import timezone

from dialogs.extension import installed_extensions
from dialogs.models import Dialog, Generation
from dialogs.store import charging
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.models.prices import Price, price_of
from remediation.context import Economy
from remediation.spending import Spending, Spent

CACHE_KEPT = timedelta(minutes=5)  # by every provider at least, from the last request on


def spending_of(dialog: Dialog) -> Spending:
    """Return the spending of a dialog that was read ``whole``, with its owner's budget. Without one the month is
    not added up.
    """
    budget = dialog.monthly_budget_usd
    spending = Spending(
        dialog=dialog.cost_usd,
        dialog_budget=dialog.budget_in_force,
        month=spent_this_month(dialog.owner_id) if budget is not None else Decimal(0),
        month_budget=budget,
        unpriced=dialog.unpriced_generations,
    )
    for extension in installed_extensions():
        spending = extension.spending(dialog, spending)
    return spending


def spent_this_month(owner_id: int) -> Decimal:
    """Return the USD that a person has spent this month, as far as prices are known."""
    return cost_this_month(owner_id).usd


def cost_this_month(owner_id: int) -> Spent:
    """Sum the owner's dialogs that were active this month, which an index finds, and embeddings; months are UTC."""
    calls, embeddings = charging.of_this_month()
    recent = calls.filter(dialog__active_at__gte=charging.month_begin())
    return charging.sums((recent, "dialog__owner"), (embeddings, "person"), of=[owner_id])[owner_id]


def caching_price(model: ModelInfo, prompt_tokens: int) -> Price | None:
    """Return the present price, where tokens from a cache are cheaper than others."""
    price = price_of(prompt_tokens, model.prices, timezone.now())
    return price if price is not None and price.cached is not None and price.cached < price.input else None


def economy_of(dialog: Dialog, model: ModelInfo, est_prompt: int, base: str) -> Economy | None:
    """Return the economy. ``base`` is that of the view: the round and the rewrite with which its requests begin."""
    price = caching_price(model, est_prompt)
    if price is None:
        return None
    answered = dialog.generations.filter(base=base, outcome=Generation.Outcome.KEPT, model=model.model_id)
    result = answered.aggregate(requests=Count("pk"), last=Max("finished_at"))
    is_warm = result["last"] is not None and timezone.now() - result["last"] < CACHE_KEPT
    return Economy(price, result["requests"]) if is_warm else None
