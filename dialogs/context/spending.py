"""What a dialog and its owner have spent, from rows."""

from decimal import Decimal

from django.db.models import Sum
from django.utils import timezone

from dialogs.models import Dialog, Generation
from remediation.spending import Spending


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
    """By the owner's dialogs that were active in it, which an index finds; months are UTC."""
    month = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    calls = Generation.objects.filter(
        dialog__owner_id=owner_id, dialog__active_at__gte=month, started_at__gte=month, cost_usd__isnull=False
    )
    return Decimal(calls.aggregate(spent=Sum("cost_usd", default=Decimal(0)))["spent"])
