"""The cost of a team. Each cost is stored at the dialog that caused it, and counts once for the budget of the root."""

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet

from dialogs.extras.teams import sight
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog
from dialogs.models.known_costs import sum_of_costs
from dominds.db.prepared import Select
from remediation.spending import Spending, in_usd, is_used_up


def cost_of(ids: Collection[UUID]) -> Decimal:
    """Return the known cost of these dialogs, the removed ones included."""
    usd: Decimal = Dialog._base_manager.filter(pk__in=ids).aggregate(usd=sum_of_costs())["usd"]
    return usd


@Select
def _with_root(dialog_id: UUID) -> QuerySet[SideDialog]:
    return SideDialog.objects.filter(pk=dialog_id).select_related("root__agent")


def add_team_costs(dialog: Dialog, own: Spending) -> Spending:
    """Return the spending with the cost of the dialogs below. Its ``refused_above`` says why no call may begin: the
    team has used up the root's budget, or the side dialog has ended and is about to be closed.

    A dialog that asks nobody, and was asked by nobody, takes no query.
    """
    if own.dialog_budget is not None and dialog.agent.stated_extras.get("colleagues"):
        own = replace(own, beside=cost_of([side.pk for side in sight.below(dialog.pk, ended=True)]))
    if dialog.origin != Dialog.Origin.AGENT:
        return own
    side = _with_root.one(dialog.pk)
    if ended := sight.ended_here_or_above(side):
        return replace(own, refused_above=f"The side dialog {ended.name} has ended: {ended.reason}.")
    budget = side.root.budget_in_force
    if budget is None:
        return own
    team = [side.root_id, *SideDialog.objects.filter(root=side.root_id).values_list("pk", flat=True)]
    if not is_used_up(budget, cost := cost_of(team)):
        return own
    return replace(
        own, refused_above=f"The team has cost {in_usd(cost)}, and the budget of its first dialog is {in_usd(budget)}."
    )
