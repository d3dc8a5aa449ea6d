"""Proposals and cleanup tasks in the admin. They are in this app because accepting a proposal changes agents."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string

from dialogs.actions import interventions
from dialogs.errors import NotFound, Refusal
from dialogs.extras.operations import critic
from dominds.llm.catalog.catalog import UnknownModel
from dominds.readonly_admin import RecordAdmin
from remediation.models import CleanupTask, Proposal


class ActionsAdmin(RecordAdmin):
    """An admin whose actions treat each selected row by itself: a refusal is shown, and does not stop the others."""

    def run(
        self, request: HttpRequest, selected: QuerySet[Any], action: Callable[[int, User], object], past: str
    ) -> None:
        assert isinstance(request.user, User)
        done = 0
        for row in selected:
            try:
                action(row.pk, request.user)
            except Refusal as refusal:
                messages.error(request, f"{row}: {refusal.message}")
                continue
            self.log_change(request, row, past)
            done += 1
        if done:
            messages.success(request, f"{past}: {done}.")


@admin.register(Proposal)
class ProposalAdmin(ActionsAdmin):
    list_display = ("id", "agent", "kind", "__str__", "grounds", "state", "decided_by", "created_at")
    list_filter = ("state", "kind")
    list_select_related = ("agent", "decided_by")
    search_fields = ("agent__id", "grounds")
    readonly_fields = ("replay",)
    actions = ("accept", "reject")

    @admin.display(description="on past dialogs")
    def replay(self, proposal: Proposal) -> str:
        """Show the trial of an open proposal. A closed one is not tried, since other settings are in force by now."""
        if proposal.state != Proposal.State.OPEN:
            return "–"
        try:
            return render_to_string("admin/_dry_run.html", {"found": critic.replay(proposal)})
        except (UnknownModel, NotFound) as error:
            return str(error)

    @admin.action(description="Accept selected proposals: apply the change")
    def accept(self, request: HttpRequest, selected: QuerySet[Proposal]) -> None:
        self.run(request, selected, critic.accept, "Accepted")

    @admin.action(description="Reject selected proposals")
    def reject(self, request: HttpRequest, selected: QuerySet[Proposal]) -> None:
        self.run(request, selected, critic.reject, "Rejected")


@admin.register(CleanupTask)
class CleanupTaskAdmin(ActionsAdmin):
    list_display = ("id", "dialog", "reason", "state", "created_at", "done_by", "done_at")
    list_filter = ("state",)
    list_select_related = ("dialog", "done_by")
    search_fields = ("=dialog__id", "reason")
    actions = ("finish",)

    @admin.action(description="Mark selected tasks as done")
    def finish(self, request: HttpRequest, selected: QuerySet[CleanupTask]) -> None:
        self.run(request, selected, interventions.finish_task, "Done")
