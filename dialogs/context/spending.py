"""What a dialog and its owner have spent, and what its next requests may cost, from rows."""

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, Max, QuerySet, Sum
from django.utils import timezone

from dialogs.errors import Conflict
from dialogs.models import ApiKey, Dialog, EmbeddingUse, Generation
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.models.prices import Price, price_of
from remediation.context import Economy
from remediation.spending import Spending, in_usd

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
    """By the owner's dialogs that were active in it, which an index finds, and embeddings; months are UTC."""
    calls, embeddings = _of_this_month()
    rows = (calls.filter(dialog__owner_id=owner_id), embeddings.filter(person_id=owner_id))
    spent = (found.aggregate(spent=Sum("cost_usd", default=Decimal(0)))["spent"] for found in rows)
    return sum(map(Decimal, spent), Decimal(0))


def spent_by_keys(keys: Collection[int]) -> Counter[int]:
    """USD by key: this month's calls of the dialogs that it holds by ``/v1``, and its embeddings."""
    calls, embeddings = _of_this_month()
    spent: Counter[int] = Counter()
    for rows, key in ((calls, "dialog__client__key"), (embeddings, "key")):
        found = rows.filter(**{f"{key}__in": keys}).order_by().values_list(key).annotate(Sum("cost_usd"))
        spent.update(dict(found))
    return spent


def check_budget_of(key: ApiKey) -> None:
    """Raises ``Conflict`` where what a key may cost in a month is used up."""
    if key.budget_usd is not None and (spent := Decimal(spent_by_keys([key.pk])[key.pk])) >= key.budget_usd:
        raise Conflict(
            "budget_exceeded",
            f"The calls of the key {key} have cost {in_usd(spent)} this month, and its budget is "
            f"{in_usd(key.budget_usd)}. Wait for the next month, or use a key with another budget.",
        )


def _of_this_month() -> tuple[QuerySet[Generation], QuerySet[EmbeddingUse]]:
    month = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    calls = Generation.objects.filter(dialog__active_at__gte=month, started_at__gte=month, cost_usd__isnull=False)
    return calls, EmbeddingUse.objects.filter(day__gte=month.date())


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
