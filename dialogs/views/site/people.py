"""People and groups, for administrators, and the page on which an invited person chooses a password."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import Group, User
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dialogs.accounts import erasure, people
from dialogs.accounts.names import check_name
from dialogs.api.dialogs import download
from dialogs.errors import Conflict, Refusal
from dialogs.permissions import ALL
from dialogs.queries import person_export
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.accounts import BACKEND, absolute
from dialogs.views.answers import PersonRequest, for_administrators, refuse, say_not_saved

ON_A_PAGE = 50
MOST_SHOWN = 200  # people in each list of a group's page


class PersonForm(forms.ModelForm):  # type: ignore[type-arg]
    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Groups"),
    )
    administers = forms.BooleanField(required=False, label=gettext_lazy("Administers this server"))

    class Meta:
        model = User
        fields = ("username", "email")
        labels = {"username": gettext_lazy("Name"), "email": gettext_lazy("Mail address")}
        help_texts = {"username": ""}
        widgets = {"username": forms.TextInput({"autocomplete": "off", "spellcheck": "false"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial.update(groups=self.instance.groups.all(), administers=self.instance.is_superuser)

    def clean_username(self) -> str:
        return _clean_name(self, "username")


class GroupForm(forms.ModelForm):  # type: ignore[type-arg]
    permissions = forms.MultipleChoiceField(
        choices=ALL.items(), required=False, widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Its members")
    )

    class Meta:
        model = Group
        fields = ("name",)
        labels = {"name": gettext_lazy("Name")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["permissions"] = people.permissions_of(self.instance) if self.instance.pk else []

    def clean_name(self) -> str:
        return _clean_name(self, "name")


def _clean_name(form: "PersonForm | GroupForm", field: str) -> str:
    """Return the name in this field. A name that has changed is checked."""
    name: str = form.cleaned_data[field]
    if field in form.changed_data:
        check_name(name, form.instance)
    return name


@for_administrators
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    return _index(request)


@cache_control(no_store=True)
def _index(request: PersonRequest, status: int = 200, **more: Any) -> HttpResponse:
    """Show the page. In ``more``, ``invited`` is a new person and ``link`` their address, which is shown once."""
    wanted = request.GET.get("q", "").strip()[:150]
    results = User.objects.order_by("-is_active", "username").prefetch_related("groups")
    if wanted:
        results = results.filter(Q(username__icontains=wanted) | Q(email__icontains=wanted))
    page = Paginator(results, ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "found": page,
        "q": wanted,
        "groups": Group.objects.annotate(members=Count("user")).order_by("name"),
        "form": PersonForm(),
        "group_form": GroupForm(),
        "section": "people",
        **more,
    }
    return render(request, "people/list.html", context, status=status)


def _not_saved(request: PersonRequest, **filled_in: forms.BaseForm) -> HttpResponse:
    say_not_saved(request, *filled_in.values())
    return _index(request, status=400, **filled_in)


@for_administrators
@require_POST
def invite(request: PersonRequest) -> HttpResponse:
    form = PersonForm(request.POST)
    if not form.is_valid():
        return _not_saved(request, form=form)
    user = form.save(commit=False)
    token = people.invite(user, request.user)
    people.change(user, request.user, list(form.cleaned_data["groups"]), administers=form.cleaned_data["administers"])
    return _index(request, invited=user, link=_address(request, user, token))


def _address(request: HttpRequest, user: User, token: str) -> str:
    return absolute(request, reverse("invited", args=[user.pk, token]))


@for_administrators
@require_http_methods(["GET", "POST"])
def edit(request: PersonRequest, user_id: int) -> HttpResponse:
    person = get_object_or_404(User, pk=user_id)
    form = PersonForm(request.POST or None, instance=person)
    if request.method == "POST":
        try:
            if form.is_valid():
                given = form.cleaned_data
                people.change(person, request.user, list(given["groups"]), administers=given["administers"])
                messages.success(request, _("Saved."))
                return redirect("people")
            say_not_saved(request, form)
        except Refusal as refusal:
            messages.error(request, _("Not saved. {reason}").format(reason=in_plain_words(refusal.message)))
    return _person_page(request, form, status=400 if request.method == "POST" else 200)


@cache_control(no_store=True)
def _person_page(request: PersonRequest, form: PersonForm, link: str = "", status: int = 200) -> HttpResponse:
    person = User.objects.get(pk=form.instance.pk)
    context = {"person": person, "form": form, "link": link, "section": "people"}
    return render(request, "people/person.html", context, status=status)


@for_administrators
@require_POST
def link(request: PersonRequest, user_id: int) -> HttpResponse:
    """Make an address at which a person chooses a password, for the first time or in place of a lost one."""
    person = get_object_or_404(User, pk=user_id, is_active=True)
    return _person_page(request, PersonForm(instance=person), _address(request, person, people.link_of(person)))


@for_administrators
@require_POST
def switch(request: PersonRequest, user_id: int) -> HttpResponse:
    person, on = get_object_or_404(User, pk=user_id), request.POST.get("on") == "yes"
    try:
        people.switch(person, request.user, on=on)
    except Refusal as refusal:
        return refuse(request, refusal, reverse("person", args=[user_id]))
    text = _("{person} can log in again.") if on else _("{person} is logged out everywhere and cannot come back.")
    messages.success(request, text.format(person=person))
    return redirect("people")


@for_administrators
@require_POST
def erase(request: PersonRequest, user_id: int) -> HttpResponse:
    """Erase a person, once their name was typed."""
    person = get_object_or_404(User, pk=user_id)
    name = person.username
    try:
        if request.POST.get("name", "") != name:
            raise Conflict("not_confirmed", "Type the name as it stands there. Nothing was erased.")
        dialogs = erasure.erase(person, request.user)
    except Refusal as refusal:
        return refuse(request, refusal, reverse("person", args=[user_id]))
    text = _("{name} is erased, with {dialogs} dialogs. What they cost is counted under {account}.")
    messages.success(request, text.format(name=name, dialogs=dialogs, account=person.username))
    return redirect("people")


@for_administrators
@require_GET
def export(request: PersonRequest, user_id: int) -> HttpResponseBase:
    """Download everything that is a person's."""
    person = get_object_or_404(User, pk=user_id)
    return download(person_export.export_person(person), f"person-{person.pk}.json", "application/json")


