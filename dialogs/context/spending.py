"""What a dialog and its owner have spent, and what its next requests may cost, from rows."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Max, Q, QuerySet, Sum, When
from django.utils import timezone

from dialogs.errors import Conflict
from dialogs.models import ApiKey, Dialog, EmbeddingUse, Generation
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.models.prices import Price, price_of
from remediation.context import Economy
from remediation.spending import Spending, Spent, in_usd

CACHE_KEPT = timedelta(minutes=5)  # by every provider at least, from the last request on


def spending_of(dialog: Dialog) -> Spending:
    """Give a dialog that was read ``whole``, for its owner's budget. Without one the month is not added up."""
    budget = dialog.monthly_budget_usd
    return Spending(
        dialog=dialog.cost_usd,
        dialog_budget=dialog.budget_in_force,
        month=spent_this_month(dialog.owner_id) if budget is not None else Decimal(0),
        month_budget=budget,
        unpriced=dialog.unpriced_generations,
    )


def spent_this_month(owner_id: int) -> Decimal:
    """As far as prices are known."""
    return cost_this_month(owner_id).usd


def cost_this_month(owner_id: int) -> Spent:
    """By the owner's dialogs that were active in it, which an index finds, and embeddings; months are UTC."""
    calls, embeddings = _of_this_month()
    return _sums((calls, "dialog__owner"), (embeddings, "person"), of=[owner_id])[owner_id]


def costs_of_keys(keys: Collection[int]) -> Mapping[int, Spent]:
    """By key: this month's calls of the dialogs that it holds by ``/v1``, and its embeddings."""
    calls, embeddings = _of_this_month()
    return _sums((calls, "dialog__client__key"), (embeddings, "key"), of=keys)


def _sums(*tables: tuple[QuerySet[Any], str], of: Collection[int]) -> Mapping[int, Spent]:
    """By the numbers that these columns hold; the rows come with ``unknown``, the calls without a cost."""
    sums: defaultdict[int, Spent] = defaultdict(Spent)
    for rows, column in tables:
        found = rows.filter(**{f"{column}__in": of}).order_by().values_list(column)
        for number, usd, unpriced in found.annotate(Sum("cost_usd", default=Decimal(0)), Sum("unknown", default=0)):
            sums[number] += Spent(Decimal(usd), unpriced)
    return sums


def check_budget_of(key: ApiKey) -> None:
    """Raises ``Conflict`` where what a key may cost in a month is used up."""
    if key.budget_usd is not None and (spent := costs_of_keys([key.pk])[key.pk].usd) >= key.budget_usd:
        raise Conflict(
            "budget_exceeded",
            f"The calls of the key {key} have cost {in_usd(spent)} this month, and its budget is "
            f"{in_usd(key.budget_usd)}. Wait for the next month, or use a key with another budget.",
        )


def _of_this_month() -> tuple[QuerySet[Generation], QuerySet[EmbeddingUse]]:
    month = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    free = (Generation.Outcome.RUNNING, Generation.Outcome.FAILED)  # without a report
    unknown = Case(When(~Q(outcome__in=free), cost_usd=None, then=1), default=0, output_field=IntegerField())
    calls = Generation.objects.filter(dialog__active_at__gte=month, started_at__gte=month).annotate(unknown=unknown)
    return calls, EmbeddingUse.objects.filter(day__gte=month.date()).annotate(unknown=F("unpriced"))


def caching_price(model: ModelInfo, prompt_tokens: int) -> Price | None:
    """The price of now, where tokens from a cache are cheaper than others."""
    price = price_of(prompt_tokens, model.prices, timezone.now())
    return price if price is not None and price.cached is not None and price.cached < price.input else None


def economy_of(dialog: Dialog, model: ModelInfo, est_prompt: int, base: str) -> Economy | None:
    """``base`` is that of the view: the round and the rewrite that its requests begin with."""
    price = caching_price(model, est_prompt)
    if price is None:
        return None
    answered = dialog.generations.filter(base=base, outcome=Generation.Outcome.KEPT, model=model.model_id)
    found = answered.aggregate(requests=Count("pk"), last=Max("finished_at"))
    is_warm = found["last"] is not None and timezone.now() - found["last"] < CACHE_KEPT
    return Economy(price, found["requests"]) if is_warm else None
