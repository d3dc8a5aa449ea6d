"""Views of the first setup, and of logging in and out."""

from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dialogs.accounts.login import (
    LoginRefused,
    create_first_administrator,
    free_username,
    is_at_this_machine,
    needs_setup,
    try_to_log_in,
)
from dialogs.views.forms import SetupForm

log = structlog.get_logger(__name__)

BACKEND = "django.contrib.auth.backends.ModelBackend"
LONG_SESSION_SECONDS = 365 * 86_400  # until a password is chosen, the session is the only way back in


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """Make the first administrator, once. At the machine itself a click is enough, without any input."""
    if not needs_setup():
        return _too_late(request)
    at_once = is_at_this_machine(request)
    if at_once and "begin" in request.POST:
        user = User(username=free_username("admin"))
        user.set_unusable_password()
        return _create_and_log_in(request, user, LONG_SESSION_SECONDS)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        return _create_and_log_in(request, form.save(commit=False))
    return render(request, "accounts/setup.html", {"form": form, "at_once": at_once})


def _create_and_log_in(request: HttpRequest, user: User, seconds: int | None = None) -> HttpResponse:
    """Create the first administrator and log them in. ``seconds`` is the length of the session; None is the usual."""
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

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return redirect("setup") if needs_setup() else super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        check = super().post
        try:
            return try_to_log_in(request, lambda: check(request, *args, **kwargs))
        except LoginRefused as refusal:
            return login_page(request, refusal, refusal.status, self.get_redirect_url())


def login_page(request: HttpRequest, refusal: Exception, status: int, to: str) -> HttpResponse:
    """Show the login page with the reason why nobody was logged in; ``to`` is where they wanted to go.

    Somebody who is logged in already was linking an external account, and gets the reason on the settings page where
    that began.
    """
    if request.user.is_authenticated:
        messages.error(request, str(refusal))
        return redirect("change-password")
    shown = {"form": AuthenticationForm(request), "refusal": refusal, "next": to}
    answer = render(request, Login.template_name, shown, status=status)
    if isinstance(refusal, LoginRefused):
        answer["Retry-After"] = str(refusal.seconds)
    return answer


def next_page(request: HttpRequest) -> str:
    """Return where a request wants to go after the login, if that is a page of this server, or else home."""
    view = Login()
    view.setup(request)
    return view.get_success_url()


class Logout(LogoutView):
    http_method_names = ["post", "options"]


def absolute(request: HttpRequest, path: str) -> str:
    """Return the address at which people reach a page of this server."""
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
