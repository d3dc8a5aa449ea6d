"""Dialogs that begin with what was said elsewhere: in another dialog up to some place, or as a client tells it.

What is shared with another dialog is copied inside the database, together with its rewrites, so that none is
repeated. Nothing that happened there comes along, nor do reminders (``docs/decisions/0009-forks-copy.md``).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from django.contrib.auth.models import User
from django.db.models import Case, F, Max, OuterRef, PositiveIntegerField, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Now
from django.db.models.lookups import Exact

from dialogs.actions import imported_turns, messages
from dialogs.actions.attachments import file_digests, store_images, text_with
from dialogs.context.lineage import owner_of
from dialogs.extras.v1.exchanges import exchanges_of
from dialogs.extras.v1.history import ClientMessage, Conversation
from dialogs.extras.v1.matching.incoming import Candidate
from dialogs.models import Agent, Dialog, Event, Turn
from dialogs.state import State
from dialogs.store.copying import check_number, copy_rewrites, copy_rows
from dominds.budgets import OverBudget
from dominds.llm.messages import Message, Role, ToolCall

BATCH = 500
_UNDER_WAY = (Turn.Status.QUEUED, Turn.Status.ANSWERING, Turn.Status.SUSPENDED)
_ELEMENT = re.compile(r"\s*<([a-z][\w-]*)>.*?</\1>", re.DOTALL)
_OF_ITS_MODEL = ("provider", "model", "calibration", "calibration_fit")


def copyable(origin: Candidate | None) -> Candidate | None:
    """Return the dialog whose beginning is to be copied.

    None means that nothing is shared, or too much for one transaction: then all is stored as the client tells it, which
    is bounded.
    """
    if origin is None or not origin.shared:
        return None
    try:
        check_number(_shared_turns(origin), origin.dialog_id)
    except OverBudget:
        return None
    return origin


def _shared_turns(origin: Candidate) -> QuerySet[Turn]:
    """Return the shared turns: none that came since the dialog was compared, from a request that was faster."""
    placed = Turn.objects.filter(dialog=origin.dialog_id, position__isnull=False, seq__lte=origin.last_turn_seq)
    placed = placed.order_by("position")
    later = origin.stored[origin.shared :]
    return placed.filter(position__lt=later[0].begin) if later else placed


def fork(owner: User, agent: Agent, conversation: Conversation, origin: Candidate | None) -> Dialog:
    """Make a dialog that holds what is told, the shared part as its origin has it. Call it in a transaction."""
    before = conversation.before
    text = conversation.message or next((message.text for message in before if message.role == "user"), "")
    dialog = messages.create_dialog(owner, agent, title_of(text), origin=Dialog.Origin.KEY)
    last: Turn | None = None
    held = Dialog.objects.select_for_update(of=("self",))
    source = held.filter(pk=origin.dialog_id).first() if origin else None  # it may have expired meanwhile
    if origin is not None and source is not None:
        last = _copy(origin, source, dialog)
        if _is_another_answer(origin, conversation):
            take_place(dialog, source)
            for column in ("title", "pinned_at", "folder", "group_id"):
                setattr(dialog, column, getattr(source, column))
        numbered = [replace(message, position=number) for number, message in enumerate(before)]
        later = exchanges_of(numbered)[origin.shared :]
        before = before[later[0].begin :] if later else ()
    turns = _turns_of(dialog, before, last)
    Turn.objects.bulk_create(turns, batch_size=BATCH)
    events = (
        Event(dialog=dialog, seq=number, type="turn", data={"turn": turn.seq}) for number, turn in enumerate(turns, 1)
    )
    Event.objects.bulk_create(events, batch_size=BATCH)
    if last := turns[-1] if turns else last:
        dialog.last_turn_seq, dialog.last_position = last.seq, last.position or 0
        dialog.round_number, dialog.last_event_seq = last.round_number, len(turns)
        dialog.save()
    return dialog


def _is_another_answer(origin: Candidate, conversation: Conversation) -> bool:
    """Check whether the origin holds and answered all that is told: chat programs ask so for another answer."""
    exchanges, later = exchanges_of(conversation.whole), origin.stored[origin.shared :]
    return bool(later) and len(exchanges) == origin.shared + 1 and exchanges[-1].message == later[0].message


def take_place(dialog: Dialog, source: Dialog) -> None:
    """Archive, as versions, the dialogs that answer the same message at the same place as this one, and take
    their place.

    The same happens where a person asks for another answer on the page. Dialogs that a person opened stay in the
    list. ``source`` holds the message.
    """
    origin = dialog.forked_from_id
    kin = Q(forked_from=dialog.pk)
    if origin:
        kin |= Q(pk__in=(origin, source.pk)) | Q(forked_from=origin, own_from=dialog.own_from)
    here = When(pk__in=(origin, source.pk), then=Value(dialog.own_from))
    shown = Dialog.objects.filter(kin, owner=dialog.owner_id, origin=Dialog.Origin.KEY, archived_at=None)
    shown = shown.filter(state__in=(State.IDLE, State.FAILED)).exclude(pk=dialog.pk)
    shown = shown.annotate(place=Case(here, default=F("own_from"), output_field=PositiveIntegerField()))
    asked = Turn.objects.filter(position=OuterRef("place")).values("text")
    same = shown.filter(
        Exact(Subquery(asked.filter(dialog=OuterRef("pk"))[:1]), Subquery(asked.filter(dialog=source.pk)[:1]))
    )
    # One that another request holds now, which may wait for this one, stays as it is.
    free = same.select_for_update(skip_locked=True).values_list("pk", flat=True)
    Dialog.objects.filter(pk__in=list(free)).update(archived_at=Now())


def title_of(message: str) -> str:
    """Return the user's words without the elements that programs put before them, such as reminders."""
    begin = 0
    while element := _ELEMENT.match(message, begin):
        begin = element.end()
    return messages.shorten(message[begin:]) or messages.shorten(message)


