"""Setting up, logging in and out."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dialogs.accounts import sign_in
from dialogs.accounts.login import (
    LoginRefused,
    create_first_administrator,
    needs_setup,
    try_to_log_in,
)
from dialogs.views.forms import SetupForm


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
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("home")
        messages.error(
            request, "Somebody made the first account a moment ago. Log in with it, or ask its owner for one."
        )
        return redirect("login")
    return render(request, "accounts/setup.html", {"form": form})


def _too_late(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        messages.error(
            request, "No account was made: there is a first one already. Log in, or ask its owner for yours."
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
            return login_page(request, refusal, refusal.status, self.get_redirect_url())


def login_page(request: HttpRequest, refusal: Exception, status: int, to: str) -> HttpResponse:
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


def next_page(request: HttpRequest) -> str:
    """Where a request wants to go after the login, if that is a page of this server; otherwise home."""
    view = Login()
    view.setup(request)
    return view.get_success_url()


class Logout(LogoutView):
    http_method_names = ["post", "options"]
