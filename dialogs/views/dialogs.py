"""Views of the list of dialogs, of a dialog's page, and of searches."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import structlog
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dialogs.actions import folders
from dialogs.actions.access import visible_dialog
from dialogs.api.dialogs import download
from dialogs.api.lists import number_in
from dialogs.context import limits
from dialogs.context.retrieval import search
from dialogs.errors import DAMAGED, Refusal
from dialogs.live.feeds import current_live_text
from dialogs.live.frames import frames_after
from dialogs.models import Agent, Dialog, Question, Turn
from dialogs.pages import sidebar
from dialogs.pages.chip import Chip, chip_of, chip_of_damaged
from dialogs.pages.dialog_page import STATES, DialogPage, state_label
from dialogs.pages.entries import address_of, all_entries
from dialogs.permissions import may_act, reach_of
from dialogs.queries import export
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import PersonRequest, dialog_page, refuse
from dialogs.views.forms import FolderForm, ListFilter, SelectionForm, clean, problems_of
from dominds.db.bounded import NewestFirst, edge_of_newest

log = structlog.get_logger(__name__)

ROWS = 30


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    """List one's own dialogs by activity, or everybody's for people who may see them and ask for them."""
    form = ListFilter(request.GET)
    form.is_valid()
    given = form.cleaned_data
    matching, among_newest = _filtered_dialogs(request, given)
    pages = NewestFirst(matching, ROWS, "active_at", given.get("until", ""), shown=_with_row_parts(request, given))
    result = pages.get_page(given.get("page") or 1)
    rows = [(dialog, state_label(dialog.state), _chip_of(dialog)) for dialog in result]
    context = {
        "form": form,
        "rows": rows,
        "found": result,
        "among_newest": among_newest,
        "folder": _folder(request, given.get("folder", ""), given.get("state", "")),
        "filtered": any(given.get(name) for name in ("q", "state", "agent", "origin", "whose", "owner", "folder")),
        "all_agents": Agent.objects.all(),
        "section": "dialogs",
    }
    if request.htmx and request.htmx.target == "nav-dialogs":
        return render(
            request,
            "dialogs/_sidebar.html",
            sidebar.variables_of_search(request.user, list(result), given.get("q", "")),
        )
    template = "dialogs/_rows.html" if request.htmx and request.htmx.target == "dialog-rows" else "dialogs/list.html"
    return render(request, template, context)


@login_required
@require_GET
def find(request: PersonRequest, dialog_id: UUID | None = None) -> HttpResponse:
    """Find passages of one dialog, or of all that the person takes part in, best first, with links to their places."""
    query, all_of_it = request.GET.get("q", ""), bool(request.GET.get("all"))
    dialog, leaves_out = visible_dialog(dialog_id, request.user) if dialog_id else None, False
    if dialog:
        hits = [(dialog.pk, hit) for hit in search.in_turns(dialog.pk, query, ROWS)]
    else:
        result, leaves_out = search.everywhere(request.user, query, ROWS, all_of_it=all_of_it)
        hits = [(passage.dialog_id, passage.hit) for passage in result]
    context = {
        "dialog": dialog,
        "query": query,
        "passages": list(_passages(hits)),
        "leaves_out": leaves_out and bool(query),
        "newest_only": dialog is not None and bool(query) and search.searches_newest(dialog.pk),
        "section": "dialogs",
    }
    return render(request, "dialogs/find.html", context)


def _chip_of(dialog: Dialog) -> Chip:
    """Return the chip of a row. An unreadable row says so, and the other rows are shown."""
    try:
        return chip_of(limits.health_of(dialog))
    except DAMAGED:
        log.exception("dialog_unreadable", dialog_id=str(dialog.pk))
        return chip_of_damaged()


def _folder(request: PersonRequest, name: str, state: str) -> dict[str, Any] | None:
    """Return the folder that the list shows, with the possible actions on all of it."""
    number = folders.dialogs_in(request.user, name).count() if name and state not in ("archived", "deleted") else 0
    if not number:
        return None
    return {"name": name, "dialogs": number, "groups": list(request.user.groups.order_by("name"))}


def _passages(hits: list[tuple[UUID, search.Hit]]) -> Iterator[tuple[Turn, str, search.Hit]]:
    """Yield the turn, the address and the text of each passage. Agents' Markdown is shown without its marks."""
    shown = {text.number for _, hit in hits for text in (hit.text, *hit.beside)}
    named = {"dialog__in": {pk for pk, _ in hits}, "seq__in": shown}
    rows = Turn.objects.filter(**named, position__isnull=False).select_related("dialog").defer("text")
    turns = {(turn.dialog_id, turn.seq): turn for turn in rows}
    by_agents = {key for key, turn in turns.items() if turn.role == Turn.Role.ASSISTANT}
    for pk, hit in hits:
        if turn := turns.get((pk, hit.text.number)):
            read = hit.without_marks({seq for dialog, seq in by_agents if dialog == pk})
            yield turn, address_of(turn.dialog, turn.position or 0, f"turn-{turn.seq}"), read


