"""A person's dialogs in the navigation: pinned ones, folders, and then the newest by the day of their last activity."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.models import Dialog
from dialogs.pages.dialog_page import state_label
from dialogs.permissions import reach_of
from dominds.db.prepared import Select

NEWEST = 30
MOST_KEPT = 300

Rows = Callable[[QuerySet[Dialog]], QuerySet[Dialog, Any]]


@dataclass(frozen=True, slots=True)
class Section:
    """A group of dialogs under one heading, with the words for their states."""

    title: str
    dialogs: list[tuple[Dialog, str]]
    is_folder: bool = False


def sections(user: User, recent: Iterable[Dialog]) -> list[Section]:
    """Return the sections, with the ``recent`` dialogs. Days are those of the current time zone."""
    kept = {dialog.pk: dialog for dialog in _pinned_or_in_folders(user.pk)}
    folders: dict[str, list[Dialog]] = {}
    for dialog in kept.values():
        folders.setdefault("" if dialog.pinned_at else dialog.folder or "", []).append(dialog)
    pinned = folders.pop("", [])
    others = [dialog for dialog in recent if dialog.pk not in kept]
    today = timezone.localdate()
    days = groupby(others, lambda dialog: _day(timezone.localdate(dialog.active_at), today))
    shown = [(_("Pinned"), pinned, False), *((name, folders[name], True) for name in sorted(folders, key=str.casefold))]
    shown += [(title, list(group), False) for title, group in days]
    return [Section(title, _with_labels(group), is_folder) for title, group, is_folder in shown if group]


@Select
def _pinned_or_in_folders(user_id: int) -> QuerySet[Dialog]:
    """Return a person's pinned dialogs, and those in folders."""
    own = Dialog.objects.filter(owner=user_id, archived_at=None).select_related("agent")
    kept = own.filter(Q(pinned_at__isnull=False) | Q(folder__isnull=False))
    return kept.order_by(F("pinned_at").desc(nulls_last=True), "-active_at")[:MOST_KEPT]


def variables_of_search(user: User, dialogs: list[Dialog], words: str) -> dict[str, Any]:
    """Return the template's variables for a search, or those of the usual navigation without words."""
    if not words:
        return {"sections": sections(user, recent_dialogs(user, NEWEST))}
    shown = [Section(_("Found"), _with_labels(dialogs))] if dialogs else []
    return {"sections": shown, "words": words, "none": _("No dialog matches.")}


def marks(dialogs: Iterable[Any]) -> list[tuple[str, str, str, int]]:
    """Return what open pages keep up to date about each dialog: id, state, the state in words, and number of turns."""
    return [(str(row.pk), row.state, state_label(row.state), row.last_turn_seq) for row in dialogs]


def _with_labels(dialogs: Iterable[Dialog]) -> list[tuple[Dialog, str]]:
    return [(dialog, state_label(dialog.state)) for dialog in dialogs]


def _day(then: date, today: date) -> str:
    match (today - then).days:
        case days if days < 1:
            return _("Today")
        case 1:
            return _("Yesterday")
        case days if days < 7:
            return _("Last 7 days")
    return _("Earlier")


def recent_dialogs(user: User, limit: int) -> list[Dialog]:
    return _recent(user, limit, _with_agents)


def recent_states(user: User, limit: int) -> list[Any]:
    """Return the dialogs of ``recent_dialogs`` with the columns for ``marks`` and the order, a tenth of the data."""
    return _recent(user, limit, _states)


def _recent(user: User, limit: int, rows: Rows) -> list[Any]:
    """Return a person's own dialogs and those of their groups, newest first.

    No index covers both, so each set is read by its own index. Most people have no groups.
    """
    result = {row.pk: row for row in _own_recent(limit, rows)(user.pk)}
    if groups := reach_of(user).groups:
        result |= {row.pk: row for row in rows(_newest(Dialog.objects.filter(group__in=groups), limit))}
    return sorted(result.values(), key=lambda row: row.active_at, reverse=True)[:limit]


def _newest(dialogs: QuerySet[Dialog], limit: int) -> QuerySet[Dialog]:
    shown = dialogs.filter(archived_at=None).exclude(origin__in=Dialog.UNLISTED)
    return shown.order_by("-active_at")[:limit]


def _with_agents(dialogs: QuerySet[Dialog]) -> QuerySet[Dialog]:
    return dialogs.select_related("agent")


def _states(dialogs: QuerySet[Dialog]) -> QuerySet[Dialog, Any]:
    return dialogs.values_list("pk", "state", "last_turn_seq", "active_at", named=True)


@cache
def _own_recent(limit: int, rows: Rows) -> Select[Any]:
    def own(user_id: int) -> QuerySet[Dialog, Any]:
        return rows(_newest(Dialog.objects.filter(owner=user_id), limit))

    return Select(own)
