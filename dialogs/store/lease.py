"""Leases of dialogs: one worker at a time drives a dialog, under a growing epoch on its row.

One thread of a worker process renews its leases. The epoch is checked inside every transaction that the driver commits
(``change.open_change``), so a worker that was paused past its lease can no longer write. Deadlines on the row use the
database's clock; local ones use the monotonic clock.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError, close_old_connections, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from dialogs.errors import NotFound
from dialogs.models import Dialog, Generation
from dialogs.state import State
from dialogs.store import wakeups
from dialogs.store.change import Change, LeaseLost, open_change
from dominds.db.prepared import Select
from dominds.worker.seats import seats

log = structlog.get_logger(__name__)

LEASE_SECONDS = 12
RENEW_SECONDS = 4
POLL_SECONDS = 0.25
FENCE_SECONDS = LEASE_SECONDS - 2  # a worker stops by itself after so long without a renewal
MAX_CRASHES = 3


@dataclass(eq=False)
class Lease:
    """The right to drive one dialog.

    ``stopping`` is set when a person has pressed stop, ``lost`` when another worker has taken over or this one is
    draining. Either calls the ``interrupt`` of ``interruptible``.
    """

    dialog_id: UUID
    epoch: int
    claimed: Dialog | None = None  # the row as claimed, with agent and client; None once it was read
    answering_seq: int | None = None  # the message under way, for which alone a stop counts
    stopping: bool = False
    lost: bool = False
    renewed_at: float = field(default_factory=time.monotonic)
    deadline: float | None = None  # monotonic seconds
    released: bool = False  # set by the last commit of the run
    _interrupt: Callable[[], None] | None = None

    @property
    def holds(self) -> bool:
        return not (self.lost or self.released) and time.monotonic() - self.renewed_at < FENCE_SECONDS

    @contextmanager
    def interruptible(self, interrupt: Callable[[], None], deadline: float | None = None) -> Iterator[None]:
        """Have stop, loss of the lease and the monotonic ``deadline`` call ``interrupt`` while the block runs."""
        self._interrupt, self.deadline = interrupt, deadline
        try:
            if self.stopping or self.lost:
                interrupt()
            yield
        finally:
            self._interrupt, self.deadline = None, None

    def read_dialog(self) -> Dialog:
        """Return the current row. The first call returns the row of the claim. Raises ``LeaseLost``."""
        claimed, self.claimed = self.claimed, None
        if (dialog := claimed or _whole.first(self.dialog_id)) is None:
            raise LeaseLost(f"Dialog {self.dialog_id} is gone, this worker holds epoch {self.epoch}.")
        return dialog

    def work_for(self, answering_seq: int | None) -> None:
        """Work for this message from now on. A stop that was pressed for the message before is void."""
        self.answering_seq, self.stopping = answering_seq, False

    def note_stop(self, answering_seq: int | None, *, stop: bool) -> None:
        """Take over the stop flag of a row, which may be older than this worker's last commit."""
        self.stopping = self.stopping or (stop and answering_seq == self.answering_seq)

    def release_later(self) -> None:
        """End the run as after a drain: the lease is freed when the claim ends, and the next woken worker goes on."""
        self.lost = True

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until stop is pressed or the lease is lost."""
        until = time.monotonic() + seconds
        connection.close()
        with seats.without_seat():
            while time.monotonic() < until and self.holds and not self.stopping:
                time.sleep(min(0.1, max(0.0, until - time.monotonic())))

    def interrupt(self) -> None:
        if (interrupt := self._interrupt) is not None:
            interrupt()

    def change(self, *, durable: bool = True) -> AbstractContextManager[Change]:
        """Open a transaction that commits only while this lease is current."""
        return open_change(self.dialog_id, epoch=self.epoch, durable=durable)


@Select
def _whole(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.filter(pk=dialog_id).whole()


def worker_name() -> str:
    return os.environ.get("DOMINDS_WORKER") or f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def claim(dialog_id: UUID) -> Iterator[Lease | None]:
    """Take the lease if there is work and nobody holds it, or return ``None``, as after a repeated wake-up."""
    try:
        lease = None if keeper.draining else _take(dialog_id)
    except NotFound:  # the dialog was removed after it was woken
        lease = None
    if lease is None:
        yield None
        return
    keeper.add(lease)
    ended_well = False
    try:
        yield lease
        ended_well = True
    finally:
        keeper.remove(lease)
        _give_back(lease, crashed=not ended_well)


def _take(dialog_id: UUID) -> Lease | None:
    with open_change(dialog_id, durable=False, whole=True) as change:
        dialog = change.dialog
        if not _is_claimable(dialog):
            change.keeps_state = True
            return None
        if dialog.is_leased:  # the worker that held it has vanished
            _end_crashed(change)
            dialog.crashes += 1
        dialog.epoch += 1
        dialog.lease_owner, dialog.wake_at = worker_name(), None
        change.lease_seconds = LEASE_SECONDS
        change.take_next_message()
    return Lease(dialog_id, dialog.epoch, dialog)


def _is_claimable(dialog: Dialog) -> bool:
    """Check whether the lease may be taken. ``lease_over`` and ``awake`` follow the database's clock."""
    if dialog.state not in (State.QUEUED, State.GENERATING) or not dialog.awake:
        return False
    return not dialog.is_leased or dialog.lease_over


