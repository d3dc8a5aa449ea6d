"""People's requests to rewrite what the model sees, which ``dialogs.runtime.rewrite`` performs, and the undoing of
rewrites and clears."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.actions import rounds
from dialogs.context.limits import health_of, thresholds_of
from dialogs.context.view import items_before, standing_run
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.models import Dialog, Round, Turn
from dialogs.state import State
from dialogs.store.change import open_change
from remediation.decisions import BY_HAND, UNDO_CLEAR
from remediation.models import RemediationRun
from remediation.policies.policy import Policy
from remediation.policies.registry import by_hand, with_verb
from remediation.policies.requested import CLEAR, MILESTONE

log = structlog.get_logger(__name__)


def request(dialog_id: UUID, verb: str, user: User) -> str:
    """Request a rewrite by hand. It begins at once if the dialog is idle, and otherwise after the generation."""
    policy_with(verb)
    return _request(dialog_id, verb, user)


def _request(dialog_id: UUID, verb: str, user: User) -> str:
    with open_change(dialog_id) as change:
        _check_rewritable(change.dialog)
        if change.dialog.requested_rewrite not in ("", verb):
            raise Conflict("rewrite_pending", f"A rewrite is under way already: {change.dialog.requested_rewrite}.")
        change.dialog.requested_rewrite = verb
        if change.dialog.state == State.FAILED:
            change.dialog.wake_at = None  # the wait of the failed message does not hold for the rewrite
        change.asks_work = True
    log.info("rewrite_requested", dialog_id=str(dialog_id), verb=verb, by=user.get_username())
    return change.dialog.state


def complete_milestone(dialog_id: UUID, user: User) -> str:
    """Declare a milestone complete in a person's name. The agent then goes on from a handover summary."""
    with open_change(dialog_id) as change:
        _check_rewritable(change.dialog)
        change.event("notice", text=f"Milestone completed, says {user.get_username()}.")
    return _request(dialog_id, MILESTONE, user)


def clear(dialog_id: UUID, reminder_content: str, user: User) -> str:
    """Request a new round that begins with this re-entry package, after the generation if one runs."""
    package = rounds.checked_package(reminder_content)
    with open_change(dialog_id) as change:
        _check_rewritable(change.dialog)
        change.act(user, "cleared the agent's mind")
        # A damaged dialog is cleared here, since a worker would have to read it first.
        if change.dialog.damaged_at and not change.dialog.is_leased:
            rounds.clear_within(change, package, cause=Round.Cause.PERSON)
            change.dialog.failure, change.dialog.damaged_at = "", None
            return change.dialog.state
        change.dialog.requested_rewrite, change.dialog.requested_package = CLEAR, package
        change.wakes = True
    log.info("clear_requested", dialog_id=str(dialog_id), by=user.get_username())
    return change.dialog.state


def _check_rewritable(dialog: Dialog) -> None:
    if dialog.closed_at is not None:
        raise Conflict("dialog_closed", "The dialog is closed; its context can no longer change.")
    if dialog.state == State.SUSPENDED:
        raise Conflict("dialog_suspended", "The dialog is suspended: take one of the exits of its question.")
    if dialog.state == State.WAITING:
        raise Conflict("dialog_waiting", "The dialog waits for an answer to its question. Answer or cancel it first.")


def policy_with(verb: str) -> Policy:
    """Return the policy that rewrites by this verb."""
    policy = with_verb(verb)
    if policy is None:
        known = (policy.by_hand.verb for policy in by_hand() if policy.by_hand)
        raise Invalid(f"There is no rewrite {verb!r}. Choose one of: {', '.join(known)}.")
    return policy


