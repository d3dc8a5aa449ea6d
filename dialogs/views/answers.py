"""Responses that views share: pieces of the page for htmx, redirects for plain forms, refusals for both, and the page
about a row that cannot be read."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import structlog
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import is_valid_path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect

from dialogs.actions.access import check_may_act, visible_dialog
from dialogs.errors import DAMAGED, Invalid, RateLimited, Refusal
from dialogs.live.frames import frames_after
from dialogs.models import Dialog, Question
from dialogs.permissions import OPERATE, may
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.forms import problems_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ByLink:
    """A question that is answered by a link: its address, and the templates of its page and of its confirmation."""

    address: str
    page: str
    done: str


class PersonRequest(HttpRequest):
    """A request of somebody who is logged in, with the additions of the middlewares."""

    user: User
    htmx: Any
    by_link: ByLink  # only set for the holder of a mailed link, which names ``user`` and opens one question alone


View = Callable[..., HttpResponseBase]


def for_operators(view: Callable[..., HttpResponseBase]) -> View:
    """Show a view to operators. For everybody else the page does not exist."""
    return _for(lambda user: may(user, OPERATE), view)


def for_administrators(view: Callable[..., HttpResponseBase]) -> View:
    """Show a view to people who may do everything. For everybody else the page does not exist."""
    return _for(lambda user: user.is_superuser, view)


def _for(allowed: Callable[[User], bool], view: Callable[..., HttpResponseBase]) -> View:
    @login_required
    @wraps(view)
    def show(request: PersonRequest, **kwargs: Any) -> HttpResponseBase:
        if not allowed(request.user):
            raise Http404
        return view(request, **kwargs)

    return show


def dialog_page(view: Callable[..., HttpResponseBase]) -> View:
    """Wrap a page about a dialog, for people who may see it. The view gets the request and the dialog."""

    @login_required
    @require_GET
    @wraps(view)
    def show(request: PersonRequest, dialog_id: UUID, **kwargs: Any) -> HttpResponseBase:
        return view(request, visible_dialog(dialog_id, request.user), **kwargs)

    return show


def dialog_action(view: Callable[..., HttpResponse | str | None]) -> View:
    """Wrap a POST on a dialog. The view gets the request and the dialog, and calls a service.

    A response that the view returns is sent unchanged. Otherwise a conversation that uses htmx gets its pieces that
    changed, so that it is right even while its socket is down. Everybody else is redirected: to the conversation, where
    the effect can be seen, or, if the view returned a text, to the page from which the form was sent. The text is shown
    to the person.
    """

    @login_required
    @require_POST
    @wraps(view)
    def act(request: PersonRequest, dialog_id: UUID, **kwargs: Any) -> HttpResponse:
        dialog = visible_dialog(dialog_id, request.user)
        own, sent_from = f"/d/{dialog_id}/", _sent_from(request, dialog_id)
        try:
            check_may_act(dialog, request.user)
            result = view(request, dialog, **kwargs)
        except Refusal as refusal:
            return refuse(request, refusal, sent_from)
        if isinstance(result, HttpResponse):
            return result
        if request.htmx and sent_from == own:
            answer = changed_pieces(request, dialog)
            return with_toast(answer, result, subject=view.__name__) if result else answer
        if result:
            messages.success(request, result)
        to = sent_from if result else own
        return HttpResponseClientRedirect(to) if request.htmx else redirect(to)

    return act


def _sent_from(request: HttpRequest, dialog_id: UUID) -> str:
    """Return the address of the page beside the conversation from which a form was sent, or the conversation's."""
    sent_from, own = urlsplit(request.headers.get("Referer", "")), f"/d/{dialog_id}/"
    is_beside = sent_from.path.startswith(own) and sent_from.path != own
    return urlunsplit(("", "", sent_from.path, sent_from.query, "")) if is_beside else own


def changed_pieces(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Render the pieces that changed after ``dialog`` was read, up to the event that the request's header names."""
    frames = frames_after(dialog.pk, request.user.pk, dialog.last_event_seq) or []
    last_seq = frames[-1]["seq"] if frames else dialog.last_event_seq
    return HttpResponse("".join(frame.get("html", "") for frame in frames), headers={"X-Dominds-Seq": last_seq})


def show_piece(request: PersonRequest, template: str, context: dict[str, Any], **alone: Any) -> HttpResponse:
    """Render a piece of a dialog's page, or a page with it alone, for browsers without scripts."""
    if request.htmx:
        return render(request, template, context)
    return render(request, "dialogs/alone.html", {"template": template, "section": "dialogs", **context, **alone})


def refuse(request: PersonRequest, refusal: Refusal, back_to: str) -> HttpResponse:
    """Answer a refusal: by a toast for htmx, or by a message on the page for a plain form."""
    if not request.htmx:
        messages.error(request, in_plain_words(refusal.message))
        return redirect(back_to)
    answer = HttpResponse(status=refusal.status)
    return with_toast(with_retry_after(answer, refusal), in_plain_words(refusal.message), "error")


def say_not_saved(request: HttpRequest, *forms: Any) -> None:
    """Say at the top of the next page why nothing was saved. The fields say it too, but may be out of sight."""
    messages.error(request, _("Not saved. {reason}").format(reason=" ".join(problems_of(*forms))))


def with_toast(answer: HttpResponse, text: str, kind: str = "success", subject: str = "") -> HttpResponse:
    answer["HX-Trigger"] = json.dumps({"dominds:toast": {"text": text, "kind": kind, "subject": subject}})
    return answer


def with_retry_after(answer: HttpResponse, refusal: Refusal) -> HttpResponse:
    if isinstance(refusal, RateLimited):
        answer["Retry-After"] = str(refusal.retry_after_seconds)
    return answer


def _page_above(path: str) -> str:
    above = f"{path.rstrip('/').rpartition('/')[0]}/"
    return above if is_valid_path(above) else _page_above(above)


def _dialog_of(question_id: UUID | None) -> UUID | None:
    return Question.objects.filter(pk=question_id).values_list("dialog", flat=True).first() if question_id else None


class SaysWhatIsWrong:
    """A middleware that answers four errors in a way that people understand.

    - A dialog's row cannot be read: a page about that dialog.
    - Another row cannot be read: a general page.
    - A form holds a NUL character, which PostgreSQL cannot store: a refusal.
    - The address of a form is opened by GET, as after a login to which its POST led: a redirect to the page above it.
    """

    sync_capable, async_capable = True, False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        is_opened = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        return redirect(_page_above(request.path)) if answer.status_code == 405 and is_opened else answer

    def process_exception(self, request: PersonRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, DataError) and "NUL" in str(error):
            return refuse(request, Invalid("What was sent holds a NUL character, which cannot be stored."), "/")
        result = request.resolver_match
        if result is None or not isinstance(error, DAMAGED):
            return None
        dialog_id = result.kwargs.get("dialog_id") or _dialog_of(result.kwargs.get("question_id"))
        if dialog_id is None:
            if request.method != "GET" or not request.user.is_authenticated:
                return None
            log.exception("page_unreadable", path=request.path, exc_info=error)
            return render(request, "damaged.html", status=500)
        log.exception("dialog_unreadable", dialog_id=str(dialog_id), path=request.path, exc_info=error)
        return render(request, "dialogs/damaged.html", {"dialog_id": dialog_id}, status=500)
