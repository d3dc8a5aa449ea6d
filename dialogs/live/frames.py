"""Events as a browser receives them: the public data, and as ``html`` the pieces of the page that they change.

Pieces are rendered from the rows as they are now, so a repeated or late event can only show something newer. Within one
batch each piece is rendered once, with the last event that needs it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.contrib.auth.models import Group, User
from django.db.models import OuterRef, QuerySet, Subquery
from django.template.loader import render_to_string

from dialogs.actions import questions
from dialogs.context.view import standing_runs
from dialogs.extension import installed_extensions
from dialogs.live.socket_auth import active_person
from dialogs.models import Dialog, PersonSettings, Question, Round, SiteSettings, Turn
from dialogs.pages import sidebar
from dialogs.pages.context_panel import run_lines
from dialogs.pages.dialog_page import DialogPage, newest_status
from dialogs.pages.entries import Entry, run_entry, turn_entries
from dialogs.pages.language import in_language
from dialogs.permissions import may_see, reach_of, within
from dialogs.state import State
from dialogs.store import events
from dominds.budgets import TURN_CHARS
from dominds.db.prepared import Select
from dominds.web.build import BUILD

log = structlog.get_logger(__name__)

BATCH = 200
NEWEST_RUNS = 50  # rewrites that are searched for the one just made
PIECES: dict[str, tuple[str, ...]] = {
    "turn": ("queued",),
    "sharing": ("subtitle", "dialog_menu"),
    "model": ("model_button", "subtitle", "composer_state", "ring", "meter", "banner"),
    "title": ("heading", "recent_current", "dialog_menu"),
    "generation": ("activity",),
    "health": ("ring", "meter", "banner"),
    "state": ("heading", "recent_current", "state", "activity", "banner", "composer_state", "model_button"),
    # One of a critical question's exits moves the dialog to another model.
    "question": ("banner", "composer_state", "model_button", "subtitle", "ring", "meter"),
    "reminder": ("reminders_panel",),
    "round": ("reminders_panel", "ring", "meter"),
    "remediation": ("meter",),
}
# The first message gives the dialog its title, and a closed dialog can no longer be changed.
CHANGED_BY_FIRST_AND_LAST = ("dialog_menu", "reminders_panel")
Frame = dict[str, Any]


def frames_after(dialog_id: UUID, user_id: int, seq: int, database_generation: str | None = None) -> list[Frame] | None:
    """Return the next events after ``seq`` with their HTML, or ``None`` if this person may no longer see the dialog."""
    # Events are read before the rows of the pieces, so that a piece may be newer than its event, but never older.
    rows, turns = events.read(dialog_id, seq, BATCH)
    dialog = _dialog.first(dialog_id)
    viewer = dialog and _viewer(dialog, user_id)
    if not viewer or not dialog:
        return None
    if seq > dialog.last_event_seq or database_generation not in (
        None,
        getattr(dialog, "database_generation", None) or "",
    ):
        return [resync(dialog.last_event_seq)]
    frames = events.hydrate(rows, turns)
    if not frames:
        return []
    try:
        page = DialogPage(dialog, viewer)
        page.newest_status = getattr(dialog, "newest_status", None) or ""
        add_html(page, frames, turns)
    except Exception:  # a piece that cannot be rendered must not hold up the events: the page reloads instead
        log.exception("pieces_not_rendered", dialog_id=str(dialog_id), after=seq)
        frames[-1]["refetch"] = True
    return frames


@Select
def _dialog(dialog_id: UUID) -> QuerySet[Dialog]:
    """Build a query of the dialog with all that pieces need from other rows, in place of a statement for each piece."""
    return (
        Dialog.objects.filter(pk=dialog_id)
        .select_related("agent", "owner", "client", "group")
        .annotate(
            database_generation=Subquery(SiteSettings.objects.values("generation")[:1]),
            newest_status=Subquery(newest_status(OuterRef("pk"))),
            standing_run=Subquery(standing_runs(OuterRef("pk"), OuterRef("round_number")).values("pk")),
        )
    )


def _viewer(dialog: Dialog, user_id: int) -> User | None:
    """Return the person if they may see the dialog now."""
    if dialog.owner_id == user_id:
        return dialog.owner if dialog.owner.is_active else None
    viewer = active_person(user_id)
    return viewer if viewer and may_see(viewer, dialog) else None


def resync(seq: int) -> Frame:
    """Return the frame that makes a page reload because its cursor is older than a restored backup."""
    return {"type": "resync", "seq": seq}


def add_html(page: DialogPage, frames: list[Frame], turns: Mapping[int, Turn]) -> None:
    wanted = [_pieces_for(page, frame) for frame in frames]
    last_with = {name: index for index, names in enumerate(wanted) for name in names}
    last_question = max((index for index, frame in enumerate(frames) if frame["type"] == "question"), default=None)
    turn_pieces = _turn_pieces(page, turns)
    for index, frame in enumerate(frames):
        pieces = (page.piece(name) for name in wanted[index] if last_with[name] == index)
        html = [piece for piece in pieces if not piece.isspace()]
        if frame["type"] == "turn":
            html += turn_pieces.pop(frame["data"].get("seq", 0), [])
        elif frame["type"] == "question" and last_question == index:
            html += _call_site_piece(page, turns)
        elif frame["type"] == "round":
            html += _clear_pieces(page, newest=2)
        elif frame["type"] == "state" and last_with["state"] == index:
            html += _standing_run_piece(page) or _clear_pieces(page)
        elif frame["type"] == "remediation":
            html += _run_pieces(page, frame["data"].get("id")) + _clear_pieces(page)
        if html:
            frame["html"] = "".join(html)
            if frame["type"] == "turn":
                frame["data"] = _for_page(frame["data"])


def _for_page(turn: Frame) -> Frame:
    """Drop long values, whose beginning is in the HTML."""
    short = {**turn, "text": turn.get("text", "")[: TURN_CHARS.most]}
    short.pop("reasoning", None)
    if len(orjson.dumps(short.get("tool_calls"))) > TURN_CHARS.most:
        short.pop("tool_calls")
    return short


def _pieces_for(page: DialogPage, frame: Frame) -> tuple[str, ...]:
    kind, data = frame["type"], frame["data"]
    names = (*PIECES.get(kind, ()), *_of_extensions().get(kind, ()))
    if (kind == "turn" and data.get("seq") == 1) or (kind == "state" and page.state == State.CLOSED):
        names = (*names, *CHANGED_BY_FIRST_AND_LAST)
    return names


@cache
def _of_extensions() -> Mapping[str, tuple[str, ...]]:
    """Return the pieces of extensions that an event of some type renders again, by that type."""
    added: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for extension in installed_extensions():
        for kind, names in extension.live_pieces.items():
            added[kind] += names
    return added


def _turn_pieces(page: DialogPage, turns: Mapping[int, Turn]) -> dict[int, list[str]]:
    """Render each turn once, and also the turns whose tool cards a result replaces."""
    rows = sorted((turn for turn in turns.values() if turn.position is not None), key=lambda turn: turn.position or 0)
    owners = _asking_turns(page.dialog, rows)
    entries = {entry.turn.seq: entry for entry in turn_entries(page.dialog, rows + owners) if entry.turn}
    pieces = {seq: [page.entry(entry)] for seq, entry in entries.items()}
    for turn in rows:
        if turn.role == Turn.Role.TOOL:
            for owner in owners:
                pieces[turn.seq] += pieces.get(owner.seq, [])
    return pieces


def _asking_turns(dialog: Dialog, rows: list[Turn]) -> list[Turn]:
    """Return the assistant turns, not among ``rows``, whose calls these results answer."""
    results = [turn for turn in rows if turn.role == Turn.Role.TOOL]
    if not results:
        return []
    first = results[0].position or 0
    asking = dialog.turns.filter(role=Turn.Role.ASSISTANT, tool_calls__isnull=False, position__lt=first)
    result = asking.select_related("generation__snapshot", "author").order_by("-position").first()
    return [result] if result is not None and result.seq not in {turn.seq for turn in rows} else []


def _call_site_piece(page: DialogPage, turns: Mapping[int, Turn]) -> list[str]:
    """Render the newest turn with calls again, since a page may show it without its question. If the turn's own event
    is among these, that event renders it.
    """
    calling = page.dialog.turns.filter(role=Turn.Role.ASSISTANT, tool_calls__isnull=False, position__isnull=False)
    turn = calling.select_related("generation__snapshot", "author").order_by("-position").first()
    if turn is None or turn.seq in turns:
        return []
    return [page.entry(entry) for entry in turn_entries(page.dialog, [turn])]


def _clear_pieces(page: DialogPage, newest: int = 1) -> list[str]:
    """Render the dividers of the newest clears, each before its round's first turn or at the end while it has none.

    Whether one can be undone depends on the dialog's state, and on what came after it.
    """
    if page.dialog.round_number == 1:
        return []
    rows = page.dialog.rounds.filter(cause__in=Round.CLEARS).order_by("-number")[:newest]
    return [page.entry(Entry(position=_start_of(page.dialog, row), round=row)) for row in reversed(rows)]


def _start_of(dialog: Dialog, row: Round) -> float:
    first = dialog.turns.filter(round_number__gte=row.number, position__isnull=False).order_by("position").first()
    return (first.position or 0) - 0.5 if first else dialog.last_position + 0.5


def _run_pieces(page: DialogPage, run_id: int | None) -> list[str]:
    """Render the newest rewrites, since after an undo the one before can be undone."""
    lines = run_lines(page.dialog, newest=NEWEST_RUNS)
    newest = next((line for line in lines if line.run.pk == run_id), None)
    pieces = [page.entry(run_entry(line)) for line in lines[-3:]]
    return [*pieces, page.piece("breaking_details", line=newest)] if newest and not newest.undoes_clear else pieces


def _standing_run_piece(page: DialogPage) -> list[str]:
    """Render the newest rewrite again, since whether it can be undone depends on the dialog's state."""
    standing = getattr(page.dialog, "standing_run", None)
    return [page.entry(run_entry(line)) for line in run_lines(page.dialog, pk=standing)] if standing else []