def undo(run_id: int, user: User, dialog_id: UUID | None = None) -> RemediationRun:
    """Undo the newest rewrite in force: the model sees again what it removed. Earlier ones can be undone next."""
    run = RemediationRun.objects.filter(pk=run_id, **({"dialog_id": dialog_id} if dialog_id else {})).first()
    if run is None:
        raise NotFound("There is no such rewrite.")
    thresholds = thresholds_of(run.dialog)  # before the row is locked: the model's server may be asked
    with open_change(run.dialog_id) as change:
        dialog = change.dialog
        if dialog.is_leased:
            raise Conflict("dialog_busy", "The dialog is generating. Undo when it has finished.")
        _check_rewritable(dialog)
        if run.undone_at is not None:
            raise Conflict("not_newest", "This rewrite was undone already.")
        newest = standing_run(dialog)
        if newest is None or newest.pk != run_id:
            raise Conflict(
                "not_newest", "Only the newest rewrite of the current round can be undone. Undo later ones first."
            )
        change.act(user, "undid a rewrite")
        RemediationRun.objects.filter(pk=run_id).update(undone_at=timezone.now(), undone_by=user)
        rounds.forget_report(dialog)
        dialog.changed_since_rewrite = False  # else the policy would at once repeat the rewrite
        change.event("remediation", **summary_of(run, undone=True))
        change.event("health", **health_of(dialog, thresholds))
    run.refresh_from_db()
    return run


def undoable_clear(dialog: Dialog) -> Round | None:
    """Return the clear that began the current round; None if another cause did, or a rewrite is in force."""
    if dialog.round_number == 1 or standing_run(dialog):
        return None
    return dialog.rounds.filter(number=dialog.round_number, cause__in=Round.CLEARS).first()


def undo_clear(dialog_id: UUID, user: User, size_of: Callable[[Dialog], int | None]) -> RemediationRun:
    """Undo the newest clear: a new round begins, in which the model sees the turns from before the clear again, and
    then those since. ``size_of`` estimates the next request, before and after.

    The new round begins with a rewrite, and undoing that brings the clear back.
    """
    before = size_of(Dialog.objects.get(pk=dialog_id)) or 0
    run = _restore(dialog_id, user, before)
    run.est_after = size_of(Dialog.objects.get(pk=dialog_id)) or 0  # outside of a transaction, since it counts tokens
    with open_change(dialog_id) as change:
        run.save(update_fields=["est_after"])
        change.event("remediation", **summary_of(run))
    return run


def _restore(dialog_id: UUID, user: User, before: int) -> RemediationRun:
    with open_change(dialog_id) as change:
        dialog = change.dialog
        if dialog.is_leased:
            raise Conflict("dialog_busy", "The dialog is generating. Undo when it has finished.")
        _check_rewritable(dialog)
        cleared = undoable_clear(dialog)
        if cleared is None:
            raise Conflict("not_newest", "Only the newest clear can be undone. Undo later rewrites of its round first.")
        change.act(user, "undid a clear")
        items = items_before(dialog)
        said = dialog.turns.filter(round_number=cleared.number, position__isnull=False).exclude(role=Turn.Role.NOTICE)
        dialog.round_number += 1
        Round.objects.create(
            dialog=dialog,
            number=dialog.round_number,
            cause=Round.Cause.UNDO,
            package=cleared.package,
            carried=[*cleared.carried, *said.order_by("position").values_list("seq", flat=True)],
        )
        run = RemediationRun.objects.create(
            dialog=dialog,
            round_number=dialog.round_number,
            policy=UNDO_CLEAR,
            reason=BY_HAND,
            est_before=before,
            est_after=before,
            base_position=dialog.last_position,
            view=items,
            removed=[],
        )
        rounds.forget_report(dialog)
        dialog.changed_since_rewrite = False  # else a policy would at once remove again what came back
        change.event("round", number=dialog.round_number, cause=Round.Cause.UNDO)
        change.event("health", **health_of(dialog))
    return run


def summary_of(run: RemediationRun, undone: bool = False) -> dict[str, Any]:
    """Return the data of a ``remediation`` event."""
    return {
        "id": run.pk,
        "policy": run.policy,
        "est_before": run.est_before,
        "est_after": run.est_after,
        "removed": len(run.removed),
        "undone": undone,
    }
