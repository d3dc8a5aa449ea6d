"""Sign-in at the OpenID provider: off to it by a link, and back with a code.

It begins with a link, since the pages' policy lets a form lead to this server only, and a provider may send the browser on
to any other. What the browser must bring back stands in a signed cookie of its own, so that nobody fills the table of
sessions.
"""

import secrets
from collections.abc import Callable
from dataclasses import asdict

import structlog
from django.conf import settings
from django.contrib.auth import login as log_in
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.accounts import login, sign_in
from dialogs.views.accounts import login_page, next_page
from dominds import oidc

log = structlog.get_logger(__name__)

LASTS_SECONDS = 600  # at the provider, with passwords and second factors to look for
SALT = "dialogs.sign_in"


@require_GET
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    registration, attempt, to = _registration(), oidc.Attempt(), next_page(request)
    if login.needs_setup():
        return redirect("setup")
    if request.user.is_authenticated:
        return redirect(to)

    def leave() -> HttpResponse:
        answer = redirect(oidc.address_at_provider(registration, attempt, _redirect_uri(request)))
        answer.set_cookie(
            _cookie(),
            signing.dumps({**asdict(attempt), "to": to}, salt=SALT),
            max_age=LASTS_SECONDS,
            path=reverse("login"),
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",  # it comes back by a link of another site
        )
        return answer

    return _answered(request, leave, to)


@require_GET
@never_cache
def come_back(request: HttpRequest) -> HttpResponse:
    registration = _registration()
    try:
        kept = signing.loads(request.COOKIES.get(_cookie(), ""), salt=SALT, max_age=LASTS_SECONDS)
        attempt, to = oidc.Attempt(kept["state"], kept["nonce"], kept["verifier"]), kept["to"]
    except signing.BadSignature:
        return _refused(request, _not_begun("no cookie, or an old one"))
    if not secrets.compare_digest(request.GET.get("state", "").encode(), attempt.state.encode()):
        return _refused(request, _not_begun("another state"), to)

    def enter() -> HttpResponse:
        code = _code(request, registration)
        claims = oidc.claims_for(registration, attempt, code, _redirect_uri(request))
        person = sign_in.person_of(claims)
        log_in(request, person, backend="django.contrib.auth.backends.ModelBackend")
        log.info("signed_in", person=person.pk, provider=registration.issuer)
        return redirect(to)

    answer = _answered(request, enter, to)
    answer.delete_cookie(_cookie(), path=reverse("login"), samesite="Lax")
    return answer


def _registration() -> oidc.Registration:
    found = sign_in.registration()
    if found is None:
        raise Http404("No provider is configured.")
    return found


def _cookie() -> str:
    return f"{settings.SESSION_COOKIE_NAME}_sign_in"  # which holds the suffix that keeps two instances apart


def _redirect_uri(request: HttpRequest) -> str:
    """As it is registered at the provider, letter by letter."""
    path = reverse("sign-in-callback")
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)


def _code(request: HttpRequest, registration: oidc.Registration) -> str:
    """Raises ``SignInFailed`` where the provider sent none."""
    if request.GET.get("iss", registration.issuer).rstrip("/") != registration.issuer.rstrip("/"):  # RFC 9207
        raise registration.misbehaved("the answer is of another issuer")
    code = request.GET.get("code")
    if code:
        return code
    error = request.GET.get("error", "no code")[:60]
    raise oidc.SignInFailed(f"{registration.name} did not sign you in. Begin again.", error, oidc.FORBIDDEN)


def _not_begun(reason: str) -> oidc.SignInFailed:
    minutes = LASTS_SECONDS // 60
    text = f"This sign-in was not begun in this browser, or more than {minutes} minutes ago. Begin again."
    return oidc.SignInFailed(text, reason, oidc.BAD_REQUEST)


def _answered(request: HttpRequest, step: Callable[[], HttpResponse], to: str) -> HttpResponse:
    try:
        return login.try_to_sign_in(request, step)
    except login.LoginRefused as refusal:
        return login_page(request, refusal, refusal.status, to)
    except oidc.SignInFailed as failure:
        return _refused(request, failure, to)


def _refused(request: HttpRequest, failure: oidc.SignInFailed, to: str = "") -> HttpResponse:
    log.warning("sign_in_failed", reason=failure.reason, status=failure.status)
    return login_page(request, failure, failure.status, to)