def badges_of(user_id: int, languages: Collection[str] = ("en",)) -> dict[str, Frame] | None:
    """Return the badges as a frame in each language.

    They hold the number of questions that wait for this person, the states of their dialogs, the newest question for a
    notification, and the settings of their pages.
    """
    viewer = _with_settings.first(user_id)
    if viewer is None:
        return None
    waiting = _waiting_for_all() if reach_of(viewer).all else _open_questions_for(user_id)
    newest = max(waiting, key=lambda question: question.created_at, default=None)
    dialogs = sidebar.recent_states(viewer, sidebar.NEWEST)
    frame = {
        "type": "badges",
        "questions": len(waiting),
        "build": BUILD,
        "newest": _notification(newest) if newest else None,
        "look": _appearance(getattr(viewer, "dominds_settings", None) or PersonSettings()),
    }
    return {language: frame | in_language(language, _badge_words, dialogs, len(waiting)) for language in languages}


def _badge_words(dialogs: Sequence[Any], waiting: int) -> Frame:
    return {"dialogs": sidebar.marks(dialogs), "html": render_to_string("_badge.html", {"waiting": waiting})}


def _appearance(own: PersonSettings) -> dict[str, Any]:
    """Return the attributes that apply a person's settings to an open page: to root, body and breaking bar."""
    return {
        "theme": own.theme,
        "notify": "on" if own.notifications else "off",
        "breaking": {
            "shown": "yes" if own.show_breaking_progress else "no",
            "detail": own.progress_detail,
            "hide": own.auto_hide_seconds,
            "p1": "yes" if own.highlight_p1 else "no",
        },
    }


@Select
def _with_settings(user_id: int) -> QuerySet[User]:
    return User.objects.select_related("dominds_settings").filter(pk=user_id, is_active=True)


@Select
def _waiting_for_all() -> QuerySet[Question]:
    return questions.open_questions_in(Dialog.objects.all())


@Select
def _open_questions_for(user_id: int) -> QuerySet[Question]:
    return questions.open_questions_in(Dialog.objects.filter(within(user_id, Group.objects.filter(user=user_id))))


def _notification(question: Question) -> dict[str, str]:
    return {
        "id": str(question.pk),
        "dialog": str(question.dialog_id),
        "title": str(question.dialog),
        "text": question.text[:200],
    }
