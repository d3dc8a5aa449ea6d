"""Setting up, logging in and out, and sign-in at OpenID providers: off to one by a link, and back with a code. Who is
logged in links what they come back with to their account.

That begins with a link, since the pages' policy lets a form lead to this server only, and a provider may send the
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
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
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
    is_at_this_machine,
    needs_setup,
    try_to_log_in,
    try_to_sign_in,
)
from dialogs.accounts.sign_in import free_username
from dialogs.views.forms import SetupForm
from dominds.oidc import provider as oidc
from dominds.oidc.registration import Registration, SignInFailed

log = structlog.get_logger(__name__)

BACKEND = "django.contrib.auth.backends.ModelBackend"
SIGN_IN_SECONDS = 600  # at the provider, with passwords and second factors to look for
SIGN_IN_SALT = "dialogs.sign_in"
LONG_SESSION_SECONDS = 365 * 86_400  # of who has no password yet to come back with
LINK_SECONDS = 3600  # that the settings lie open
LINK_SALT = "dialogs.link_sign_in"


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """Make the first administrator, once. At the machine itself one click does, and asks for nothing."""
    if not needs_setup():
        return _too_late(request)
    at_once = is_at_this_machine(request)
    if at_once and "begin" in request.POST:
        user = User(username=free_username("admin"))
        user.set_unusable_password()
        return _first_in(request, user, LONG_SESSION_SECONDS)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        return _first_in(request, form.save(commit=False))
    return render(request, "accounts/setup.html", {"form": form, "at_once": at_once})


def _first_in(request: HttpRequest, user: User, seconds: int | None = None) -> HttpResponse:
    """``seconds``: how long their session lasts, if not as long as others."""
    if create_first_administrator(user):
        login(request, user, backend=BACKEND)
        request.session.set_expiry(seconds)
        return redirect("home")
    messages.error(
        request, _("Somebody made the first account a moment ago. Log in with it, or ask its owner for one.")
    )
    return redirect("login")


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
        return {**super().get_context_data(**kwargs), "providers": settings.OIDC_PROVIDERS}

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return redirect("setup") if needs_setup() else super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        check = super().post
        try:
            return try_to_log_in(request, lambda: check(request, *args, **kwargs))
        except LoginRefused as refusal:
            return _login_page(request, refusal, refusal.status, self.get_redirect_url())


def _login_page(request: HttpRequest, refusal: Exception, status: int, to: str) -> HttpResponse:
    """The page with the reason why nobody was logged in; ``to`` is where they wanted to go. Who is logged in wanted to
    link a sign-in, and is told on the page where they began."""
    if request.user.is_authenticated:
        messages.error(request, str(refusal))
        return redirect("change-password")
    shown = {"form": AuthenticationForm(request), "refusal": refusal, "next": to, "providers": settings.OIDC_PROVIDERS}
    answer = render(request, Login.template_name, shown, status=status)
    if isinstance(refusal, LoginRefused):
        answer["Retry-After"] = str(refusal.seconds)
    return answer


def _next_page(request: HttpRequest) -> str:
    """Where a request wants to go after the login, if that is a page of this server; otherwise home."""
    view = Login()
    view.setup(request)
    return view.get_success_url()


class Logout(LogoutView):
    http_method_names = ["post", "options"]


# -- Sign-in at the provider -------------------------------------------------------------------------------------------


@require_GET
@never_cache
def begin_sign_in(request: HttpRequest, number: int = 1) -> HttpResponse:
    """``link`` is what the settings give to a person who links this sign-in to their account."""
    provider, attempt, to = _registration(number), oidc.Attempt(), _next_page(request)
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
            samesite="Lax",  # it comes back by a link of another site
        )
        return answer

    return _answered(request, leave, to)


@require_GET
@never_cache
def end_sign_in(request: HttpRequest, number: int = 1) -> HttpResponse:
    """Each provider has an address of its own here: an answer of one is not taken for another's (RFC 9700, 4.4.2.2)."""
    provider = _registration(number)
    try:
        kept = signing.loads(request.COOKIES.get(_cookie(), ""), salt=SIGN_IN_SALT, max_age=SIGN_IN_SECONDS)
        attempt, to = oidc.Attempt(kept["state"], kept["nonce"], kept["verifier"]), kept["to"]
    except signing.BadSignature:
        return _refused(request, _not_begun("no cookie, or an old one"))
    sent_back = secrets.compare_digest(request.GET.get("state", "").encode(), attempt.state.encode())
    if not sent_back or kept.get("at", 1) != number:
        return _refused(request, _not_begun("another state, or another provider's"), to)

    def enter() -> HttpResponse:
        code = _code(request, provider)
        claims = oidc.claims_for(provider, attempt, code, _redirect_uri(request, provider))
        if kept.get("link"):
            return _linked(request, kept["link"], claims, provider)
        person = sign_in.person_of(claims, provider)
        login(request, person, backend=BACKEND)
        log.info("signed_in", person=person.pk, provider=provider.issuer)
        return redirect(to)

    answer = _answered(request, enter, to)
    answer.delete_cookie(_cookie(), path=reverse("login"), samesite="Lax")
    return answer


