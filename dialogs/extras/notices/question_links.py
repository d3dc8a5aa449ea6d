"""Answers by the signed link in a mail: its holder acts as the person who was asked, on this one question alone.

The link's token moves from the address into a cookie of this path, so that it is in no page that sends a form, no
history and no ``Referer``. (A page that sends no referrer at all would post with ``Origin: null``, which the CSRF check
refuses.)
"""

from collections.abc import Callable
from functools import wraps
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.extras.notices import question_mail
from dialogs.views import questions
from dialogs.views.answers import ByLink, PersonRequest

COOKIE = "dominds_answer"


@require_GET
@never_cache
def open_link(request: HttpRequest, question_id: UUID, token: str) -> HttpResponse:
    """Show the question without changing anything, since mail programs follow links by themselves."""
    if question_mail.person_of(question_id, token) is None:
        return _over(request, question_id, token)
    answer = redirect("question-by-mail", question_id=question_id)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=question_mail.LINK_DAYS * 24 * 3600,
        path=reverse("question-by-mail", args=[question_id]),
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def _over(request: HttpRequest, question_id: UUID, token: str) -> HttpResponse:
    closed = question_mail.closed_meanwhile(question_id, token)
    context = {"question_id": question_id, "closed": closed, "link_days": question_mail.LINK_DAYS}
    return render(request, "questions/link_over.html", context, status=404)


def by_mail(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view for people who are logged in, so that it serves the holder of the link, for this question alone."""

    @never_cache
    @wraps(view)
    def show(request: PersonRequest, question_id: UUID) -> HttpResponse:
        token = request.COOKIES.get(COOKIE, "")
        person = question_mail.person_of(question_id, token)
        if person is None:
            return _over(request, question_id, token)
        address = reverse("question-by-mail", args=[question_id])
        request.user, request.by_link = person, ByLink(address, "questions/by_mail.html", "questions/link_over.html")
        return view(request, question_id)

    return show


show, answer = by_mail(questions.show), by_mail(questions.answer)
cancel, resolve = by_mail(questions.cancel), by_mail(questions.resolve)
