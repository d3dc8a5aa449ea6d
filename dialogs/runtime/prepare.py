"""Preparation of rewrites while their dialogs rest, so that no message waits for a summary
(``docs/spec.md#prepared-rewrites``)."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from uuid import UUID

import structlog
from django.db import connections
from django.db.models import QuerySet

from dialogs.context import prepared
from dialogs.errors import NotFound
from dialogs.models import Dialog
from dialogs.runtime import auxiliary_calls
from dialogs.runtime.materials import Materials, materials_of
from dialogs.runtime.policy_context import context_of
from dialogs.runtime.rewrite_deadline import RewriteTooLong, within
from dialogs.runtime.rewrite_job import Job, job_for, toolbox_with_model, within_archive
from dialogs.state import State
from dialogs.store.change import LeaseLost
from dialogs.store.lease import Lease
from dominds import budgets
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.provider import ProviderError
from remediation.context import Context
from remediation.models import PreparedRewrite
from remediation.policies.ahead import rewrite_ahead
from remediation.policies.policy import Policy
from remediation.policies.rewriting import rewrite_by

log = structlog.get_logger(__name__)

AT_ONCE = 4  # threads per process; dialogs are driven by others, so no message waits for a preparation
MOST_WAITING = 100
# The wait after an answer. Nobody has read it earlier, and a program that goes on at once would cut off each call.
REST_SECONDS = 1.0
_threads = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="prepare")
_resting: dict[UUID, int] = {}  # for each dialog, the epoch of its newest run in this process


class NotPrepared(Exception):
    """Raised when a call failed or a worker claimed the dialog. ``in_vain``: the same call would fail again."""

    def __init__(self, cause: str, *, in_vain: bool) -> None:
        super().__init__(cause)
        self.in_vain = in_vain


def may_be_near(dialog: Dialog, policy: Policy, context: Context) -> bool:
    """Check without a query whether the context is more than half full, and so worth another look at rest."""
    if not prepared.is_wanted(dialog) or not policy.counts:
        return False
    return context.budget.is_near_trigger


def prepare_soon(dialog_id: UUID, epoch: int) -> None:
    """Prepare a rewrite once the dialog has rested since the run of this ``epoch``.

    If too many wait already nothing is prepared, and the rewrite is made when it is due.
    """
    if _threads._work_queue.qsize() < MOST_WAITING:
        _resting[dialog_id] = epoch
        _threads.submit(_prepare, dialog_id, epoch, time.monotonic() + REST_SECONDS)


def _prepare(dialog_id: UUID, epoch: int, due: float) -> None:
    time.sleep(max(0.0, due - time.monotonic()))  # delays no other dialog: those behind it in the queue are due later
    if _resting.get(dialog_id) != epoch:  # it was driven again, and its newer run has a task of its own
        return
    del _resting[dialog_id]
    try:
        prepare(dialog_id, epoch)
    except Exception:  # nothing is lost: the rewrite is made when it is due
        log.exception("preparing_failed", dialog_id=str(dialog_id))
    finally:
        connections.close_all()


def prepare(dialog_id: UUID, epoch: int | None = None, seconds: float = budgets.REWRITE_SECONDS.most) -> None:
    """Make and store the rewrite that a dialog at rest will soon need. With an ``epoch``, do so only if the dialog has
    not been driven since the run of that epoch.

    The work is given up when a worker claims the dialog.
    """
    dialog = _at_rest.first(dialog_id)
    if dialog is None or epoch not in (None, dialog.epoch):
        return
    try:
        with auxiliary_calls.watch_at_rest(dialog) as watch:
            _prepare_within(watch, dialog, materials_of(dialog), seconds)
    except (NotPrepared, LeaseLost, NotFound, ProviderError, UnknownModel) as cause:
        log.info("rewrite_not_prepared", dialog_id=str(dialog_id), cause=str(cause))


@Select
def _at_rest(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.whole().filter(pk=dialog_id, state=State.IDLE.value, lease_owner="")


def _prepare_within(watch: Lease, dialog: Dialog, materials: Materials, seconds: float) -> None:
    served, view, _, sizes = materials
    context = context_of(dialog, served, view, sizes)
    ahead = rewrite_ahead(served.policy, context)
    if ahead is None or prepared.is_known(dialog, served.policy.name, sizes.own):
        return
    job = job_for(dialog, materials, ahead.decision)
    job = replace(job, task=ahead.leaving_room(job.task))
    log.info("preparing_rewrite", dialog_id=str(dialog.pk), policy=job.policy.name, est_tokens=job.sizes.prompt)
    columns = prepared.columns_of(dialog, job.policy.name, job.sizes, _make_rewrite(watch, job, seconds))
    with watch.change(durable=False) as change:
        change.keeps_state = True
        if change.dialog.history_version == dialog.history_version:
            PreparedRewrite.objects.update_or_create(dialog=dialog, defaults=columns)


def _make_rewrite(watch: Lease, job: Job, seconds: float) -> prepared.Made | None:
    """Return the rewrite, or None if another try would be in vain. Raises ``NotPrepared`` if it may be tried again."""
    prompts: dict[str, str] = {}
    toolbox = toolbox_with_model(job, partial(_ask, watch, job.dialog), lambda *_: None, prompts)
    try:
        rewritten = rewrite_by(job.policy, job.task, within(toolbox, seconds))
        return prepared.Made(within_archive(rewritten), prompts)
    except (NotPrepared, RewriteTooLong) as cause:
        if isinstance(cause, NotPrepared) and not cause.in_vain:
            raise
        log.info("rewrite_not_prepared", dialog_id=str(job.dialog.pk), cause=str(cause), again=False)
        return None


def _ask(watch: Lease, dialog: Dialog, purpose: str, instructions: str, text: str) -> str:
    """Ask the model, and raise ``NotPrepared`` if it does not answer. The rewrite then asks again when it is due."""
    try:
        return auxiliary_calls.ask_at_rest(watch, dialog, purpose, instructions, text)
    except ProviderError as error:
        raise NotPrepared(str(error), in_vain=not (error.retryable or watch.lost)) from error
