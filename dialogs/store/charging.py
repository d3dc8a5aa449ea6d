"""Charging of model calls: to the API key whose call set a dialog to work, or to its person.

The key of a request is noted when the request comes in. A change that sets a dialog to work takes the key from here,
for any kind of call, and is refused if the key's budget is used up. The row of each model call names the key.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Case, IntegerField, Q, QuerySet, Sum, When
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_only_middleware

from dialogs.errors import BudgetSpent
from dialogs.models import ApiKey, Dialog, EmbeddingUse, Generation
from dialogs.models.known_costs import COST_IS_UNKNOWN, sum_of_costs, unpriced_of_sums
from dialogs.state import State
from dominds.web.middleware import Handler
from remediation.spending import Spent, in_usd, is_amount, is_used_up

LEAST_RESERVED_USD = Decimal("0.01")  # for each call under way, whose cost is not known before its end
UNDER_WAY = (State.QUEUED.value, State.GENERATING.value)
UNDER_WAY_SECONDS = 10  # after which another try is worth it

_key: ContextVar[ApiKey | None] = ContextVar("charged_key", default=None)


def charge(key: ApiKey) -> None:
    """Charge this key for the work that the present request starts."""
    _key.set(key)


@sync_only_middleware
def forget_key_after_request(get_response: Handler) -> Handler:
    def answer(request: HttpRequest) -> HttpResponseBase:
        before = _key.set(None)  # the thread's next request must not inherit the key
        try:
            return get_response(request)
        finally:
            _key.reset(before)

    return answer


def paying_key(dialog_id: UUID) -> int | None:
    """Return the id of the key that pays for starting a dialog's work, or None. Raises ``BudgetSpent``.

    Call it within a transaction, at whose end the dialog counts as under way.
    """
    key = _key.get()
    if key is None:
        return None
    if key.budget_usd is not None:
        # Lock the key's row, so that callers count what is under way one after another.
        ApiKey.objects.select_for_update().filter(pk=key.pk).first()
        others = Dialog.objects.filter(key=key.pk, state__in=UNDER_WAY).exclude(pk=dialog_id)
        check_budget_of(key, others.count() * LEAST_RESERVED_USD)
    return key.pk


def check_budget_of(key: ApiKey, reserved: Decimal = Decimal(0)) -> None:
    """Raise ``BudgetSpent`` if a key's monthly budget is used up, or would be by ``reserved`` for calls under way."""
    if key.budget_usd is None:
        return
    spent = costs_of_keys([key.pk])[key.pk].usd
    if is_used_up(key.budget_usd, spent + reserved):
        next_month = (month_begin() + timedelta(days=32)).replace(day=1)
        seconds = int((next_month - timezone.now()).total_seconds()) + 1
        if not is_amount(key.budget_usd):
            raise BudgetSpent(f"The stored budget of the key {key} is damaged. Use another key.", seconds)
        if spent < key.budget_usd:
            raise BudgetSpent(
                f"The calls of the key {key} have cost {in_usd(spent)} this month, others are under way, and its "
                f"budget is {in_usd(key.budget_usd)}. Try again when they have ended.",
                UNDER_WAY_SECONDS,
            )
        raise BudgetSpent(
            f"The calls of the key {key} have cost {in_usd(spent)} this month, and its budget is "
            f"{in_usd(key.budget_usd)}. Wait for the next month, or use a key with another budget.",
            seconds,
        )


def costs_of_keys(keys: Collection[int]) -> Mapping[int, Spent]:
    """Return this month's cost of each key: of the model calls that it started, and of its embeddings."""
    calls, embeddings = calls_of_this_month()
    return sums((calls, "key"), (embeddings, "key"), of=keys)


def calls_of_this_month() -> tuple[QuerySet[Generation], QuerySet[EmbeddingUse]]:
    """Return this month's model calls and embeddings; ``unknown`` counts calls without a cost. Months are UTC."""
    free = (Generation.Outcome.RUNNING, Generation.Outcome.FAILED)  # outcomes that cost nothing without a report
    unknown = Case(When(COST_IS_UNKNOWN & ~Q(outcome__in=free), then=1), default=0, output_field=IntegerField())
    calls = Generation.objects.filter(started_at__gte=month_begin()).annotate(unknown=unknown)
    embeddings = EmbeddingUse.objects.filter(began_at__gte=month_begin()).annotate(unknown=unpriced_of_sums())
    return calls, embeddings


def sums(*tables: tuple[QuerySet[Any], str], of: Collection[int]) -> Mapping[int, Spent]:
    """Add costs up by the values of these columns."""
    result: defaultdict[int, Spent] = defaultdict(Spent)
    for rows, column in tables:
        grouped = rows.filter(**{f"{column}__in": of}).order_by().values_list(column)
        for number, usd, unpriced in grouped.annotate(usd=sum_of_costs(), left_out=Sum("unknown", default=0)):
            result[number] += Spent(Decimal(usd), unpriced)
    return result


def quarter_of(moment: datetime) -> datetime:
    """Return the beginning of the quarter of an hour in which sums count this moment."""
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def month_begin() -> datetime:
    return timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
