"""The inbox of questions for humans (Q4H), the page of one question, and its buttons."""

from typing import Any
from uuid import UUID

import structlog
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_GET, require_POST

from dialogs.actions import questions
from dialogs.actions.exits import EXITS
from dialogs.actions.question_rows import ALLOWING, INSTEAD, INSTEAD_LABEL, REFUSE, approval_in
from dialogs.context import view
from dialogs.errors import DAMAGED, Invalid, Refusal
from dialogs.models import Agent, Question
from dialogs.pages import entries
from dialogs.pages.dialog_page import DialogPage
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import ByLink, PersonRequest, changed_pieces, refuse
from dialogs.views.forms import AnswerForm, ExitForm, QuestionFilter, clean
from dominds.db.bounded import NewestFirst

log = structlog.get_logger(__name__)

ROWS = 50
MOST_COUNTED = 99
LAST_TURNS = 5


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    form = QuestionFilter(request.GET)
    form.is_valid()
    given = form.cleaned_data
    tab = given.get("tab") or "open"
    visible = questions.questions_of(request.user)
    rows = _filter(_of_tab(visible, request, tab), given)
    result = NewestFirst(rows, ROWS, "created_at", request.GET.get("until", "")).get_page(request.GET.get("page") or 1)
    chosen = next((row for row in result if str(row.pk) == request.GET.get("at")), next(iter(result), None))
    context = {
        "tab": tab,
        "tabs": [(name, pgettext("tab", label), _count(_of_tab(visible, request, name))) for name, label in TABS],
        "form": form,
        "found": result,
        "chosen_id": chosen.pk if chosen else None,
        "reader": _reader(request, chosen) if chosen else "",
        "agents": Agent.objects.all(),
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


def _of_tab(rows: QuerySet[Question], request: PersonRequest, tab: str) -> QuerySet[Question]:
    if tab == "mine":
        every = Question.objects.order_by()  # SQLite takes no order inside a union
        asked, resolved = every.filter(dialog__owner=request.user, state="open"), every.filter(resolved_by=request.user)
        return rows.filter(pk__in=asked.values("pk").union(resolved.values("pk"), all=True))
    return rows.filter(state=tab)


def _count(rows: QuerySet[Question]) -> str:
    """Return the number of rows as a text that fits a tab, or an empty text for none."""
    number = rows.order_by()[: MOST_COUNTED + 1].count()
    return f"{MOST_COUNTED}+" if number > MOST_COUNTED else str(number or "")


def _filter(rows: QuerySet[Question], given: dict[str, str]) -> QuerySet[Question]:
    if kind := given.get("kind"):
        rows = rows.filter(kind=kind)
    if agent := given.get("agent"):
        rows = rows.filter(dialog__agent=agent)
    if hours := given.get("age"):
        rows = questions.older_than(rows, int(hours))
    return rows.order_by("-created_at", "-pk")


@login_required
@require_GET
def show(request: PersonRequest, question_id: UUID) -> HttpResponse:
    question = questions.question_for(request.user, question_id)
    if request.htmx and request.htmx.target == "reader":
        return HttpResponse(_reader(request, question))
    return page_of_question(request, question)


def _reader(request: PersonRequest, question: Question) -> str:
    """Render the chosen question beside the list, which is shown even if the question's dialog cannot be read."""
    try:
        context = {**_question_context(request, question), **_evidence(request, question)}
        return render_to_string("questions/_reader.html", context, request)
    except DAMAGED:
        log.exception("dialog_unreadable", dialog_id=str(question.dialog_id))
        return render_to_string("questions/_damaged.html", {"question": question}, request)


def page_of_question(
    request: PersonRequest,
    question: Question,
    *,
    text: str = "",
    exits: ExitForm | None = None,
    status: int = 200,
    **shown: Any,
) -> HttpResponse:
    """Show a question with its evidence. ``shown`` are further variables of the template, such as ``error``."""
    context = {**_question_context(request, question, exits), "text": text, "section": "q4h", **shown}
    if link := _link_of(request):
        return render(request, link.page, context, status=status)
    return render(request, "questions/question.html", {**context, **_evidence(request, question)}, status=status)


def _question_context(request: PersonRequest, question: Question, exits: ExitForm | None = None) -> dict[str, Any]:
    """Return the variables for the piece of one question. ``at`` is the address of its forms."""
    may_resolve = questions.may_resolve(request.user, question)
    link = _link_of(request)
    suspends = question.kind != Question.Kind.QUESTION
    ways = {**{way.name: way.label for way in EXITS}, INSTEAD: INSTEAD_LABEL}
    return {
        "question": question,
        "person": request.user,
        "at": link.address if link else reverse("question", args=[question.pk]),
        "may_resolve": may_resolve,
        "way": ways.get(question.action, question.action),
        "exits": (exits or ExitForm(question)) if may_resolve and suspends else None,
    }


def _evidence(request: PersonRequest, question: Question) -> dict[str, Any]:
    dialog = question.dialog
    return {
        "page": DialogPage(dialog, request.user, request=request),
        "attempts": questions.attempts_of(question),
        "entries": entries.entries_of(dialog, view.visible_turns(dialog, None, LAST_TURNS)),
    }


def _link_of(request: PersonRequest) -> ByLink | None:
    return getattr(request, "by_link", None)


@login_required
@require_POST
def answer(request: PersonRequest, question_id: UUID) -> HttpResponse:
    """Answer an ordinary question; the run goes on."""
    question = questions.question_for(request.user, question_id)
    try:
        answer_by_form(request, question)
    except Refusal as refusal:
        return _refuse(request, question, refusal, typed_answer(request))
    for_program = _("Answered. The program can read it now.")
    return _finish(request, question, for_program if question.is_from_outside else _("Answered. The agent goes on."))


def answer_by_form(request: PersonRequest, question: Question) -> Question:
    """Answer a question with the fields of a form. Raises ``Refusal``."""
    if request.POST.get("instead"):
        return questions.answer_instead(question.pk, request.user, request.POST.get("result", "").replace("\r\n", "\n"))
    if request.POST.get("result", "").strip():  # its field and the choices are in the same form
        raise Invalid(_("You wrote a result in the tool’s place. Press “Give this result”, or empty its field first."))
    text = typed_answer(request)
    if question.approves and request.POST.get("refuse"):  # the button, whose reason may be left out
        text = text if text.strip() else REFUSE
        if approval_in(text) in ALLOWING:
            raise Invalid(
                _("These words allow the call, and the button refuses it. Press “Allow”, or give another reason.")
            )
    clean(AnswerForm(request.POST))
    if request.FILES:
        raise Invalid("An answer takes words alone: queue files as a message.")
    return questions.answer(question.pk, request.user, text, request.POST.get("arguments", ""))


def typed_answer(request: PersonRequest) -> str:
    return request.POST.get("text", "").replace("\r\n", "\n")


@login_required
@require_POST
def cancel(request: PersonRequest, question_id: UUID) -> HttpResponse:
    question = questions.question_for(request.user, question_id)
    try:
        questions.cancel(question.pk, request.user)
    except Refusal as refusal:
        return _refuse(request, question, refusal)
    return _finish(request, question, _("The question was cancelled."))


@login_required
@require_POST
def resolve(request: PersonRequest, question_id: UUID) -> HttpResponse:
    """Take one of the exits of a question that suspends its dialog."""
    question = questions.question_for(request.user, question_id)
    form = ExitForm(question, request.POST)
    if not form.is_valid():
        return page_of_question(request, question, error=form.problem, exits=form, status=400)
    try:
        questions.resolve(question.pk, request.user, form.cleaned_data["action"], **form.options())
    except Refusal as refusal:
        refusal.message = form.in_words(refusal.message)
        return _refuse(request, question, refusal, exits=form)
    return _finish(request, question, _("Done. The dialog is no longer suspended."))


def _refuse(
    request: PersonRequest, question: Question, refusal: Refusal, text: str = "", exits: ExitForm | None = None
) -> HttpResponse:
    """Show the reason, and keep the input. The question is read again, since another person may have been first."""
    if request.htmx and not _link_of(request):
        return refuse(request, refusal, f"/d/{question.dialog_id}/")
    question = questions.question_for(request.user, question.pk)
    return page_of_question(
        request, question, error=in_plain_words(refusal.message), text=text, exits=exits, status=refusal.status
    )


def _finish(request: PersonRequest, question: Question, words: str) -> HttpResponse:
    if link := _link_of(request):
        return render(request, link.done, {"done": words, "question_id": question.pk})
    if request.htmx:
        return changed_pieces(request, question.dialog)
    messages.success(request, words)
    if request.POST.get("from") == "inbox":
        return redirect("questions")
    if request.POST.get("from") == "dialog":
        return redirect("dialog", dialog_id=question.dialog_id)
    return redirect("question", question_id=question.pk)
