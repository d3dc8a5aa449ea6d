"""A person's own settings, a page for each part, and the settings for everybody."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.conf import settings as site
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as noop
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dialogs.accounts import api_keys, login
from dialogs.accounts.language import language_of
from dialogs.api.dialogs import download
from dialogs.context import spending
from dialogs.errors import Invalid
from dialogs.models import ApiKey, PromptTemplate, SiteSettings
from dialogs.permissions import OPERATE, may
from dialogs.queries import person_export
from dialogs.store import charging, wakeups
from dialogs.views.answers import PersonRequest, say_not_saved
from dialogs.views.forms import ApiKeyForm, AppearanceForm, ContextDisplayForm, zones
from dialogs.views.site.forms import site_form
from remediation.spending import Spent

MOST_TEMPLATES = 100


PARTS = {  # the title of each part's page, and the name of its address, to which its form is sent as well
    "appearance": (noop("Look and notifications"), "settings"),
    "display": (noop("Context display"), "save-context-display"),
    "templates": (noop("Prompt templates"), "save-template"),
    "costs": (noop("Costs"), "costs"),
    "keys": (noop("API keys"), "create-key"),
    "account": (noop("Password and sign-ins"), "change-password"),
    "site": (noop("For everybody"), "save-site"),
}
View = Callable[[PersonRequest], HttpResponse]


def part(name: str) -> Callable[[View], View]:
    """Wrap the view that saves a part of the settings, so that it also shows that part."""

    def wrap(save: View) -> View:
        @wraps(save)
        @login_required
        @require_http_methods(["GET", "POST"])
        def view(request: PersonRequest) -> HttpResponse:
            return save(request) if request.method == "POST" else _page(request, name)

        return view

    return wrap


@login_required
@require_GET
def show(request: PersonRequest) -> HttpResponse:
    return _page(request, "appearance")


@login_required
@require_GET
def costs(request: PersonRequest) -> HttpResponse:
    return _page(request, "costs")


def _page(
    request: PersonRequest, shown: str, *, new_key: str = "", status: int = 200, **bound: forms.BaseForm
) -> HttpResponse:
    """Render the page of one part. ``bound`` are forms that came back with errors."""
    if bound:
        say_not_saved(request, *bound.values())
    operates = may(request.user, OPERATE)
    if shown == "site" and not operates:
        raise Http404
    parts = [(name, _(label), reverse(to)) for name, (label, to) in PARTS.items() if operates or name != "site"]
    if operates:
        parts.append(("limits", _("Context limits"), reverse("limits")))
    context = {
        "part": shown,
        "parts": parts,
        "title": _(PARTS[shown][0]),
        "template": f"accounts/_{shown}.html",
        "sends_mail": bool(site.MAIL_FROM),
        "new_key": new_key,
        "section": "settings",
        **_part_context(request, shown),
        **bound,
    }
    answer = render(request, "accounts/settings.html", context, status=status)
    answer["Cache-Control"] = "no-store"  # a new key must not come back with the back button
    return answer


def _part_context(request: PersonRequest, shown: str) -> dict[str, Any]:
    """Return the values that this part of the settings shows."""
    own = login.settings_of(request.user)
    match shown:
        case "appearance":
            zone = timezone.get_current_timezone_name()
            return {
                "appearance_form": AppearanceForm(instance=own),
                "zone": zone,
                "zones": zones(),
            }
        case "display":
            return {"display_form": ContextDisplayForm(instance=own)}
        case "templates":
            held = PromptTemplate.objects.filter(owner=request.user)
            return {"templates": held, "template_form": TemplateForm()}
        case "costs":
            spent = spending.cost_this_month(request.user.pk)
            return {"monthly_budget_usd": own.monthly_budget_usd, "cost_this_month": spent}
        case "keys":
            return {"keys": _keys_of(request), "key_form": ApiKeyForm()}
        case "account":
            lacks = login.lacks_a_way_in(request.user)
            return {"password_form": _password_form(request), "lacks_a_way_in": lacks}
        case _:
            return {"site_form": site_form()(instance=SiteSettings.current())}


def _keys_of(request: PersonRequest) -> list[tuple[ApiKey, Spent]]:
    """Return the person's keys, each with its cost this month."""
    keys = ApiKey.objects.filter(owner=request.user, revoked_at__isnull=True).order_by("-created_at")
    costs = charging.costs_of_keys([key.pk for key in keys])
    return [(key, costs[key.pk]) for key in keys]


@part("appearance")
def save_appearance(request: PersonRequest) -> HttpResponse:
    return _save(request, AppearanceForm(request.POST, instance=login.settings_of(request.user)), "appearance")


@part("display")
def save_context_display(request: PersonRequest) -> HttpResponse:
    form = ContextDisplayForm(request.POST, instance=login.settings_of(request.user))
    return _save(request, form, "display")