def link_token(user: User) -> str:
    """For the address at which a person begins to link a sign-in: no other site knows it,
    so none can begin that for them."""
    return signing.dumps(user.pk, salt=LINK_SALT)


def _links_of(request: HttpRequest) -> int | None:
    """Whose account the sign-in that begins is to be linked to; nobody's in the ordinary case."""
    try:
        wanted: int = signing.loads(request.GET.get("link", ""), salt=LINK_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return None
    return wanted if request.user.is_authenticated and request.user.pk == wanted else None


def _linked(request: HttpRequest, wanted: int, claims: dict[str, Any], provider: Registration) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or user.pk != wanted:
        raise _not_begun("another person is logged in by now")
    is_new = sign_in.link(user, claims, provider)
    log.info("sign_in_linked", person=user.pk, provider=provider.issuer)
    text = _("{provider} signs you in from now on.") if is_new else _("It was linked before.")
    messages.success(request, text.format(provider=provider.name))
    return redirect(f"{reverse('change-password')}#sign-ins")


def _registration(number: int) -> Registration:
    result = sign_in.registered(number)
    if result is None:
        raise Http404("No such provider is configured.")
    return result


def _cookie() -> str:
    return f"{settings.SESSION_COOKIE_NAME}_sign_in"  # which holds the suffix that keeps two instances apart


def _redirect_uri(request: HttpRequest, provider: Registration) -> str:
    """As it is registered at the provider, letter by letter."""
    path = reverse("sign-in-callback", args=[provider.number] if provider.number > 1 else [])
    return absolute(request, path)


def absolute(request: HttpRequest, path: str) -> str:
    """Where people reach a page of this server."""
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)


def _code(request: HttpRequest, provider: Registration) -> str:
    """Raises ``SignInFailed`` where the provider sent none."""
    if not provider.names(request.GET.get("iss", provider.issuer)):  # RFC 9207
        raise provider.misbehaved("the answer is of another issuer")
    code = request.GET.get("code")
    if code:
        return code
    error = request.GET.get("error", "no code")[:60]
    raise SignInFailed(f"{provider.name} did not sign you in. Begin again.", error, oidc.FORBIDDEN)


def _not_begun(reason: str) -> SignInFailed:
    minutes = SIGN_IN_SECONDS // 60
    text = f"This sign-in was not begun in this browser, or more than {minutes} minutes ago. Begin again."
    return SignInFailed(text, reason, oidc.BAD_REQUEST)


def _answered(request: HttpRequest, step: Callable[[], HttpResponse], to: str) -> HttpResponse:
    try:
        return try_to_sign_in(request, step)
    except LoginRefused as refusal:
        return _login_page(request, refusal, refusal.status, to)
    except SignInFailed as failure:
        return _refused(request, failure, to)


def _refused(request: HttpRequest, failure: SignInFailed, to: str = "") -> HttpResponse:
    log.warning("sign_in_failed", reason=failure.reason, status=failure.status)
    return _login_page(request, failure, failure.status, to)
