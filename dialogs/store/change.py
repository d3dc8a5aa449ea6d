"""Changes of a dialog: a transaction that locks its row, stores what changed, numbers its events and derives its
state."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import BooleanField, Case, Exists, Func, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from dialogs.errors import NotFound
from dialogs.extension import state_hearers
from dialogs.models import Dialog, Generation, Question, Turn
from dialogs.permissions import members_of
from dialogs.state import Facts, State, state_of
from dialogs.store import charging, events, wakeups
from dialogs.store.text import storable
from dominds.db import prepared
from dominds.db.prepared import Select

_MOMENTS = ("created_at", "active_at", "lease_until")  # set by the database's clock
# Columns of a dialog that a change may write; the identity columns are never among them.
_WRITTEN = tuple(
    field.attname for field in Dialog._meta.concrete_fields if field.name not in ("id", "owner", *_MOMENTS)
)
_NOW = Now()  # one object, since statements are cached by the expressions in them
_STATES_WITHOUT_QUESTION = (State.IDLE, State.QUEUED, State.GENERATING, State.FAILED)


class LeaseLost(Exception):
    """Raised when another worker drives the dialog now, or it was erased. This one must discard what it still holds."""


class Change:
    """A dialog under change. Set its columns, add turns and events; state and storage follow when the block ends."""

    def __init__(self, dialog: Dialog, *, durable: bool) -> None:
        self.dialog = dialog
        self._durable = durable
        self.wakes = False
        self.asks_work = False  # set by changes that give the dialog work: wakes, and charges the key that asks
        self.keeps_state = False  # set by changes that cannot alter the state, to spare a query
        self.lease_seconds: int | None = None  # set by a claim: the lease runs from the database's now
        self._new_events: list[events.NewEvent] = []
        self._before = dict(vars(dialog))

    @property
    def state_before(self) -> State:
        return State(self._before["state"])

    def event(self, kind: str, /, **data: Any) -> None:
        self._new_events.append((kind, data))

    def question_event(self, question: Question) -> None:
        self.event("question", id=str(question.pk), kind=question.kind, state=question.state)

    def generation_event(self, row: Generation) -> None:
        self.event("generation", id=row.pk, purpose=row.purpose, attempt=row.attempt, outcome=row.outcome)

    def turn(self, role: str, status: str, *, text: str = "", queued: bool = False, **columns: Any) -> Turn:
        """Append a turn. Only a queued message has no place in the conversation yet."""
        self.dialog.last_turn_seq += 1
        turn = Turn(
            dialog=self.dialog,
            seq=self.dialog.last_turn_seq,
            position=None if queued else self.next_position(),
            round_number=self.dialog.round_number,
            role=role,
            status=status,
            text=storable(text),
            **columns,
        )
        prepared.insert(turn)
        self.event("turn", turn=turn.seq)
        return turn

    def act(self, by: User | None, what: str) -> None:
        """Add a line to the page about an action of somebody other than the owner. Call it where the action is done."""
        if by is not None and by.pk != self.dialog.owner_id:
            text = f"{by.get_username()} {what}."
            self.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=text, author_id=by.pk)

    def next_position(self) -> int:
        self.dialog.last_position += 1
        return self.dialog.last_position

    def end_message(self, status: str) -> None:
        """End the message under way, if there is one. Each message ends exactly once."""
        if self.dialog.answering_seq is not None:
            self.mark(self.dialog.answering_seq, status)
        self.dialog.answering_seq = None
        self.dialog.continuing = False

    def mark(self, seq: int, status: str) -> None:
        prepared.update(Turn, {"dialog_id": self.dialog.pk, "seq": seq}, {"status": status})
        self.event("turn", turn=seq)

    def take_next_message(self) -> None:
        """Begin the oldest queued message if no other is under way."""
        dialog = self.dialog
        if dialog.answering_seq is not None or dialog.continuing or dialog.all_placed:
            return
        seq = _next_queued.first(dialog.pk)
        if seq is None:
            return
        begun = {
            "status": Turn.Status.ANSWERING.value,
            "position": self.next_position(),
            "round_number": dialog.round_number,
        }
        prepared.update(Turn, {"dialog_id": dialog.pk, "seq": seq}, begun)
        self.begin_message(seq)
        self.event("turn", turn=seq)

    def begin_message(self, seq: int) -> None:
        """Answer this user turn from now on, with counters at zero."""
        dialog = self.dialog
        dialog.count_from_zero()
        dialog.answering_seq = seq
        dialog.changed_since_rewrite = True

    def finish(self) -> None:
        """Derive the state, and store events and changed columns."""
        dialog = self.dialog
        state = State(dialog.state) if self.keeps_state else state_of(self._facts())
        changed = state != dialog.state
        if changed or self._asks_more():
            dialog.state = state.value
            self.event("state", state=state.value, failure=dialog.failure)
            if state in (State.WAITING, State.SUSPENDED, State.IDLE, State.FAILED):
                poke_people(dialog)
        if self.asks_work and state in (State.QUEUED, State.GENERATING):
            dialog.key_id = charging.paying_key(dialog.pk)
        first = dialog.last_event_seq + 1
        dialog.last_event_seq += len(self._new_events)
        wakes = (self.wakes or self.asks_work) and state is State.QUEUED
        events.store(dialog, first, self._new_events, is_step=wakes or not self._durable)
        self._write()
        if wakes:
            wakeups.wake(dialog.pk)
        if changed:
            for hear in state_hearers():
                hear(self)

    def _asks_more(self) -> bool:
        """Check whether a person's request must show on pages at once, although the dialog's state stays."""
        now = vars(self.dialog)
        return any(now[name] and now[name] != self._before[name] for name in ("stop_requested", "requested_rewrite"))

    def _write(self) -> None:
        """Write the columns that have changed, since most changes touch a few of the row's many columns."""
        before, now = self._before, vars(self.dialog)
        # Compared by identity first: a damaged amount (NaN) does not equal itself, and could not be written.
        columns = {name: now[name] for name in _WRITTEN if now[name] is not before[name] and now[name] != before[name]}
        # A change that is not durable does not move the dialog in the index of recent dialogs.
        if self._new_events and self._durable:
            columns["active_at"] = _NOW
        if self.lease_seconds is not None:
            columns["lease_until"] = _after(self.lease_seconds)
        if columns:
            prepared.update(Dialog, {"id": self.dialog.pk}, columns)

    def _facts(self) -> Facts:
        """Return the facts, without a query if no question can be open and no message queued."""
        asked = any(kind == "question" for kind, _ in self._new_events)
        if asked or self._before["state"] not in _STATES_WITHOUT_QUESTION or not self.dialog.all_placed:
            return facts_of(self.dialog)
        return _facts(self.dialog, queued=False, question_kind="")