def _end_crashed(change: Change) -> None:
    """End what a vanished worker left running, since nothing else will."""
    error = "The worker went away during this attempt."
    end_running(change, Generation.Outcome.CRASHED, error_kind="crashed", error=error)


def end_running(change: Change, outcome: str, **columns: Any) -> None:
    """End the running call from outside, because its worker is gone or may no longer write."""
    for generation in Generation.objects.filter(dialog=change.dialog, outcome=Generation.Outcome.RUNNING):
        ended = {"outcome": outcome, **columns}
        for name, value in ended.items():
            setattr(generation, name, value)
        generation.save(update_fields=list(ended))
        change.generation_event(generation)


def release(change: Change) -> None:
    """End the lease within a change, so that the last commit of a run also releases it."""
    change.dialog.lease_owner = ""
    change.dialog.stop_requested = False
    change.dialog.crashes = 0


def _give_back(lease: Lease, *, crashed: bool) -> None:
    """Leave a dialog whose run ended without releasing it to the next worker.

    After a drain that happens at once. After an error it waits for the sweeper, so that a dialog that always fails
    cannot keep a worker busy.
    """
    if lease.released:
        return
    if Dialog.objects.filter(pk=lease.dialog_id, epoch=lease.epoch).exclude(lease_owner="").exists():
        # Since that query another worker may have claimed the dialog, or somebody deleted it.
        with suppress(LeaseLost), open_change(lease.dialog_id, epoch=lease.epoch) as change:
            change.dialog.lease_owner = ""
            change.dialog.crashes += crashed
            _end_crashed(change)
            change.wakes = not crashed


def free_leases_of(owner: str) -> int:
    """Free the leases of a worker that is known to be dead, and wake its dialogs. The supervisor calls this.

    A row that is locked now is left alone: its lease runs out, and the sweeper wakes it.
    """
    with transaction.atomic():
        rows = Dialog.objects.select_for_update(skip_locked=True).filter(lease_owner=owner)
        held = list(rows.order_by("active_at").values_list("pk", flat=True))
        Dialog.objects.filter(pk__in=held).update(lease_until=Now() - timedelta(seconds=1))
        for dialog_id in held:
            wakeups.wake(dialog_id)
    return len(held)


class Keeper:
    """A thread of the process that renews its leases, reads the stop flags, and closes streams that must end."""

    def __init__(self) -> None:
        self.draining = False
        self._leases: set[Lease] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._leases.add(lease)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
                self._thread.start()

    def remove(self, lease: Lease) -> None:
        with self._lock:
            self._leases.discard(lease)

    def drain(self) -> None:
        """Claim nothing more and give every lease up, because the worker was asked to end."""
        self.draining = True
        for lease in self._held_leases():
            lease.lost = True
            lease.interrupt()

    def _held_leases(self) -> list[Lease]:
        with self._lock:
            return list(self._leases)

    def _run(self) -> None:
        while True:
            time.sleep(POLL_SECONDS)
            leases = self._held_leases()
            if not leases:
                continue
            try:
                self._follow_rows(leases)
            except DatabaseError as error:
                log.warning("lease_renewal_failed", error=str(error), leases=len(leases))
                connection.close()
            close_old_connections()
            self._enforce(leases)

    def _follow_rows(self, leases: list[Lease]) -> None:
        """Note stops and lost leases by the rows, and renew the leases once one of them is due."""
        ids = [lease.dialog_id for lease in leases]
        started = time.monotonic()
        current = Dialog.objects.filter(pk__in=ids).values_list("pk", "epoch", "answering_seq", "stop_requested")
        rows = {pk: (epoch, answering_seq, stop) for pk, epoch, answering_seq, stop in current}
        gone: tuple[int, int | None, bool] = (-1, None, False)
        held: dict[UUID, Lease] = {}
        for lease in leases:
            epoch, answering_seq, stop = rows.get(lease.dialog_id, gone)
            if epoch == lease.epoch:
                held[lease.dialog_id] = lease
            else:
                lease.lost = True
            lease.note_stop(answering_seq, stop=stop)
        if any(started - lease.renewed_at >= RENEW_SECONDS for lease in held.values()):
            for dialog_id in _renew(held):
                held[dialog_id].renewed_at = started

    @staticmethod
    def _enforce(leases: list[Lease]) -> None:
        now = time.monotonic()
        for lease in leases:
            late = lease.deadline is not None and now > lease.deadline
            if lease.stopping or late or not lease.holds:
                lease.interrupt()


@transaction.atomic
def _renew(ids: Collection[UUID]) -> Collection[UUID]:
    """Renew this worker's leases on those of these dialogs whose rows nobody has locked, and return their ids.

    The others are renewed next time. Waiting for a locked row while holding others could deadlock with a change of two
    dialogs, such as a report to the dialog above.
    """
    ours = Dialog.objects.filter(pk__in=ids, lease_owner=worker_name())
    free = list(ours.select_for_update(skip_locked=True).values_list("pk", flat=True))
    Dialog.objects.filter(pk__in=free).update(lease_until=Now() + timedelta(seconds=LEASE_SECONDS))
    return free


keeper = Keeper()
