"""Sign-in at OpenID providers: a link leads to a provider, which sends the browser back with a code. A person who is
logged in links that sign-in to their account.

It begins with a link, because the pages' policy lets a form lead to this server only, and a provider may send the
browser on to any other. What the browser must bring back stands in a signed cookie of its own, so that nobody fills the
table of sessions.
"""

import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dialogs.accounts.login import LoginRefused, needs_setup, try_to_sign_in
from dialogs.errors import Refusal
from dialogs.extras.sso import sign_in
from dialogs.models import Identity
from dialogs.views.accounts import BACKEND, absolute, login_page, next_page
from dialogs.views.answers import PersonRequest, refuse
from dominds.oidc import provider as oidc
from dominds.oidc.registration import Registration, SignInFailed

log = structlog.get_logger(__name__)

SIGN_IN_SECONDS = 600  # the time at the provider, in which people look for passwords and second factors
SIGN_IN_SALT = "dialogs.sign_in"
LINK_SECONDS = 3600  # how long a page of the settings may be open before its link is used
LINK_SALT = "dialogs.link_sign_in"


def providers(request: HttpRequest) -> dict[str, Any]:
    """Return the providers that the login page offers beside passwords."""
    return {"providers": settings.OIDC_PROVIDERS}


def sign_ins(request: PersonRequest) -> dict[str, Any]:
    """Return a person's linked sign-ins, each with its provider, and the providers that are not linked."""
    own = Identity.objects.filter(user=request.user).order_by("pk")
    linked = [(identity, sign_in.provider_of(identity)) for identity in own]
    used = [provider for _, provider in linked]
    others = [provider for provider in settings.OIDC_PROVIDERS if provider not in used]
    return {"linked": linked, "linkable": others, "link_token": link_token(request.user) if others else ""}


@require_GET
@never_cache
def begin_sign_in(request: HttpRequest, number: int = 1) -> HttpResponse:
    """Send a browser to a provider. ``link`` comes from the settings, to link this sign-in to the person's account."""
    provider, attempt, to = _registration(number), oidc.Attempt(), next_page(request)
    if needs_setup():
        return redirect("setup")
    links = _links_of(request)
    if request.user.is_authenticated and not links:
        return redirect(to)

    def leave() -> HttpResponse:
        answer = redirect(oidc.address_at_provider(provider, attempt, _redirect_uri(request, provider)))
        answer.set_cookie(
            _cookie(),
            signing.dumps({**asdict(attempt), "to": to, "at": number, "link": links}, salt=SIGN_IN_SALT),
            max_age=SIGN_IN_SECONDS,
            path=reverse("login"),
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",  # so that it comes back with the provider's redirect
        )
        return answer

    return _answer(request, leave, to)


@require_GET
@never_cache
def end_sign_in(request: HttpRequest, number: int = 1) -> HttpResponse:
    """Take a provider's answer. Each has its own address, so that none is confused with another (RFC 9700, 4.4.2.2)."""
    provider = _registration(number)
    try:
        kept = signing.loads(request.COOKIES.get(_cookie(), ""), salt=SIGN_IN_SALT, max_age=SIGN_IN_SECONDS)
        attempt, to = oidc.Attempt(kept["state"], kept["nonce"], kept["verifier"]), kept["to"]
    except signing.BadSignature:
        return _refuse(request, _not_begun("no cookie, or an old one"))
    sent_back = secrets.compare_digest(request.GET.get("state", "").encode(), attempt.state.encode())
    if not sent_back or kept.get("at", 1) != number:
        return _refuse(request, _not_begun("another state, or another provider's"), to)

    def enter() -> HttpResponse:
        code = _code(request, provider)
        claims = oidc.claims_for(provider, attempt, code, _redirect_uri(request, provider))
        if kept.get("link"):
            return _link(request, kept["link"], claims, provider)
        person = sign_in.person_of(claims, provider)
        login(request, person, backend=BACKEND)
        log.info("signed_in", person=person.pk, provider=provider.issuer)
        return redirect(to)

    answer = _answer(request, enter, to)
    answer.delete_cookie(_cookie(), path=reverse("login"), samesite="Lax")
    return answer


def link_token(user: User) -> str:
    """Return a token that begins the linking of a sign-in, which no other site knows."""
    return signing.dumps(user.pk, salt=LINK_SALT)


def _links_of(request: HttpRequest) -> int | None:
    """Return the person to whose account the sign-in will be linked, or None in the ordinary case."""
    try:
        wanted: int = signing.loads(request.GET.get("link", ""), salt=LINK_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return None
    return wanted if request.user.is_authenticated and request.user.pk == wanted else None


def _link(request: HttpRequest, wanted: int, claims: dict[str, Any], provider: Registration) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or user.pk != wanted:
        raise _not_begun("another person is logged in by now")
    is_new = sign_in.link(user, claims, provider)
    log.info("sign_in_linked", person=user.pk, provider=provider.issuer)
    text = _("{provider} signs you in from now on.") if is_new else _("It was linked before.")
    messages.success(request, text.format(provider=provider.name))
    return redirect(f"{reverse('change-password')}#sign-ins")


def _registration(number: int) -> Registration:
    result = sign_in.provider_numbered(number)
    if result is None:
        raise Http404("No such provider is configured.")
    return result


def _cookie() -> str:
    return f"{settings.SESSION_COOKIE_NAME}_sign_in"  # its suffix keeps two instances on one host apart


def _redirect_uri(request: HttpRequest, provider: Registration) -> str:
    """Return the redirect address exactly as it is registered at the provider."""
    path = reverse("sign-in-callback", args=[provider.number] if provider.number > 1 else [])
    return absolute(request, path)


def _code(request: HttpRequest, provider: Registration) -> str:
    """Return the code. Raises ``SignInFailed`` where the provider sent none."""
    if not provider.names(request.GET.get("iss", provider.issuer)):  # RFC 9207
        raise provider.misbehaviour("the answer is of another issuer")
    code = request.GET.get("code")
    if code:
        return code
    error = request.GET.get("error", "no code")[:60]
    raise SignInFailed(f"{provider.name} did not sign you in. Begin again.", error, oidc.FORBIDDEN)


def _not_begun(reason: str) -> SignInFailed:
    minutes = SIGN_IN_SECONDS // 60
    text = f"This sign-in was not begun in this browser, or more than {minutes} minutes ago. Begin again."
    return SignInFailed(text, reason, oidc.BAD_REQUEST)


def _answer(request: HttpRequest, step: Callable[[], HttpResponse], to: str) -> HttpResponse:
    try:
        return try_to_sign_in(request, step)
    except LoginRefused as refusal:
        return login_page(request, refusal, refusal.status, to)
    except SignInFailed as failure:
        return _refuse(request, failure, to)


def _refuse(request: HttpRequest, failure: SignInFailed, to: str = "") -> HttpResponse:
    log.warning("sign_in_failed", reason=failure.reason, status=failure.status)
    return login_page(request, failure, failure.status, to)


@login_required
@require_POST
def unlink(request: PersonRequest, identity_id: int) -> HttpResponse:
    to = f"{reverse('change-password')}#sign-ins"
    try:
        identity = sign_in.unlink(request.user, identity_id)
    except Refusal as refusal:
        return refuse(request, refusal, to)
    provider = sign_in.provider_of(identity)
    text = _("{provider} does not sign you in any more.")
    messages.success(request, text.format(provider=provider.name if provider else identity.issuer))
    return redirect(to)