@part("site")
def save_site(request: PersonRequest) -> HttpResponse:
    if not may(request.user, OPERATE):
        messages.error(request, _("Not saved. These settings hold for everybody: only an operator may change them."))
        return redirect("settings")
    return _save(request, site_form()(request.POST, instance=SiteSettings.current()), "site")


def _save(request: PersonRequest, form: "forms.ModelForm[Any]", name: str) -> HttpResponse:
    if not form.is_valid():
        context: dict[str, Any] = {f"{name}_form": form}
        return _page(request, name, status=400, **context)
    form.save()
    wakeups.poke_user(request.user.pk)  # their open pages follow at once
    translation.activate(language_of(request))  # the person may just have chosen another language
    messages.success(request, _("Saved."))
    answer = redirect(PARTS[name][1])
    answer.delete_cookie("zone")  # it may hold the zone that was chosen before; the next page's script sets it again
    return answer


class TemplateForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = PromptTemplate
        fields = ("name", "text")
        labels = {"name": gettext_lazy("Name"), "text": gettext_lazy("Text")}
        widgets = {"text": forms.Textarea({"rows": 4, "maxlength": 20_000})}

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        held = PromptTemplate.objects.filter(owner=self.instance.owner, name=name)
        if held.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(
                _("You have a template /{name}. Edit that one, or choose another name.").format(name=name)
            )
        return name


@part("templates")
def save_template(request: PersonRequest) -> HttpResponse:
    """Save a new template or a changed one; ``delete`` removes it."""
    held, number = PromptTemplate.objects.filter(owner=request.user), request.POST.get("id", "")
    row = held.filter(pk=int(number)).first() if number.isascii() and number.isdigit() and len(number) < 10 else None
    if "delete" in request.POST:
        messages.success(
            request, _("{template} is deleted.").format(template=row) if row else _("It was deleted before.")
        )
        held.filter(pk=row.pk if row else 0).delete()
        return redirect("save-template")
    if row is None and held.count() >= MOST_TEMPLATES:
        refusal = _("Not saved. You have {number} templates, and no more are kept. Delete one.")
        messages.error(request, refusal.format(number=MOST_TEMPLATES))
        return redirect("save-template")
    form = TemplateForm(request.POST, instance=row or PromptTemplate(owner=request.user))
    if not form.is_valid():
        return _page(request, "templates", status=400, template_form=form)
    messages.success(request, _("Saved. Type {template} at the beginning of a message.").format(template=form.save()))
    return redirect("save-template")


def _password_form(request: PersonRequest, given: QueryDict | None = None) -> "SetPasswordForm[User]":
    if login.lacks_a_way_in(request.user):
        return SetPasswordForm(request.user, given)
    form = PasswordChangeForm(request.user, given)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)  # the page has more than this form
    return form


@sensitive_post_parameters()
@part("account")
def change_password(request: PersonRequest) -> HttpResponse:
    """Change the password. Guessing the old one is limited in the same way as at the login."""
    try:
        return login.try_to_log_in(request, lambda: _change_password(request))
    except login.LoginRefused as refusal:
        messages.error(request, _("Not saved. {reason}").format(reason=refusal))
        answer = _page(request, "account", status=refusal.status)
        answer["Retry-After"] = str(refusal.seconds)
        return answer


def _change_password(request: PersonRequest) -> HttpResponse:
    form = _password_form(request, request.POST)
    if not form.is_valid():
        return _page(request, "account", status=400, password_form=form)
    form.save()
    request.session.set_expiry(None)  # ends the long session of somebody who had no password
    update_session_auth_hash(request, request.user)  # this session stays; all others end
    login.request_recheck(request.user)
    messages.success(request, _("Your password was changed. Other sessions are logged out; your API keys still hold."))
    return redirect("change-password")


@part("keys")
def create_key(request: PersonRequest) -> HttpResponse:
    form = ApiKeyForm(request.POST)
    if not form.is_valid():
        return _page(request, "keys", status=400, key_form=form)
    given = form.cleaned_data
    given["scope"] = given["scope"] or ApiKey.Scope.ALL
    try:
        return _page(request, "keys", new_key=api_keys.create_key(request.user, given.pop("name"), **given))
    except Invalid as error:
        form.add_error("budget_usd", error.message)
        return _page(request, "keys", status=400, key_form=form)


@login_required
@require_POST
def revoke_key(request: PersonRequest, key_id: int) -> HttpResponse:
    if api_keys.revoke(request.user, key_id):
        messages.success(request, _("The key was revoked. Programs that use it are refused from now on."))
    else:
        messages.error(request, _("You have no such key, or it was revoked before. Nothing was changed."))
    return redirect("create-key")


@login_required
@require_GET
def export_own(request: PersonRequest) -> HttpResponseBase:
    """Download everything that is this person's."""
    return download(person_export.export_person(request.user), "my-data.json", "application/json")
