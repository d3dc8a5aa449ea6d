"""The pieces of a dialog page. The page, htmx answers and sockets all build their HTML from here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Min, Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import cached_property  # functools' own holds one lock for all pages until Python 3.12
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from dialogs.actions import questions, reminders
from dialogs.actions.exits import Exit, exits_for
from dialogs.actions.rewrite_requests import undoable_clear
from dialogs.context import limits
from dialogs.context.connected import connected
from dialogs.models import Agent, Dialog, Generation, PersonSettings, Question, Reminder, Round, SiteSettings, Turn
from dialogs.pages.chip import Chip, chip_of
from dialogs.pages.context_panel import Panel, panel_of
from dialogs.pages.entries import Entry, address_of
from dialogs.pages.make_room import Ways
from dialogs.pages.meter import ANSWERS as METER_ANSWERS
from dialogs.pages.meter import Meter, meter_of
from dialogs.pages.versions import Versions, versions_of
from dialogs.permissions import OPERATE, may
from dialogs.state import State
from dominds.db.prepared import Select
from dominds.llm.provider import AccessDenied, AuthFailed
from health.models import HealthSnapshot
from remediation.guidance import COUNTDOWN_GENERATIONS
from remediation.policies.policy import ByHand
from remediation.policies.registry import Choice, by_hand

SPARK_POINTS = 60

ENDED_WELL = (Generation.Outcome.KEPT, Generation.Outcome.DISCARDED)  # other calls mostly report no usage
STATES = {
    State.IDLE: gettext_noop("Idle"),
    State.QUEUED: gettext_noop("Queued"),
    State.GENERATING: gettext_noop("Generating"),
    State.WAITING: gettext_noop("Waiting for you"),
    State.SUSPENDED: gettext_noop("Suspended"),
    State.FAILED: gettext_noop("Failed"),
    State.CLOSED: gettext_noop("Closed"),
}


@dataclass
class DialogPage:
    """A dialog as one person sees it now. Each part is read when a piece of the page first needs it."""

    dialog: Dialog
    viewer: User
    sending_error: str = ""
    text: str = ""
    request: HttpRequest | None = field(default=None, repr=False)
    room: Ways | None = None  # the ways to make room, if they were previewed

    @property
    def id(self) -> str:
        return str(self.dialog.pk)

    @cached_property
    def database_generation(self) -> str:
        return SiteSettings.current().generation

    @property
    def viewer_id(self) -> str:
        return str(self.viewer.pk)

    @property
    def is_own(self) -> bool:
        return self.dialog.owner_id == self.viewer.pk

    @property
    def state(self) -> str:
        return self.dialog.state

    @property
    def state_label(self) -> str:
        return state_label(self.dialog.state)

    @property
    def is_busy(self) -> bool:
        return self.state in (State.QUEUED, State.GENERATING)

    @property
    def may_send(self) -> bool:
        return self.state not in (State.SUSPENDED, State.CLOSED) and not self.unusable

    @cached_property
    def unusable(self) -> str:
        return "" if self.state in (State.SUSPENDED, State.CLOSED) else limits.unusable_reason(self.dialog)

    @property
    def fetches_images(self) -> bool:
        """Check whether a click on an image that an answer names shows the image in place."""
        return bool(settings.REMOTE_IMAGES)

    @cached_property
    def health(self) -> dict[str, Any]:
        return limits.health_of(self.dialog)

    @cached_property
    def chip(self) -> Chip:
        return chip_of(self.health)

    @cached_property
    def meter(self) -> Meter:
        return meter_of(self.health, self.chip.tokens, _newest_answers(self.dialog.pk)[::-1])

    @cached_property
    def policy(self) -> Choice:
        return limits.policy_of(self.dialog)

    @cached_property
    def running(self) -> Generation | None:
        return _running_generation.first(self.dialog.pk)

    @property
    def activity(self) -> str:
        """Return in a few words what is going on, or an empty text."""
        if self.dialog.stop_requested and self.is_busy:
            return _("Stopping…")
        if self.state == State.QUEUED:
            if not self.dialog.wake_at:
                return _("Waiting for its turn…")
            return _("Waiting for the provider…") if self.awaited_kind else _("Waiting for results…")
        if self.state != State.GENERATING:
            return ""
        if self.running is None:
            return _("Working…")
        match self.running.purpose:
            case Generation.Purpose.FORCED_CLEAR:
                text = _("Attempt {number} of 3: asking the agent to clear its mind…")
                return text.format(number=self.running.attempt)
            case Generation.Purpose.PRUNE | Generation.Purpose.SUMMARY:
                return _("Compacting conversation history...")
        if self.running.attempt == 1:
            return _("Generating…")
        return _("Generating… (try {number})").format(number=self.running.attempt)

    @cached_property
    def question(self) -> Question | None:
        return self.dialog.questions.filter(state=Question.State.OPEN).first()

    @cached_property
    def may_resolve(self) -> bool:
        return self.question is not None and questions.may_resolve(self.viewer, self.question)

    @property
    def ways(self) -> list[Exit]:
        """Return the exits that need no input and can be taken back, each of which gets a button."""
        if self.question is None or not self.may_resolve:
            return []
        return [
            way
            for way in exits_for(self.question.kind)
            if not way.fields and not way.is_final and way.available(self.question)
        ]

    @property
    def failure_kind(self) -> str:
        """Return the kind of the error if the dialog failed by a model call."""
        kind, error = self._newest_error
        return kind if error and self.dialog.failure.startswith(error) else ""

    @property
    def key_address(self) -> str:
        """Return the page where this person can change a key that the provider refused, or an empty text."""
        kind, provider = self._newest_error[0], self.dialog.provider_id
        is_refused = kind in (AuthFailed.kind, AccessDenied.kind) and self.state in (State.FAILED, State.SUSPENDED)
        if not is_refused or not may(self.viewer, OPERATE) or provider not in connected():
            return ""
        return reverse("edit-provider", args=[provider])

    @property
    def awaited_kind(self) -> str:
        """Return the kind of the error if a call is to be tried again later."""
        return self._newest_error[0] if self.state == State.QUEUED and self.dialog.wake_at else ""

    @cached_property
    def _newest_error(self) -> tuple[str, str]:
        return self.dialog.generations.order_by("-pk").values_list("error_kind", "error").first() or ("", "")

    @cached_property
    def queued(self) -> list[Turn]:
        return [] if self.dialog.all_placed else _queued_turns(self.dialog.pk)

    @cached_property
    def may_retry(self) -> bool:
        """Check whether the newest message ended without an answer, and nothing is going on."""
        if self.state not in (State.IDLE, State.FAILED):
            return False
        return self.newest_status in (Turn.Status.FAILED, Turn.Status.STOPPED)

    @cached_property
    def newest_status(self) -> str:
        """Return the status of the newest message; empty while there is none."""
        return _newest_status.first(self.dialog.pk) or ""

    @cached_property
    def reminders(self) -> list[tuple[Reminder, int]]:
        return reminders.list_reminders(self.dialog)

    @cached_property
    def rounds(self) -> list[tuple[Round, str]]:
        """Return the rounds, newest first, each with the address of the place where it begins."""
        first = dict(_first_positions(self.dialog)) if self.dialog.round_number > 1 else {}
        end = self.dialog.last_position
        return [
            (row, address_of(self.dialog, first.get(row.number, end) if row.number > 1 else 1, f"round-{row.number}"))
            for row in self.dialog.rounds.order_by("-number")
        ]

    @cached_property
    def undoable_round(self) -> int | None:
        """Return the number of the round whose clear can be undone now, or None."""
        cleared = undoable_clear(self.dialog) if self.state in (State.IDLE, State.FAILED) else None
        return cleared.number if cleared else None

    @property
    def send_to(self) -> str:
        """Return the address to which the composer's form is sent."""
        return reverse("post-message", args=[self.id])

    @property
    def new_message_id(self) -> str:
        """Return an idempotency key, with which a form that is sent twice counts once."""
        return str(uuid4())

    @cached_property
    def usage_points(self) -> list[dict[str, Any]]:
        return usage_points(self.dialog)

    @cached_property
    def panel(self) -> Panel | None:
        return panel_of(self.dialog)

    @property
    def by_hand(self) -> list[ByHand]:
        """Return the rewrites that people can request."""
        return [policy.by_hand for policy in by_hand() if policy.by_hand]

    @property
    def ways_by_hand(self) -> list[tuple[ByHand, str]]:
        """Return these rewrites, each with what it would free now in words. They are empty before the preview, and the
        rewrites that help come first after it.
        """
        if self.room is None:
            return [(hand, "") for hand in self.by_hand]
        return [(way.hand, way.frees or _("would change nothing now")) for way in self.room.all]

    @property
    def may_rewrite(self) -> bool:
        """Check whether a person may request a rewrite, which is not the case while one is under way."""
        return self.state in (State.IDLE, State.FAILED, State.QUEUED, State.GENERATING) and not self.rewrite_pending

    @property
    def may_choose_model(self) -> bool:
        return self.state not in (State.SUSPENDED, State.CLOSED)

    @property
    def rewrite_pending(self) -> str:
        return self.dialog.requested_rewrite

    @property
    def countdown(self) -> str:
        """Return how far the countdown to an automatic clear has come, or an empty text without one."""
        if self.dialog.agent.critical_policy != Agent.CriticalPolicy.COUNTDOWN or not self.dialog.guided_generations:
            return ""
        text = _("{number} of {all} guided answers, then its mind is cleared")
        return text.format(number=self.dialog.guided_generations, all=COUNTDOWN_GENERATIONS)

    @cached_property
    def display(self) -> PersonSettings:
        return PersonSettings.objects.filter(user=self.viewer).first() or PersonSettings(user=self.viewer)

    @cached_property
    def versions(self) -> Mapping[int, Versions]:
        return versions_of(self.dialog, self.viewer)

    @cached_property
    def forked_from(self) -> Dialog | None:
        """Return the dialog from which this one branches off, if this person may see it."""
        return Dialog.objects.for_user(self.viewer).filter(forks=self.dialog).first()

    def piece(self, name: str, **more: Any) -> str:
        """Render one piece of the page, by the name of its template."""
        return render_to_string(f"dialogs/_{name}.html", {"page": self, **more}, self.request)

    def entry(self, entry: Entry) -> str:
        return render_to_string(entry.template, {"page": self, "entry": entry}, self.request)


