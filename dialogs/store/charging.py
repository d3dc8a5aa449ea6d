"""At whose cost models are asked: that of the API key whose call set a dialog to work, or of its person alone.

The key of the request under way is noted where it is known, at the door. A change that sets a dialog to work takes it from here,
whatever call it belongs to, and is refused where the key's budget is used up. Each model call's row names the key.
"""

from collections import Counter
from collections.abc import Collection
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import QuerySet, Sum
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_only_middleware

from dialogs.errors import BudgetSpent
from dialogs.models import ApiKey, EmbeddingUse, Generation
from dominds.web.middleware import Handler
from remediation.spending import in_usd

_key: ContextVar[ApiKey | None] = ContextVar("charged_key", default=None)


def charge(key: ApiKey) -> None:
    """What the request under way sets to work is at the cost of this key."""
    _key.set(key)


@sync_only_middleware
def of_one_request(get_response: Handler) -> Handler:
    def answer(request: HttpRequest) -> HttpResponseBase:
        before = _key.set(None)  # threads go on to other requests
        try:
            return get_response(request)
        finally:
            _key.reset(before)

    return answer


def charged() -> int | None:
    """The id of the key that pays; None: no key does. Raises ``BudgetSpent``."""
    key = _key.get()
    if key is None:
        return None
    check_budget_of(key)
    return key.pk


def check_budget_of(key: ApiKey) -> None:
    """Raises ``BudgetSpent`` where what a key may cost in a month is used up."""
    if key.budget_usd is not None and (spent := Decimal(spent_by_keys([key.pk])[key.pk])) >= key.budget_usd:
        next_month = (month_begin() + timedelta(days=32)).replace(day=1)
        raise BudgetSpent(
            f"The calls of the key {key} have cost {in_usd(spent)} this month, and its budget is "
            f"{in_usd(key.budget_usd)}. Wait for the next month, or use a key with another budget.",
            int((next_month - timezone.now()).total_seconds()) + 1,
        )


def spent_by_keys(keys: Collection[int]) -> Counter[int]:
    """USD by key: this month's model calls that it set to work, and its embeddings."""
    spent: Counter[int] = Counter()
    for rows in of_this_month():
        spent.update(dict(rows.filter(key__in=keys).order_by().values_list("key").annotate(Sum("cost_usd"))))
    return spent


def of_this_month() -> tuple[QuerySet[Generation], QuerySet[EmbeddingUse]]:
    """Model calls and embeddings; months are UTC."""
    calls = Generation.objects.filter(started_at__gte=month_begin(), cost_usd__isnull=False)
    return calls, EmbeddingUse.objects.filter(day__gte=month_begin().date())


def month_begin() -> datetime:
    return timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
