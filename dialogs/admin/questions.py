"""Questions for humans in the admin: evidence, answers and exits. Services decide; this module calls them."""

from typing import Any, cast
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dialogs.actions import questions
from dialogs.actions.exits import exit_named
from dialogs.errors import Refusal
from dialogs.models import Question
from dialogs.views.answers import PersonRequest
from dialogs.views.forms import ExitForm
from dialogs.views.questions import answer_by_form, page_of_question, typed_answer
from dominds.readonly_admin import RecordAdmin, shorten

TITLES = {
    "question": "Question",
    "context_health_critical": "Critical context",
    "budget_exceeded": "Budget exceeded",
    "provider_refused": "The model cannot answer",
}


class AgeFilter(admin.SimpleListFilter):
    title = "age"
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(questions.AGES)

    def queryset(self, request: HttpRequest, rows: QuerySet[Question]) -> QuerySet[Question]:
        if (hours := self.value()) in dict(self.lookup_choices):
            return questions.older_than(rows, int(str(hours)))
        return rows


@admin.register(Question)
class QuestionAdmin(RecordAdmin):
    list_display = ("short_text", "about", "state", "age", "dialog", "owner")  # the rest is on its page
    list_filter = ("kind", "state", AgeFilter)
    list_select_related = ("dialog__owner",)
    search_fields = ("=id", "=dialog__id", "text", "dialog__title", "dialog__owner__username")
    ordering = ("-created_at",)
    actions = ("cancel_selected",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Question]:
        """Leave out questions of deleted dialogs, whose pages do not exist."""
        return super().get_queryset(request).filter(dialog__removed_at=None)

    @admin.display(description="question")
    def short_text(self, question: Question) -> str:
        return shorten(question.text)

    @admin.display(ordering="kind", description="kind")
    def about(self, question: Question) -> str:
        return TITLES.get(question.kind, question.kind)  # a damaged row must not break the list

    @admin.display(ordering="-created_at")
    def age(self, question: Question) -> str:
        hours, seconds = divmod(int((timezone.now() - question.created_at).total_seconds()), 3600)
        return f"{hours:02}:{seconds // 60:02}"

    @admin.display(ordering="dialog__owner")
    def owner(self, question: Question) -> str:
        return str(question.dialog.owner)

    # -- one question --------------------------------------------------------------------------------------------------
    def get_urls(self) -> list[Any]:
        buttons = (("answer", self.answer), ("cancel", self.cancel), ("resolve", self.resolve))
        own = [
            path(
                f"<uuid:question_id>/{name}/",
                self.admin_site.admin_view(require_POST(view)),
                name=f"dialogs_question_{name}",
            )
            for name, view in buttons
        ]
        return own + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the evidence, and the ways to close a question that is open."""
        try:
            return self._page(cast(PersonRequest, request), UUID(object_id))
        except ValueError:
            raise Http404 from None

    def _page(self, request: PersonRequest, question_id: UUID, **given: Any) -> HttpResponse:
        """Show the site's page of the question, whose forms come back here."""
        question = self._question(request, question_id)
        at = reverse("admin:dialogs_question_change", args=[question.pk]).removesuffix("change/")
        return page_of_question(request, question, at=at, in_admin=True, section="admin:index", **given)

    def _question(self, request: HttpRequest, question_id: UUID) -> Question:
        assert isinstance(request.user, User)
        question = questions.questions_of(request.user).filter(pk=question_id).first()
        if question is None or not self.has_view_permission(request, question):
            raise Http404
        return question

    # -- buttons -------------------------------------------------------------------------------------------------------
    def answer(self, request: PersonRequest, question_id: UUID) -> HttpResponse:
        try:
            question = answer_by_form(request, self._question(request, question_id))
        except Refusal as refusal:
            given = {"error": refusal.message, "text": typed_answer(request), "status": refusal.status}
            return self._page(request, question_id, **given)
        return self._finish(request, question, "Answered. The agent goes on.")

    def cancel(self, request: PersonRequest, question_id: UUID) -> HttpResponse:
        try:
            question = questions.cancel(question_id, request.user)
        except Refusal as refusal:
            return self._page(request, question_id, error=refusal.message, status=refusal.status)
        return self._finish(request, question, "Cancelled. The agent goes on without an answer.")

    def resolve(self, request: PersonRequest, question_id: UUID) -> HttpResponse:
        """Take one exit, which the service writes into the admin's log."""
        form = ExitForm(self._question(request, question_id), request.POST)
        if not form.is_valid():
            return self._page(request, question_id, error=form.problem, exits=form, status=400)
        try:
            questions.resolve(question_id, request.user, form.cleaned_data["action"], **form.options())
        except Refusal as refusal:
            error = form.in_words(refusal.message)
            return self._page(request, question_id, error=error, exits=form, status=refusal.status)
        messages.success(request, f"Resolved: {exit_named(form.cleaned_data['action']).label}.")
        return redirect(reverse("admin:dialogs_question_change", args=[question_id]))

    def _finish(self, request: HttpRequest, question: Question, words: str) -> HttpResponse:
        self.log_change(request, question, words)
        messages.success(request, words)
        return redirect(reverse("admin:dialogs_question_change", args=[question.pk]))

    @admin.action(description="Cancel selected (ordinary questions only)")
    def cancel_selected(self, request: HttpRequest, selected: QuerySet[Question]) -> HttpResponse | None:
        """Cancel the selected questions after a confirmation. Questions that suspend a dialog stay open."""
        open_ones = selected.filter(kind=Question.Kind.QUESTION, state=Question.State.OPEN)
        if "confirmed" not in request.POST:
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Cancel these questions?",
                "questions": open_ones,
                "left_out": selected.count() - open_ones.count(),
                "checkbox": ACTION_CHECKBOX_NAME,
            }
            return TemplateResponse(request, "admin/dialogs/question/cancel_selected.html", context)
        assert isinstance(request.user, User)
        cancelled = 0
        for question in open_ones:
            try:
                self.log_change(request, questions.cancel(question.pk, request.user), "Cancelled")
                cancelled += 1
            except Refusal as refusal:
                messages.error(request, f"{shorten(question.text)}: {refusal.message}")
        messages.success(request, f"{cancelled} cancelled. The agents go on without an answer.")
        return None