@for_administrators
@require_POST
def add_group(request: PersonRequest) -> HttpResponse:
    form = GroupForm(request.POST)
    if not form.is_valid():
        return _not_saved(request, group_form=form)
    group = form.save(commit=False)
    people.save_group(group, form.cleaned_data["permissions"], request.user)
    return redirect("group", group_id=group.pk)


@for_administrators
@require_http_methods(["GET", "POST"])
def group(request: PersonRequest, group_id: int) -> HttpResponse:
    """Change a group: rename it, set its members' permissions, add and remove people, or delete it."""
    result = get_object_or_404(Group, pk=group_id)
    saves = request.method == "POST" and request.POST.get("act") == "save"
    form = GroupForm(request.POST if saves else None, instance=result)
    if request.method == "POST":
        try:
            if not saves:
                messages.success(request, _act(request, result))
                return redirect("group", group_id=group_id) if result.pk else redirect("people")
            if form.is_valid():
                people.save_group(form.save(commit=False), form.cleaned_data["permissions"], request.user)
                messages.success(request, _("Saved."))
                return redirect("people")
            say_not_saved(request, form)
        except Refusal as refusal:
            messages.error(request, in_plain_words(refusal.message))
    context = {
        "group": Group.objects.get(pk=group_id),
        "form": form,
        "members": result.user_set.order_by("username")[:MOST_SHOWN],
        "names": User.objects.filter(is_active=True).exclude(groups=result).order_by("username")[:MOST_SHOWN],
        "shared": result.dialogs.count(),
        "section": "people",
    }
    return render(request, "people/group.html", context, status=400 if request.method == "POST" else 200)


def _act(request: PersonRequest, value: Group) -> str:
    match request.POST.get("act"):
        case "delete":
            people.delete_group(value, request.user)
            return _("The group is gone. Its dialogs are their owners' alone.")
        case "leave":
            person = people.leave(value, request.POST.get("person", ""), request.user)
            return _("{person} is no longer in it.").format(person=person)
    person = people.join(value, request.POST.get("name", ""), request.user)
    return _("{person} is in it now.").format(person=person)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def accept_invitation(request: HttpRequest, user_id: int, token: str) -> HttpResponse:
    """Let the holder of the link choose a password, and log them in."""
    try:
        user = people.person_of_link(user_id, token)
    except Refusal as refusal:
        return render(
            request, "people/invited.html", {"problem": in_plain_words(refusal.message)}, status=refusal.status
        )
    form = SetPasswordForm(user, request.POST or None)
    if form.is_valid():
        form.save()
        login(request, user, backend=BACKEND)
        return redirect("home")
    return render(request, "people/invited.html", {"form": form, "person": user})