@contextmanager
def open_change(
    dialog_id: UUID,
    *,
    epoch: int | None = None,
    durable: bool = True,
    whole: bool = False,
    locked: Dialog | None = None,
) -> Iterator[Change]:
    """Change a dialog in one transaction. Raises ``NotFound``, or ``LeaseLost`` if ``epoch`` is given and the
    dialog is at another one, or gone.

    ``durable=False`` lets PostgreSQL answer before its log is on disk, for changes that a crash of the machine may
    undo. ``whole`` also reads what ``DialogQuerySet.whole`` joins. ``locked`` is the row if the caller has read and
    locked it in its own transaction, of which this becomes a part.
    """
    with transaction.atomic(savepoint=locked is None):
        dialog = locked or _lock(dialog_id, durable=durable, whole=whole)
        if dialog is None and epoch is not None:
            raise LeaseLost(f"Dialog {dialog_id} is gone, this worker holds epoch {epoch}.")
        if dialog is None:
            raise NotFound("There is no such dialog.")
        if epoch is not None and dialog.epoch != epoch:
            raise LeaseLost(f"Dialog {dialog_id} is at epoch {dialog.epoch}, this worker holds {epoch}.")
        opened = Change(dialog, durable=durable)
        yield opened
        opened.finish()


def poke_people(dialog: Dialog) -> None:
    """Announce new badges and a new navigation to everybody who takes part."""
    members = () if dialog.group_id is None else members_of(dialog.group_id)
    for person in {dialog.owner_id, *members}:
        wakeups.poke_user(person)


def _lock(dialog_id: UUID, *, durable: bool, whole: bool) -> Dialog | None:
    """Return the locked row, with the facts about its lease that only the database's clock can tell."""
    relaxed = not durable and connection.vendor == "postgresql"
    return _LOCKS[relaxed, whole].first(dialog_id)


def _locking_query(*, relaxed: bool, whole: bool) -> Select[Dialog]:
    """Build the locking query. ``relaxed`` adds SET LOCAL of synchronous_commit, which saves a round trip."""
    annotations: dict[str, Any] = {
        "lease_over": Case(When(lease_until__lt=Now(), then=True), default=False, output_field=BooleanField()),
        "awake": Case(When(wake_at__gt=Now(), then=False), default=True, output_field=BooleanField()),
    }
    if relaxed:
        setting = (Value("synchronous_commit"), Value("off"), Value(True))
        annotations["relaxed"] = Func(*setting, function="set_config", output_field=TextField())

    def lock(dialog_id: UUID) -> QuerySet[Dialog]:
        rows = Dialog.objects.select_for_update(of=("self",)).filter(pk=dialog_id).defer(*_MOMENTS)
        rows = rows.annotate(**annotations)
        return rows.whole() if whole else rows

    return Select(lock)


_LOCKS = {
    (relaxed, whole): _locking_query(relaxed=relaxed, whole=whole)
    for relaxed in (False, True)
    for whole in (False, True)
}


@cache
def _after(seconds: int) -> CombinedExpression:
    return _NOW + timedelta(seconds=seconds)


def facts_of(dialog: Dialog) -> Facts:
    queued, kind = _queue_and_question.one(dialog.pk)
    return _facts(dialog, queued=queued, question_kind=kind or "")


@Select
def _next_queued(dialog_id: UUID) -> QuerySet[Turn, int]:
    return Turn.objects.queued().filter(dialog_id=dialog_id).order_by("seq").values_list("seq", flat=True)[:1]


@Select
def _queue_and_question(dialog_id: UUID) -> QuerySet[Dialog, Any]:
    queued = Exists(Turn.objects.queued().filter(dialog=OuterRef("pk")))
    question = Subquery(Question.objects.filter(dialog=OuterRef("pk"), state="open").values("kind")[:1])
    return Dialog.objects.filter(pk=dialog_id).values_list(queued, question)


def _facts(dialog: Dialog, *, queued: bool, question_kind: str) -> Facts:
    return Facts(
        closed=dialog.closed_at is not None,
        open_question_kind=question_kind,
        leased=dialog.is_leased,
        owes_work=queued or dialog.has_work,
        failed=bool(dialog.failure),
    )
