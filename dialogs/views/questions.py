"""Q4H: what waits for a human, and what a human can do about it."""

from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dialogs.actions import questions
from dialogs.context import limits, view
from dialogs.errors import Refusal
from dialogs.models import Agent, Dialog, Generation, Question
from dialogs.pages import dialog_page
from dialogs.pages.dialog_page import DialogPage
from dialogs.views.answers import PersonRequest, changed_since, refused
from dialogs.views.forms import AnswerForm, QuestionFilter, ResolveForm

ROWS = 50
LAST_TURNS = 5


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    form = QuestionFilter(request.GET)
    form.is_valid()
    given = form.cleaned_data
    tab = given.get("tab") or "open"
    mine = _visible(request)
    context = {
        "tab": tab,
        "tabs": [(name, label, _of_tab(mine, request, name).count()) for name, label in TABS],
        "form": form,
        "found": Paginator(_filtered(_of_tab(mine, request, tab), given), ROWS).get_page(request.GET.get("page") or 1),
        "agents": Agent.objects.filter(dialogs__questions__isnull=False).distinct(),
        "section": "q4h",
    }
    return render(request, "questions/list.html", context)


TABS = (
    ("open", "Open"),
    ("mine", "Mine"),
    ("answered", "Answered"),
    ("resolved", "Resolved"),
    ("cancelled", "Cancelled"),
)


def _visible(request: PersonRequest) -> QuerySet[Question]:
    dialogs = Dialog.objects.for_user(request.user)
    return Question.objects.filter(dialog__in=dialogs).select_related("dialog__agent", "dialog__owner", "resolved_by")


def _of_tab(found: QuerySet[Question], request: PersonRequest, tab: str) -> QuerySet[Question]:
    if tab == "mine":
        return found.filter(Q(dialog__owner=request.user, state="open") | Q(resolved_by=request.user))
    return found.filter(state=tab)


def _filtered(found: QuerySet[Question], given: dict[str, str]) -> QuerySet[Question]:
    if kind := given.get("kind"):
        found = found.filter(kind=kind)
    if agent := given.get("agent"):
        found = found.filter(dialog__agent=agent)
    if hours := given.get("age"):
        found = found.filter(created_at__lt=timezone.now() - timedelta(hours=int(hours)))
    return found.order_by("-created_at")


@login_required
@require_GET
def show(request: PersonRequest, question_id: UUID) -> HttpResponse:
    return _page(request, _question_or_404(request, question_id))


def _page(
    request: PersonRequest, question: Question, *, error: str = "", text: str = "", status: int = 200
) -> HttpResponse:
    dialog = question.dialog
    page = DialogPage(dialog, request.user, request=request)
    attempts = Generation.objects.filter(dialog=dialog, purpose="forced_clear", clear_episode=question.clear_episode)
    may_resolve = questions.may_resolve(request.user, question)
    context = {
        "question": question,
        "page": page,
        "attempts": attempts.select_related("snapshot").order_by("pk") if question.clear_episode is not None else [],
        "entries": dialog_page.entries_of(dialog, view.visible_turns(dialog, None, LAST_TURNS)),
        "may_resolve": may_resolve,
        "larger_models": limits.larger_models(dialog)
        if may_resolve and question.kind == Question.Kind.CRITICAL
        else [],
        "error": error,
        "text": text,
        "section": "q4h",
    }
    return render(request, "questions/question.html", context, status=status)


@login_required
@require_POST
def answer(request: PersonRequest, question_id: UUID) -> HttpResponse:
    """Answer an ordinary question; the run goes on."""
    question = _question_or_404(request, question_id)
    form = AnswerForm(request.POST)
    form.is_valid()
    text = form.cleaned_data.get("text", "").replace("\r\n", "\n")
    try:
        questions.answer(question.pk, request.user, text)
    except Refusal as refusal:
        return _refused(request, question, refusal, text)
    return _done(request, question, "Answered. The agent goes on.")


@login_required
@require_POST
def cancel(request: PersonRequest, question_id: UUID) -> HttpResponse:
    question = _question_or_404(request, question_id)
    try:
        questions.cancel(question.pk, request.user)
    except Refusal as refusal:
        return _refused(request, question, refusal)
    return _done(request, question, "The question was cancelled.")


@login_required
@require_POST
def resolve(request: PersonRequest, question_id: UUID) -> HttpResponse:
    """Take one of the five exits of a critical suspension."""
    question = _question_or_404(request, question_id)
    form = ResolveForm(request.POST)
    if not form.is_valid():
        return _page(request, question, error="Choose one of the five ways out.", status=400)
    try:
        questions.resolve(question.pk, request.user, form.cleaned_data["action"], **form.options())
    except Refusal as refusal:
        return _refused(request, question, refusal, form.cleaned_data["reminder_content"])
    return _done(request, question, "Done. The dialog is no longer suspended.")


def _question_or_404(request: PersonRequest, question_id: UUID) -> Question:
    question = _visible(request).filter(pk=question_id).first()
    if question is None:
        raise Http404
    return question


def _refused(request: PersonRequest, question: Question, refusal: Refusal, text: str = "") -> HttpResponse:
    """What stands in the way, with nobody's words lost; who was faster shows on the page itself."""
    if request.htmx:
        return refused(request, refusal, f"/d/{question.dialog_id}/")
    question = _question_or_404(request, question.pk)
    return _page(request, question, error=refusal.message, text=text, status=refusal.status)


def _done(request: PersonRequest, question: Question, words: str) -> HttpResponse:
    if request.htmx:
        return changed_since(request, question.dialog)
    messages.success(request, words)
    if request.POST.get("from") == "dialog":
        return redirect("dialog", dialog_id=question.dialog_id)
    return redirect("question", question_id=question.pk)
