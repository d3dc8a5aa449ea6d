"""Setting up, logging in and out, and sign-in at the OpenID provider: off to it by a link, and back with a code.

That begins with a link, since the pages' policy lets a form lead to this server only, and a provider may send the browser on
to any other. What the browser must bring back stands in a signed cookie of its own, so that nobody fills the table of
sessions.
"""

import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from dialogs.accounts import sign_in
from dialogs.accounts.login import (
    LoginRefused,
    create_first_administrator,
    needs_setup,
    try_to_log_in,
    try_to_sign_in,
)
from dialogs.views.forms import SetupForm
from dominds.oidc import provider as oidc

log = structlog.get_logger(__name__)

BACKEND = "django.contrib.auth.backends.ModelBackend"
SIGN_IN_SECONDS = 600  # at the provider, with passwords and second factors to look for
SIGN_IN_SALT = "dialogs.sign_in"


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """Make the first administrator, once."""
    if not needs_setup():
        return _too_late(request)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        user = form.save(commit=False)
        if create_first_administrator(user):
            login(request, user, backend=BACKEND)
            return redirect("home")
        messages.error(
            request, _("Somebody made the first account a moment ago. Log in with it, or ask its owner for one.")
        )
        return redirect("login")
    return render(request, "accounts/setup.html", {"form": form})


def _too_late(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        messages.error(
            request, _("No account was made: there is a first one already. Log in, or ask its owner for yours.")
        )
    return redirect("login")


class Login(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "provider": _provider()}

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return redirect("setup") if needs_setup() else super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        check = super().post
        try:
            return try_to_log_in(request, lambda: check(request, *args, **kwargs))
        except LoginRefused as refusal:
            return _login_page(request, refusal, refusal.status, self.get_redirect_url())


def _login_page(request: HttpRequest, refusal: Exception, status: int, to: str) -> HttpResponse:
    """The page with the reason why nobody was logged in; ``to`` is where they wanted to go."""
    shown = {"form": AuthenticationForm(request), "refusal": refusal, "next": to, "provider": _provider()}
    answer = render(request, Login.template_name, shown, status=status)
    if isinstance(refusal, LoginRefused):
        answer["Retry-After"] = str(refusal.seconds)
    return answer


def _provider() -> str:
    """Its name on the button; empty where people have passwords alone."""
    registration = sign_in.registration()
    return registration.name if registration else ""


def _next_page(request: HttpRequest) -> str:
    """Where a request wants to go after the login, if that is a page of this server; otherwise home."""
    view = Login()
    view.setup(request)
    return view.get_success_url()


class Logout(LogoutView):
    http_method_names = ["post", "options"]


# -- Sign-in at the provider ---------------------------------------------------------------------------------------------


@require_GET
@never_cache
def begin_sign_in(request: HttpRequest) -> HttpResponse:
    registration, attempt, to = _registration(), oidc.Attempt(), _next_page(request)
    if needs_setup():
        return redirect("setup")
    if request.user.is_authenticated:
        return redirect(to)

    def leave() -> HttpResponse:
        answer = redirect(oidc.address_at_provider(registration, attempt, _redirect_uri(request)))
        answer.set_cookie(
            _cookie(),
            signing.dumps({**asdict(attempt), "to": to}, salt=SIGN_IN_SALT),
            max_age=SIGN_IN_SECONDS,
            path=reverse("login"),
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",  # it comes back by a link of another site
        )
        return answer

    return _answered(request, leave, to)


@require_GET
@never_cache
def end_sign_in(request: HttpRequest) -> HttpResponse:
    registration = _registration()
    try:
        kept = signing.loads(request.COOKIES.get(_cookie(), ""), salt=SIGN_IN_SALT, max_age=SIGN_IN_SECONDS)
        attempt, to = oidc.Attempt(kept["state"], kept["nonce"], kept["verifier"]), kept["to"]
    except signing.BadSignature:
        return _refused(request, _not_begun("no cookie, or an old one"))
    if not secrets.compare_digest(request.GET.get("state", "").encode(), attempt.state.encode()):
        return _refused(request, _not_begun("another state"), to)

    def enter() -> HttpResponse:
        code = _code(request, registration)
        claims = oidc.claims_for(registration, attempt, code, _redirect_uri(request))
        person = sign_in.person_of(claims)
        login(request, person, backend=BACKEND)
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
    minutes = SIGN_IN_SECONDS // 60
    text = f"This sign-in was not begun in this browser, or more than {minutes} minutes ago. Begin again."
    return oidc.SignInFailed(text, reason, oidc.BAD_REQUEST)


def _answered(request: HttpRequest, step: Callable[[], HttpResponse], to: str) -> HttpResponse:
    try:
        return try_to_sign_in(request, step)
    except LoginRefused as refusal:
        return _login_page(request, refusal, refusal.status, to)
    except oidc.SignInFailed as failure:
        return _refused(request, failure, to)


def _refused(request: HttpRequest, failure: oidc.SignInFailed, to: str = "") -> HttpResponse:
    log.warning("sign_in_failed", reason=failure.reason, status=failure.status)
    return _login_page(request, failure, failure.status, to)
