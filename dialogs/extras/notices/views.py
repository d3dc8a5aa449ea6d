"""Views of the browsers in which a person is notified."""

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dialogs.errors import Invalid
from dialogs.extras.notices import push_browser, web_push
from dialogs.views.answers import PersonRequest

WORKER = Path(__file__).parent / "static" / "js" / "push_worker.js"


def push_settings(request: PersonRequest) -> dict[str, Any]:
    """Return the variables of the settings' card Push notifications."""
    if not web_push.is_on():
        return {"push": {"is_on": False}}
    browsers, this = list(web_push.subscriptions_of(request.user)), push_browser.subscription_of(request)
    own = this if this in browsers else None
    return {"push": {"is_on": True, "key": web_push.public_key(), "browsers": browsers, "own": own}}


@login_required
@require_POST
def subscribe_push(request: PersonRequest) -> HttpResponse:
    given = {name: request.POST.get(name, "") for name in ("address", "key", "secret")}
    answer = redirect(f"{reverse('settings')}#push")
    try:
        subscribed = web_push.subscribe(request.user, browser=request.headers.get("User-Agent", ""), **given)
    except Invalid as refusal:
        messages.error(request, _("Not subscribed. {reason}").format(reason=refusal.message))
        return answer
    push_browser.remember(answer, subscribed)
    messages.success(request, _("Subscribed. Questions that wait for you are shown by this browser from now on."))
    return answer


@login_required
@require_POST
def remove_push(request: PersonRequest, subscription_id: int) -> HttpResponse:
    removed, _count = web_push.subscriptions_of(request.user).filter(pk=subscription_id).delete()
    messages.success(
        request,
        _("Removed. That browser is not notified any more.") if removed else _("It was removed before."),
    )
    return redirect(f"{reverse('settings')}#push")


@require_GET
def push_worker(request: HttpRequest) -> HttpResponse:
    """Answer with the service worker.

    Its address is its scope and must stay, and browsers also ask for it without a session.
    """
    script = WORKER.read_bytes()
    return HttpResponse(script, content_type="text/javascript; charset=utf-8", headers={"Cache-Control": "no-cache"})