def _filtered_dialogs(request: PersonRequest, given: dict[str, str]) -> tuple[QuerySet[Dialog], bool]:
    """Return the dialogs that match the filters, and whether only the newest were searched for lack of an index."""
    is_deleted = given.get("state") == "deleted"
    everybody = _is_of_everybody(request, given)
    seen = Dialog.objects.for_user(request.user) if everybody else Dialog.objects.shared_with(request.user)
    dialogs = Dialog.deleted.filter(owner=request.user) if is_deleted else seen
    narrowed = (given.get("q") or given.get("origin")) and not given.get("all")
    edge = edge_of_newest(dialogs, "active_at") if narrowed else None
    if edge is not None:
        dialogs = dialogs.filter(active_at__gte=edge)
    among_newest = edge is not None
    if words := given.get("q"):
        among_newest = among_newest or (bool(narrowed) and search.has_older_messages(dialogs))
        dialogs = search.holding_words(dialogs, words, request.user, everywhere=bool(given.get("all")))
    if folder := given.get("folder"):
        dialogs = dialogs.filter(folder=folder, owner=request.user)
    state = given.get("state")
    if not is_deleted:
        dialogs = dialogs.filter(archived_at__isnull=state != "archived")
        dialogs = dialogs.filter(state=state) if state in STATES else dialogs
    if agent := given.get("agent"):
        dialogs = dialogs.filter(agent=agent)
    if origin := given.get("origin"):
        dialogs = dialogs.filter(origin=origin)
    else:
        dialogs = dialogs.exclude(origin__in=Dialog.UNLISTED)
    if owner := given.get("owner"):
        dialogs = dialogs.filter(owner__username=owner)
    return dialogs.newest_first(everybody=everybody), among_newest


def _is_of_everybody(request: PersonRequest, given: dict[str, str]) -> bool:
    """Check whether an administrator asked for more dialogs than their own: everybody's, or another person's."""
    return reach_of(request.user).all and bool(given.get("whose") or given.get("owner"))


def _with_row_parts(request: PersonRequest, given: dict[str, str]) -> QuerySet[Dialog]:
    """Return the dialogs with everything that their rows show, in the order of the list."""
    waiting = Prefetch("questions", Question.objects.filter(state=Question.State.OPEN), to_attr="waiting")
    there = Dialog.deleted if given.get("state") == "deleted" else Dialog.objects
    dialogs = there.select_related("agent", "owner", "group").prefetch_related(waiting)
    return dialogs.newest_first(everybody=_is_of_everybody(request, given))


_ACTS: dict[str, Callable[[User, Sequence[UUID]], folders.Done]] = {
    "archive": partial(folders.archive, away=True),
    "restore": partial(folders.archive, away=False),
    "delete": folders.delete,
    "bring_back": folders.bring_back,
}


@login_required
@require_POST
def act_on_selected(request: PersonRequest) -> HttpResponseBase:
    """Apply one button of the list to the dialogs that were ticked."""
    form = SelectionForm(request.POST)
    if not form.is_valid():
        messages.error(request, _why_unselected(request, form))
    elif form.cleaned_data["action"] == "export":
        return download(
            export.many_as_json(request.user, form.cleaned_data["dialog"]), "dialogs.json", "application/json"
        )
    else:
        _say(request, _ACTS[form.cleaned_data["action"]](request.user, form.cleaned_data["dialog"]))
    return _back(request)


