"""The spending of a dialog and its owner, and the cost of a rewrite against the requests to come, from rows."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, Max
from django.utils import timezone

from dialogs.extension import spending_adders
from dialogs.models import Dialog, Generation, PersonSettings
from dialogs.store import charging
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.models.prices import Price, price_of
from remediation.context import Economy
from remediation.spending import Spending, Spent

CACHE_KEPT = timedelta(minutes=5)  # at least, by every provider, after the last request


def spending_of(dialog: Dialog) -> Spending:
    """Return the spending of a dialog that was read ``whole``. The month is summed only if the owner has a budget."""
    budget = dialog.monthly_budget_usd
    spending = Spending(
        dialog=dialog.known_cost,
        dialog_budget=dialog.budget_in_force,
        month=spent_this_month(dialog.owner_id) if budget is not None else Decimal(0),
        month_budget=budget,
        unpriced=dialog.unpriced_generations,
    )
    return _with_extensions(dialog, spending)


def _with_extensions(dialog: Dialog, spending: Spending) -> Spending:
    for add in spending_adders():
        spending = add(dialog, spending)
    return spending


class NoRoomInBudget(Exception):
    """Raised where a call must not begin now: a budget is used up, or calls under way may use up what it has left."""


def check_room(dialog: Dialog, cost_usd: Decimal) -> None:
    """Raise ``NoRoomInBudget`` if a budget has no room for another call of the dialog, which has cost ``cost_usd`` so
    far. Call it in the transaction that stores the call's row, with a dialog from ``Dialog.objects.whole``.
    """
    month = month_under_lock(dialog.owner_id, beside=dialog) if dialog.monthly_budget_usd is not None else Spending()
    spending = _with_extensions(dialog, replace(month, dialog=cost_usd, dialog_budget=dialog.budget_in_force))
    if spending.refused_above or spending.exceeded or spending.must_wait:
        raise NoRoomInBudget(spending.refused_above or spending.reason)


def month_under_lock(person_id: int, beside: Dialog | None = None) -> Spending:
    """Return a person's spending of this month, with an amount reserved for each of their calls under way, except those
    of the dialog ``beside``.

    The budget's row stays locked until the transaction ends, so that a call sees all that began before it.
    """
    own = PersonSettings.objects.select_for_update().filter(user=person_id).first()
    if own is None or own.monthly_budget_usd is None:
        return Spending()
    under_way = Generation.objects.filter(outcome=Generation.Outcome.RUNNING, dialog__owner=person_id)
    others = under_way.exclude(dialog=beside) if beside else under_way
    return Spending(
        month=spent_this_month(person_id),
        month_budget=own.monthly_budget_usd,
        reserved=others.count() * charging.LEAST_RESERVED_USD,
    )


def spent_this_month(owner_id: int) -> Decimal:
    """Return the USD that a person has spent this month, as far as prices are known."""
    return cost_this_month(owner_id).usd


def cost_this_month(owner_id: int) -> Spent:
    """Sum calls in the owner's dialogs active this month, which an index finds, and embeddings. Months are UTC."""
    calls, embeddings = charging.calls_of_this_month()
    recent = calls.filter(dialog__active_at__gte=charging.month_begin())
    return charging.sums((recent, "dialog__owner"), (embeddings, "person"), of=[owner_id])[owner_id]


def caching_price(model: ModelInfo, prompt_tokens: int) -> Price | None:
    """Return the present price if cached tokens are cheaper than others, else None."""
    price = price_of(prompt_tokens, model.prices, timezone.now())
    return price if price is not None and price.cached is not None and price.cached < price.input else None


def economy_of(dialog: Dialog, model: ModelInfo, est_prompt: int, base: str) -> Economy | None:
    """Return the price and use of the provider's cache for requests with this ``base``.

    None if cached tokens are not cheaper, or the cache has expired.
    """
    price = caching_price(model, est_prompt)
    if price is None:
        return None
    answered = dialog.generations.filter(base=base, outcome=Generation.Outcome.KEPT, model=model.model_id)
    totals = answered.aggregate(requests=Count("pk"), last=Max("finished_at"))
    is_warm = totals["last"] is not None and timezone.now() - totals["last"] < CACHE_KEPT
    return Economy(price, totals["requests"]) if is_warm else None
