"""The one seam for optional features: an app of Django that says in a value what it adds,
and hears what dialogs go through.

An extension is an app with a module ``extension`` that holds its ``EXTENSION``. Django finds the app's templates,
static files, commands, checks and admin by itself; the rest is said here. The core knows no extension by name. Which
are switched on is read from the environment (``DOMINDS_EXTRAS``); see docs/extensions.md.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings

if TYPE_CHECKING:  # the models are loaded when an extension is asked, not when this is read
    from dialogs.models import Dialog, Question
    from remediation.models import RemediationRun
    from remediation.spending import Spending

log = logging.getLogger(__name__)

PLACES: Mapping[str, str] = {
    "navigation": "entries of the list of pages beside every page, <li> each",
    "dialog-menu": "entries of a dialog's menu that change it",
    "dialog-history": "entries of a dialog's menu that show what happened in it",
    "list-menu": "entries of the menu of a dialog in the list",
    "turn-menu": "entries of a turn's menu",
    "context-links": "links below the gauge of the context",
    "usage-links": "below the usage of a turn",
    "above-composer": "above the composer of a dialog, below the conversation",
    "below-dialogs": "below the list of dialogs",
    "login": "below the form where people log in",
    "settings-account": "the settings' page Password and sign-ins, below its form",
    "settings-appearance": "the settings' page Look and notifications, below its form",
    "settings-costs": "the settings' page Costs, at its end",
    "settings-site": "in the form For everybody; see Extension.site_form",
}


def _hear_nothing(*_: Any) -> None:
    """Do nothing, in place of what an extension does not want to hear."""


def _leave_spending(dialog: "Dialog", spending: "Spending") -> "Spending":
    """Return the spending, in place of an extension that adds costs to a dialog."""
    return spending


def _export_nothing(dialog: "Dialog") -> Iterable[tuple[str, Iterable[str]]]:
    """Return no field, in place of an extension that adds some to a dialog's export."""
    return ()


def _trace_alone(dialog: "Dialog") -> str:
    """Return no parent, in place of an extension that knows of one."""
    return ""


def _do_nothing() -> None:
    """Do nothing, in place of a job that an extension does not have."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A template that is shown at a place of the pages, with the variables around that place.

    ``variables`` is the dotted name of a function that makes further variables from the request.
    """

    place: str  # one of PLACES
    template: str
    variables: str = ""

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise ValueError(f"There is no place {self.place!r} on the pages. The places are: {', '.join(PLACES)}.")


@dataclass(frozen=True, slots=True)
class Extension:
    """An optional feature, as a value. Whatever only web processes need is named in dots, and imported by them
    alone.

    The functions of the last group are called inside the transaction of the change that they are about: what they
    store is kept with it or not at all, what they raise undoes it, and they must not wait for anybody.
    """

    name: str
    summary: str  # one line for operators
    programs: str = ""  # a module with ``urlpatterns`` that programs ask for: tried first
    pages: str = ""  # a module with ``urlpatterns`` of pages
    routers: tuple[str, ...] = ()  # routers of Ninja that are added to /api
    pieces: tuple[Piece, ...] = ()
    # Pieces of the dialog's page, by the type of event that changes them.
    live_pieces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    site_form: str = ""  # a ModelForm of SiteSettings, whose fields are added to the form For everybody

    tools: str = ""  # a function of an agent, and of its dialog or None, that returns more ``Tool``s for it
    spending: Callable[["Dialog", "Spending"], "Spending"] = _leave_spending
    # Further fields of a dialog's export, each with the pieces of its JSON.
    exported: Callable[["Dialog"], Iterable[tuple[str, Iterable[str]]]] = _export_nothing
    # The ``traceparent`` of the span that the runs of a dialog belong to; asked only where spans are kept.
    traced_below: Callable[["Dialog"], str] = _trace_alone
    # Readers of further fields of team.yaml; see Agent.extras.
    agent_fields: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    # A function of an agent that returns form fields for some of them, by their names; see AgentForm.
    agent_form: str = ""
    # Values of these fields for the shipped demo agents, by their ids.
    demo_agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Texts of ``notice`` events that programs read between the words of an answer. What stands in braces varies.
    notices: tuple[str, ...] = ()

    sweep: Callable[[], None] = _do_nothing  # every 5 seconds, by one process or several at once
    tidy: Callable[[], None] = _do_nothing  # every hour

    question_opened: Callable[["Question"], None] = _hear_nothing
    question_closed: Callable[["Question"], None] = _hear_nothing
    level_changed: Callable[["Dialog", str], None] = _hear_nothing
    rewritten: Callable[["Dialog", "RemediationRun"], None] = _hear_nothing
    dialogs_deleted: Callable[[Collection[UUID]], None] = _hear_nothing
    state_changed: Callable[[Any], None] = _hear_nothing  # a ``Change``, which lies in a layer above
    stopped: Callable[[Any], None] = _hear_nothing
    shared: Callable[["Dialog"], None] = _hear_nothing
    dialogs_restored: Callable[[Collection[UUID]], None] = _hear_nothing
    dialog_erased: Callable[[UUID], None] = _hear_nothing


@cache
def installed_extensions() -> tuple[Extension, ...]:
    """Return the extensions that are switched on, in the order of ``settings.EXTRAS``. Read once a process."""
    return tuple(load(app) for app in settings.EXTRAS)


# A turn asks for these several times, and few extensions fill them.
@cache
def state_hearers() -> tuple[Callable[[Any], None], ...]:
    """Return what the extensions call when a dialog's state changed, without those that do nothing."""
    return tuple(one.state_changed for one in installed_extensions() if one.state_changed is not _hear_nothing)


@cache
def spending_adders() -> tuple[Callable[["Dialog", "Spending"], "Spending"], ...]:
    """Return how the extensions add to a dialog's spending, without those that add nothing."""
    return tuple(one.spending for one in installed_extensions() if one.spending is not _leave_spending)


def load(app: str) -> Extension:
    """Return the extension of an app. Raises ``TypeError`` if it has none."""
    value = import_module(f"{app}.extension").EXTENSION
    if not isinstance(value, Extension):
        raise TypeError(
            f"{app}.extension.EXTENSION is a {type(value).__name__}; expected a dialogs.extension.Extension."
        )
    return value


@cache
def pieces_at(place: str) -> tuple[Piece, ...]:
    """Return what the extensions show at this place of the pages."""
    if place not in PLACES:
        raise ValueError(f"There is no place {place!r} on the pages. The places are: {', '.join(PLACES)}.")
    return tuple(piece for extension in installed_extensions() for piece in extension.pieces if piece.place == place)
