"""A team as people and programs see it: a root with all side dialogs below it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from dialogs.context import limits
from dialogs.extras.teams import rules, sight
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Question, Turn
from dialogs.pages.chip import Chip, chip_of
from health.levels import Level
from remediation.spending import Spent

_WORST_FIRST = (Level.CRITICAL, Level.CAUTION, Level.HEALTHY, Level.UNKNOWN)


@dataclass(frozen=True)
class Member:
    """A side dialog, how it stands, and the question that waits in it."""

    side: SideDialog
    question: Question | None
    newest: str  # its newest line

    @property
    def dialog(self) -> Dialog:
        return self.side.dialog

    @cached_property
    def health(self) -> dict[str, Any]:
        return limits.health_of(self.dialog)

    @cached_property
    def chip(self) -> Chip:
        return chip_of(self.health)

    @property
    def standing(self) -> str:
        return sight.standing(self.side)

    @property
    def state(self) -> str:
        return sight.state(self.side)

    @property
    def is_at_work(self) -> bool:
        return self.side.answered_at is None and self.side.ended_at is None

    @property
    def ended_at(self) -> datetime | None:
        return self.side.answered_at or self.side.ended_at

    @property
    def seconds(self) -> int:
        """Return how long it has worked for the newest call."""
        return max(0, round(((self.ended_at or timezone.now()) - self.side.asked_at).total_seconds()))

    @property
    def spent(self) -> Spent:
        return Spent(self.dialog.known_cost, self.dialog.unpriced_generations)

    @property
    def indent(self) -> int:
        return self.side.level - 1


@dataclass(frozen=True)
class Team:
    """Members in the order of the tree, each above those that it asked."""

    root: Dialog
    members: tuple[Member, ...]

    @property
    def at_work(self) -> int:
        return sum(member.is_at_work for member in self.members)

    @property
    def asking(self) -> list[Member]:
        """Return the members that wait for a person."""
        return [member for member in self.members if member.question]

    @property
    def spent(self) -> Spent:
        """Return the cost of the root and of all members, each counted once."""
        own = Spent(self.root.known_cost, self.root.unpriced_generations)
        return sum((member.spent for member in self.members), own)

    @property
    def worst(self) -> str:
        """Return the worst level of those at work."""
        levels = {member.chip.level for member in self.members if member.is_at_work}
        return next((level.value for level in _WORST_FIRST if level.value in levels), Level.UNKNOWN.value)


def team_of(dialog: Dialog) -> Team | None:
    """Return the team that a dialog belongs to, as its root or by its place in it; None where there is none."""
    if dialog.origin != Dialog.Origin.AGENT and not dialog.agent.stated_extras.get("colleagues"):
        return None  # without a query: most dialogs are not of a team
    own = SideDialog.objects.select_related("root__agent").filter(pk=dialog.pk).first()
    root = own.root if own else dialog
    newest = Turn.objects.filter(dialog=OuterRef("pk"), role__in=[Turn.Role.ASSISTANT, Turn.Role.TOOL]).order_by("-seq")
    rows = SideDialog.objects.filter(root=root, dialog__removed_at=None).select_related("dialog__agent")
    sides, texts = list(rows), dict(rows.values_list("pk", Subquery(newest.values("text")[:1])))
    open_ones = {row.dialog_id: row for row in Question.objects.filter(dialog__in=[s.pk for s in sides], state="open")}
    ordered = list(_as_tree(sides, root))
    return Team(
        root, tuple(Member(side, open_ones.get(side.pk), rules.shorten(texts.get(side.pk) or "")) for side in ordered)
    )


def _as_tree(sides: Sequence[SideDialog], above: Dialog | SideDialog) -> Iterator[SideDialog]:
    for side in sides:
        if side.parent_id == above.pk:
            yield side
            yield from _as_tree(sides, side)