def _copy(origin: Candidate, source: Dialog, dialog: Dialog) -> Turn:
    """Store the origin's turns up to where the dialogs part for the new one, with what belongs to them. Returns the
    last one, with the highest seq of all."""
    for column in _OF_ITS_MODEL:
        setattr(dialog, column, getattr(source, column))
    turns = _shared_turns(origin)
    last = turns.only("position", "round_number").latest("position")
    last.seq = turns.aggregate(seq=Max("seq"))["seq"]
    ended = Case(When(status__in=_UNDER_WAY, then=Value(Turn.Status.SUPERSEDED.value)), default=F("status"))
    copy_rows(turns, dialog_id=dialog.pk, status=ended, generation_id=None, client_message_id=None)
    calls = turns.exclude(tool_call_id="").values("tool_call_id")
    copy_rows(source.artifacts.filter(tool_call_id__in=calls), dialog_id=dialog.pk)
    named = file_digests(turns.filter(attachments__isnull=False).only("attachments"))
    copy_rows(source.attachments.filter(sha256__in=named), dialog_id=dialog.pk)
    copy_rows(source.rounds.filter(number__range=(2, last.round_number)), dialog_id=dialog.pk)
    copy_rewrites(source.remediations.filter(base_position__lte=last.position, undone_at__isnull=True), dialog)
    dialog.own_from = (last.position or 0) + 1
    dialog.forked_from = owner_of(source, dialog.own_from)
    Dialog.objects.filter(pk=dialog.forked_from.pk).update(fork_count=F("fork_count") + 1)
    return last


def _turns_of(dialog: Dialog, before: Sequence[ClientMessage], last: Turn | None) -> list[Turn]:
    turns = imported_turns.turns_of(dialog, [message_of(message) for message in before], after=last)
    for turn, message in zip(turns, before, strict=True):
        if message.attached:
            turn.text, turn.attachments = (
                text_with(message.text, message.attached),
                store_images(dialog, message.attached),
            )
    return turns


def message_of(message: ClientMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in message.calls)
    return Message(Role(message.role), message.text, calls, message.call_id)