def state_label(state: str) -> str:
    """Return the words for a state, even for an unknown one, since a damaged row must not break a list."""
    return _(STATES[State(state)] if state in STATES else gettext_noop("Damaged"))


@Select
def _running_generation(dialog_id: UUID) -> QuerySet[Generation]:
    return Generation.objects.filter(dialog_id=dialog_id, outcome=Generation.Outcome.RUNNING).order_by("pk")[:1]


@Select
def _queued_turns(dialog_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.queued().filter(dialog_id=dialog_id).order_by("seq")


@Select
def _newest_status(dialog_id: UUID) -> QuerySet[Turn, str]:
    return newest_status(dialog_id)


def newest_status(dialog_id: Any) -> QuerySet[Turn, str]:
    """Build a query of the newest message's status. ``dialog_id`` may be a column of an outer query."""
    messages = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.USER, position__isnull=False)
    return messages.order_by("-position").values_list("status", flat=True)[:1]


def _newest_snapshots(dialog_id: UUID, limit: int, **calls: Any) -> QuerySet[HealthSnapshot]:
    """Return the snapshots of the newest calls for answers and clears, newest first.

    The calls are found first, by their index. Otherwise PostgreSQL would read the snapshots of all dialogs, from the
    newest back to those of this one.
    """
    purposes = Q(purpose=Generation.Purpose.REPLY) | Q(purpose=Generation.Purpose.FORCED_CLEAR)
    newest = Generation.objects.filter(purposes, dialog_id=dialog_id, **calls).order_by("-pk").values("pk")[:limit]
    return HealthSnapshot.objects.filter(generation__in=newest).order_by("-generation_id")


