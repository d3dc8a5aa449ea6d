"""Branches of a dialog: a fork at a turn, another answer, another wording (``docs/spec.md#branches``).

Each branch is a dialog of its own that begins with copies of what came before. The original dialog does not change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from django.contrib.auth.models import User
from django.db.models import Case, F, Max, Q, QuerySet, Value, When
from django.utils import timezone

from dialogs.actions import messages, model_choice
from dialogs.actions.attachments import text_typed
from dialogs.context.lineage import FORK, owner_of
from dialogs.errors import Conflict, NotFound
from dialogs.models import Dialog, Turn
from dialogs.state import State
from dialogs.store.change import Change, open_change
from dialogs.store.copying import check_number, copy_rewrites, copy_rows
from dominds.budgets import OverBudget

UNENDED = (Turn.Status.QUEUED, Turn.Status.ANSWERING, Turn.Status.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Branch:
    """The place where a person branches off. The same ``request_id`` gets the same dialog; an empty one, a new one."""

    dialog_id: UUID
    seq: int
    by: User
    request_id: str = ""


Begin = Callable[[UUID, Dialog, Turn], Dialog]  # makes the dialog with this id from the origin and the turn


def fork(branch: Branch) -> Dialog:
    """Make a dialog that begins with everything up to this turn, and waits for a message."""

    def begin(made_id: UUID, origin: Dialog, turn: Turn) -> Dialog:
        made = _copy(made_id, branch.by, origin, _end_of(turn), turn.round_number)
        made.title = f"{made.title.removesuffix(FORK)[: messages.LONGEST_TITLE - len(FORK)]}{FORK}"
        made.save(update_fields=["title"])
        return made

    return _make(branch, "fork", begin)


def regenerate(branch: Branch, provider: str = "", model: str = "") -> Dialog:
    """Answer the message of this turn again, in a new dialog that ends with it, and keeps the ``model`` if one is
    given.
    """
    reason = model_choice.unusable_with(branch.dialog_id, (provider, model) if model else None)

    def begin(made_id: UUID, origin: Dialog, turn: Turn) -> Dialog:
        message = _message_of(turn)
        made = _copy(made_id, branch.by, origin, message.position or 0, message.round_number)
        with open_change(made.pk) as change:
            _check_may_begin(change.dialog, reason)
            if model:
                model_choice.move(change.dialog, provider, model)
            change.mark(message.seq, Turn.Status.ANSWERING)
            change.begin_message(message.seq)
            change.asks_work = True
        return made

    return _make(branch, f"regenerate {provider}/{model}", begin, replaces=True)


def edit(branch: Branch, text: str) -> Dialog:
    """Send this message, with its files, in another wording, in a new dialog that begins with the turns before it. An
    answer under way is stopped, since the new wording replaces its message.
    """
    messages.check_text(text)
    reason = model_choice.unusable_with(branch.dialog_id)

    def begin(made_id: UUID, origin: Dialog, turn: Turn) -> Dialog:
        if turn.role != Turn.Role.USER:
            raise Conflict("not_a_message", f"Turn {turn.seq} is no message of a person, and only those can be edited.")
        made = _copy(made_id, branch.by, origin, (turn.position or 0) - 1, turn.round_number)
        with open_change(made.pk) as change:
            _check_may_begin(change.dialog, reason)
            if not made.last_position and origin.title == messages.shorten(turn.text):
                change.dialog.title = ""  # so that it gets one from the new wording
            files = turn.text[len(text_typed(turn.text, turn.attachments)) :]
            messages.check_text(text + files)
            message = messages.accept_within(change, text, author=branch.by)
            if turn.attachments:
                Turn.objects.filter(pk=message.pk).update(attachments=turn.attachments, text=message.text + files)
        return made

    return _make(branch, "edit", begin, replaces=True, stops=True)


def _make(branch: Branch, kind: str, begin: Begin, *, replaces: bool = False, stops: bool = False) -> Dialog:
    """Make the branch, once for each ``request_id``.

    With ``replaces`` it takes the place of its origin in the list. With ``stops`` the work of the origin ends, and its
    waiting messages move to the branch; only the owner moves them.
    """
    made_id = _id_of(branch, kind)
    try:
        check_number(Turn.objects.filter(dialog=branch.dialog_id, seq__lte=branch.seq), branch.dialog_id)
    except OverBudget as error:
        raise Conflict("fork_too_large", str(error)) from None
    with open_change(branch.dialog_id) as change:
        change.keeps_state = True
        origin = change.dialog
        made = Dialog.objects.filter(pk=made_id, owner=branch.by).first()
        if made is not None:
            return made
        is_busy = origin.state in (State.QUEUED, State.GENERATING)
        if is_busy and not (stops and (origin.all_placed or origin.owner_id == branch.by.pk)):
            raise Conflict("dialog_busy", f"The dialog is {origin.state}. Branch off when it has finished, or stop it.")
        turn = origin.turns.filter(seq=branch.seq, position__isnull=False).exclude(role=Turn.Role.NOTICE).first()
        if turn is None:
            raise NotFound(f"There is no turn {branch.seq} in this dialog to branch off at.")
        made = begin(made_id, origin, turn)
        if is_busy:
            change.keeps_state = False
            _bring_waiting(change, made)
            messages.stop_in(change, branch.by)
        Dialog.objects.filter(forks=made).update(fork_count=F("fork_count") + 1)
        is_over = is_busy or origin.state in (State.IDLE, State.FAILED)
        if replaces and made.owner_id == origin.owner_id and is_over:
            origin.archived_at = timezone.now()
            Dialog.objects.filter(pk=made.pk).update(
                pinned_at=origin.pinned_at, folder=origin.folder, group=origin.group_id
            )
    return made


def _bring_waiting(change: Change, made: Dialog) -> None:
    """Move the messages that wait in the origin to its branch, behind the message that begins it."""
    waiting = list(change.dialog.turns.queued().select_related("author").order_by("seq"))
    if not waiting:
        return
    with open_change(made.pk) as along:
        along.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=_came_along(len(waiting)))
        for turn in waiting:
            moved = messages.accept_within(along, turn.text, author=turn.author, tool_name=turn.tool_name)
            Turn.objects.filter(pk=moved.pk).update(attachments=turn.attachments)
            change.mark(turn.seq, Turn.Status.SUPERSEDED)


def _came_along(number: int) -> str:
    return (
        "The message that waited came along, and is answered after this one."
        if number == 1
        else f"The {number} messages that waited came along, and are answered after this one."
    )


def _id_of(branch: Branch, kind: str) -> UUID:
    if not branch.request_id:
        return uuid4()
    return uuid5(NAMESPACE_URL, f"{branch.by.pk} {branch.dialog_id} {branch.seq} {kind} {branch.request_id}")


def _check_may_begin(dialog: Dialog, reason: str) -> None:
    if reason:
        raise Conflict("agent_unusable", reason)
    messages.check_rate(dialog)


def _message_of(turn: Turn) -> Turn:
    """Return the turn if it is a message, else the message that it answers."""
    earlier = _placed_turns(turn).filter(role=Turn.Role.USER, position__lte=turn.position)
    message = earlier.order_by("-position").first()
    if message is None:
        raise Conflict(
            "nothing_to_regenerate", f"No message stands before turn {turn.seq}, so nothing can be answered."
        )
    return message


def _end_of(turn: Turn) -> int:
    """Return the position at which a turn is complete.

    A reply with tool calls is complete with all their results, and so is each of these: a call without a result would
    run again in the fork.
    """
    reply = turn
    if turn.role == Turn.Role.TOOL:
        replies = _placed_turns(turn).filter(role=Turn.Role.ASSISTANT, position__lt=turn.position)
        reply = replies.order_by("-position").first() or turn
    calls = {call["id"] for call in reply.tool_calls or ()}
    if not calls:
        return turn.position or 0
    after = _placed_turns(turn).filter(position__gt=reply.position)
    spoken = after.filter(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]).order_by("position").first()
    results = after.filter(role=Turn.Role.TOOL, tool_call_id__in=calls)
    if spoken is not None:
        results = results.filter(position__lt=spoken.position)
    positions = dict(results.values_list("tool_call_id", "position"))
    if len(positions) < len(calls):
        raise Conflict("call_open", "A tool call of this turn waits for its result. Fork at an earlier turn, or later.")
    return max(position or 0 for position in positions.values())


def _placed_turns(turn: Turn) -> QuerySet[Turn]:
    return Turn.objects.filter(dialog=turn.dialog_id, position__isnull=False)


def _copy(made_id: UUID, owner: User, origin: Dialog, position: int, round_number: int) -> Dialog:
    """Copy a dialog up to this position: turns, rounds, rewrites with their archive, reminders and recall choices.
    Cost, reports and questions stay in the original.
    """
    turns = origin.turns.filter(position__lte=position)
    made: Dialog = Dialog.objects.create(
        pk=made_id,
        owner=owner,
        agent_id=origin.agent_id,
        title=origin.title,
        provider=origin.provider,
        model=origin.model,
        round_number=round_number,
        last_turn_seq=turns.aggregate(last=Max("seq"))["last"] or 0,
        last_position=position,
        context_policy=origin.context_policy,
        calibration=origin.calibration,
        calibration_fit=origin.calibration_fit,
        forked_from=owner_of(origin, position + 1),
        own_from=position + 1,
    )
    copy_rows(origin.rounds.filter(number__lte=round_number), dialog_id=made_id)
    copy_rows(turns, dialog_id=made_id, **_as_history(position))
    copy_rows(origin.attachments.all(), dialog_id=made_id)
    copy_rows(origin.recall_choices.filter(seq__in=turns.values("seq")), dialog_id=made_id)
    copy_rows(origin.reminders.all(), dialog_id=made_id)
    standing = origin.remediations.filter(base_position__lte=position, round_number__lte=round_number, undone_at=None)
    copy_rewrites(standing, made)
    return made


def _as_history(position: int) -> dict[str, Any]:
    """Return columns for copied turns: none is under way or waits for an answer, and a last message was stopped."""
    ended = Q(status__in=UNENDED) | Q(position=position) & (Q(role=Turn.Role.USER) | Q(status=Turn.Status.INTERRUPTED))
    return {
        "status": Case(When(ended, then=Value(Turn.Status.STOPPED.value)), default=F("status")),
        **dict.fromkeys(["generation_id", "provider_items", "client_message_id", "liked"]),
    }
