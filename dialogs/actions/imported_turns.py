"""Turns of a conversation that was held elsewhere, sent by a client of ``/v1`` or imported by a person."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone

from dialogs.models import Dialog, Event, Turn
from dominds.llm.messages import Message, Role, ToolCall

NOT_NOW = timedelta(minutes=2)  # how long ago: an imported message must not count against its sender's rate per minute
BATCH = 500


def store(dialog: Dialog, messages: Sequence[Message], sent_at: Sequence[datetime | None]) -> None:
    """Store the first turns of a new dialog."""
    turns = turns_of(dialog, messages, sent_at)
    Turn.objects.bulk_create(turns, batch_size=BATCH)
    events = (Event(dialog=dialog, seq=turn.seq, type="turn", data={"turn": turn.seq}) for turn in turns)
    Event.objects.bulk_create(events, batch_size=BATCH)
    count = len(turns)
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=count, last_position=count, last_event_seq=count)


def turns_of(
    dialog: Dialog,
    messages: Sequence[Message],
    sent_at: Sequence[datetime | None] = (),
    after: Turn | None = None,
) -> list[Turn]:
    """Make turns without storing them. A message without a time in ``sent_at`` is dated two minutes ago."""
    latest = timezone.now() - NOT_NOW
    times = [min(moment, latest) if moment else latest for moment in (*sent_at, *([None] * len(messages)))]
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    following = [later.role for _, later in pairwise(messages)]
    last = after or Turn(seq=0, position=0, round_number=1)
    return [
        Turn(
            dialog=dialog,
            seq=last.seq + number,
            position=(last.position or 0) + number,
            round_number=last.round_number,
            role=message.role.value,
            status=_status(message, following[number - 1 : number]),
            text=message.text,
            tool_calls=[_call_json(call) for call in message.tool_calls] or None,
            tool_call_id=message.tool_call_id,
            tool_name=names.get(message.tool_call_id, ""),
            created_at=times[number - 1],
        )
        for number, message in enumerate(messages, 1)
    ]


def _status(message: Message, following: Sequence[Role]) -> str:
    if message.role is Role.ASSISTANT:
        return Turn.Status.COMPLETE
    if message.role is Role.TOOL:
        return Turn.Status.OK
    return Turn.Status.ANSWERED if Role.ASSISTANT in following else Turn.Status.SUPERSEDED


def _call_json(call: ToolCall) -> dict[str, str]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