@login_required
@require_POST
def folder(request: PersonRequest) -> HttpResponseBase:
    """Apply one button of a folder to all its dialogs."""
    try:
        given = clean(FolderForm(request.POST))
        name, to = given["folder"], f"{reverse('dialogs')}?{urlencode({'folder': given['folder']})}"
        match given["action"]:
            case "export":
                ids = list(folders.dialogs_in(request.user, name).values_list("pk", flat=True))
                return download(export.many_as_json(request.user, ids), "dialogs.json", "application/json")
            case "rename":
                _say(request, folders.rename(request.user, name, given["name"]))
                to = f"{reverse('dialogs')}?{urlencode({'folder': folders.folder_name(given['name'])})}"
            case "share":
                _say(request, folders.share(request.user, name, given["group"]))
            case "archive":
                _say(request, folders.archive_folder(request.user, name))
                to = reverse("dialogs")
            case _:
                _say(request, folders.remove(request.user, name))
                to = reverse("dialogs")
    except Refusal as refusal:
        return refuse(request, refusal, reverse("dialogs"))
    return redirect(to)


@login_required
@require_POST
def undo(request: PersonRequest) -> HttpResponse:
    try:
        messages.success(request, folders.undo(request.user, request.POST.get("token", "")))
    except Refusal as refusal:
        messages.error(request, in_plain_words(refusal.message))
    return _back(request)


def _say(request: PersonRequest, done: folders.Done) -> None:
    """Tell on the next page what was done, with a button that undoes it."""
    messages.success(request, done.sentence, extra_tags=done.undo)


def _back(request: PersonRequest) -> HttpResponse:
    to = request.POST.get("back", "")
    return redirect(to if _is_list(to) else "dialogs")


def _why_unselected(request: PersonRequest, form: SelectionForm) -> str:
    if not request.POST.getlist("dialog"):
        return _("No dialog was ticked. Tick some, then choose what to do with them.")
    return _("Nothing was done. {reason}").format(reason=" ".join(problems_of(form)))


def _is_list(path: str) -> bool:
    """Check whether an address is the list with its filters, which is the only page to go back to."""
    return path.partition("?")[0] == reverse("dialogs")


@dialog_page
def show(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    return show_page(request, DialogPage(dialog, request.user, request=request))


def show_page(request: PersonRequest, page: DialogPage) -> HttpResponse:
    """Show a dialog's page as of its newest event. The page's socket then sends the events that follow."""
    before = before_of(request)
    entries, older = all_entries(page.dialog, before)
    context = {
        "page": page,
        "entries": entries,
        "older": older,
        "is_newest": before is None,
        "section": "dialogs",
    }
    return render(request, "dialogs/dialog.html", context)


def before_of(request: HttpRequest) -> int | None:
    """Return the position before which the requested page of a transcript ends, or None for the newest page."""
    return number_in(request.GET.get("before"))


@dialog_page
def menu(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Show the navigation's menu of a dialog. Without scripts the dialog's own menu serves."""
    if not request.htmx:
        return redirect("dialog", dialog_id=dialog.pk)
    context = {
        "dialog": dialog,
        "own": dialog.owner_id == request.user.pk,
        "may_act": may_act(request.user, dialog),
    }
    return render(request, "dialogs/_nav_menu.html", context)


@dialog_page
def older(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Return the next older page of the transcript, which is put above the others."""
    page = DialogPage(dialog, request.user, request=request)
    entries, older_than = all_entries(dialog, before_of(request))
    return render(request, "dialogs/_older.html", {"page": page, "entries": entries, "older": older_than})


@dialog_page
def frames(request: PersonRequest, dialog: Dialog) -> JsonResponse:
    """Return the frames that a socket would send after event ``after``, for pages without one, which poll."""
    seq = number_in(request.GET.get("after")) or 0
    result = frames_after(dialog.pk, request.user.pk, seq, request.GET.get("of")) or []
    draft = current_live_text(dialog.pk)
    return JsonResponse({"frames": [*result, draft] if draft else result})
