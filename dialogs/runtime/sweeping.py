"""The sweeper. Every 5 s it wakes dialogs whose wake-up was lost or whose worker vanished, and runs the extensions' due
jobs."""

import itertools
import threading
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError, close_old_connections
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from redis import RedisError

from dialogs.actions import expiry
from dialogs.extension import installed_extensions
from dialogs.models import Dialog
from dialogs.state import State
from dialogs.store import discarded_log, wakeups
from dialogs.store.lease import LEASE_SECONDS, free_leases_of
from dominds.db.prepared import Select
from dominds.worker import heartbeats

log = structlog.get_logger(__name__)

SWEEP_SECONDS = 5
APART_SECONDS = 1  # at least, between sweeps of different processes; a dead one is replaced within six
GRACE_SECONDS = 1  # a fresh wake-up may still be on its way
MOST_AT_ONCE = 1_000
LONGEST = Now() + timedelta(seconds=LEASE_SECONDS)
TIDY_EVERY = 3600 // SWEEP_SECONDS


def run(ending: threading.Event) -> None:
    """Sweep until ``ending`` is set. The first sweep comes at once, since nobody swept while this process started."""
    name = heartbeats.part_name("sweeper")
    for number in itertools.count():
        heartbeats.beat("sweeper", name)
        try:
            if number == 0 or _claim("sweeping", APART_SECONDS):
                sweep()
                for extension in installed_extensions():
                    extension.sweep()
            if number % TIDY_EVERY == 1 and _claim("tidying", TIDY_EVERY * SWEEP_SECONDS // 2):
                tidy()
        except DatabaseError as error:
            log.warning("sweep_failed", error=str(error))
        close_old_connections()
        if ending.wait(SWEEP_SECONDS):
            break
    heartbeats.leave(name)


def _claim(work: str, seconds: int) -> bool:
    """Claim some work for ``seconds``, and return False if another process has claimed it.

    This keeps a hundred workers from looking for the same rows at once. Without Redis each of them does, which is
    harmless.
    """
    try:
        return bool(wakeups.client().set(f"dominds:{work}", 1, nx=True, ex=seconds))
    except RedisError:
        return True


def run_beside(worker_before: str) -> threading.Event:
    """Sweep in a thread of this process, after freeing the leases of a worker that is known to be dead. Setting the
    returned event ends it; a failure does not.
    """
    ending = threading.Event()

    def go_on() -> None:
        before = worker_before
        while not ending.is_set():
            try:
                if before:
                    log.info("worker_gone", worker=before, leases_freed=free_leases_of(before))
                    before = ""
                run(ending)
            except Exception:
                log.exception("sweeper_failed")
                ending.wait(1)

    threading.Thread(target=go_on, name="sweeper", daemon=True).start()
    return ending


def sweep() -> int:
    """Wake dialogs that wait without a living lease, and return their number.

    A lease that ends later than a new one would is shortened: the clock was set back after it was taken.
    """
    if too_long := _leased_too_long():
        Dialog.objects.filter(pk__in=too_long, lease_until__gt=LONGEST).update(lease_until=LONGEST)
    ids = _overdue()
    for dialog_id in ids:
        wakeups.wake(dialog_id)
    if ids:
        log.info("woken", dialogs=len(ids))
    return len(ids)


@Select
def _leased_too_long() -> QuerySet[Dialog, UUID]:
    rows = Dialog.objects.filter(state=State.GENERATING.value, lease_until__gt=LONGEST)
    return rows.values_list("pk", flat=True)[:MOST_AT_ONCE]


@Select
def _overdue() -> QuerySet[Dialog, UUID]:
    overdue = Q(state=State.QUEUED.value, active_at__lt=Now() - timedelta(seconds=GRACE_SECONDS)) | Q(
        state=State.GENERATING.value, lease_until__lt=Now()
    )
    awake = Q(wake_at__isnull=True) | Q(wake_at__lte=Now())
    return Dialog.objects.filter(overdue, awake).order_by("active_at").values_list("pk", flat=True)[:MOST_AT_ONCE]


def tidy() -> None:
    """Delete what may not be kept forever, and let the extensions tidy, once an hour."""
    for extension in installed_extensions():
        extension.tidy()
    discarded_log.delete_old()
    expiry.remove_expired()