@Select
def _newest_answers(dialog_id: UUID) -> QuerySet[HealthSnapshot, Any]:
    rows = _newest_snapshots(dialog_id, METER_ANSWERS, outcome__in=ENDED_WELL)
    return rows.values_list("prompt_tokens", "generation__base", "generation__sent", named=True)


@cache
def _snapshots(limit: int) -> Select[Any]:
    def snapshots(dialog_id: UUID) -> QuerySet[HealthSnapshot, Any]:
        return _newest_snapshots(dialog_id, limit).values_list(
            "prompt_tokens", "model_context_limit", "level", named=True
        )

    return Select(snapshots)


def usage_points(dialog: Dialog, limit: int = SPARK_POINTS, room: int = SPARK_POINTS // 2) -> list[dict[str, Any]]:
    """Return the prompt tokens of the newest kept generations as bars of a small chart, oldest first, with heights in
    percent. The chart has room for at least ``room`` bars.
    """
    rows = _snapshots(limit)(dialog.pk)[::-1]
    top = highest(rows)
    points = []
    for index, row in enumerate(rows, start=max(0, room - len(rows))):
        height = 6.0 if row.prompt_tokens is None else max(2.0, row.prompt_tokens * 100 / top)
        points.append({"x": index * 10, "y": round(100 - height, 1), "height": round(height, 1), "snapshot": row})
    return points


def highest(rows: Iterable[Any]) -> int:
    """Return the tokens of a chart's full height: the largest window, or a longer prompt."""
    return max((max(row.model_context_limit or 0, row.prompt_tokens or 0) for row in rows), default=0) or 1


def _first_positions(dialog: Dialog) -> QuerySet[Turn, Any]:
    placed = dialog.turns.filter(position__isnull=False).order_by()
    return placed.values("round_number").annotate(first=Min("position")).values_list("round_number", "first")


def agents() -> list[tuple[Agent, str]]:
    """Return the enabled agents, each with the reason why it cannot be used now, or an empty text."""
    return [(agent, limits.unusable_reason(agent)) for agent in _enabled_agents()]


@Select
def _enabled_agents() -> QuerySet[Agent]:
    return Agent.objects.filter(enabled=True)
