"""Posts what is new in a request to the dialog that it belongs to, in one change.

A client sends its whole history each time, and not always as it received it. The history serves to find the dialog; it
neither rewrites nor hides what is stored there. Only what is new is stored: the message, and whatever the client puts
behind the newest exchange of the dialog.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Subquery, Value, When

from dialogs.actions import imported_turns, messages, questions
from dialogs.actions.attachments import store_images, text_with
from dialogs.context.client import client_of
from dialogs.errors import Conflict
from dialogs.extras.v1 import lifetime
from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.forks import message_of
from dialogs.extras.v1.history import LEADS, ClientMessage, Conversation, place_system
from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.placing import Held, Place
from dialogs.extras.v1.preparing import Prepared
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.transcripts import ANSWER_TO_AGENT
from dialogs.models import Client, Dialog, Generation, Question, Turn
from dialogs.runtime import client_tools
from dialogs.runtime.oversized_results import Judged
from dialogs.state import State
from dialogs.store.change import Change, open_change
from dominds.db.prepared import Select, update
from remediation.models import RemediationRun

CHANGED = "changed"  # equals no digest, so that the next request begins another epoch


def post(place: Place, prepared: Prepared) -> Run | None:
    """Post the request at this place; None where it does not belong there any more.
    Raises ``ApiError`` or ``Refusal``."""
    with transaction.atomic():
        held = place.hold()
        return _post(held, prepared, place.incoming) if held else None


def _post(held: Held, prepared: Prepared, incoming: Incoming) -> Run:
    """Store what is new and set the dialog to work. The dialog's row is locked, or nobody else knows it yet."""
    dialog, new, request = held.dialog, held.new, incoming.request
    last_seq, after_event, round_number = dialog.last_turn_seq, dialog.last_event_seq, dialog.round_number
    known = client_of(dialog) if last_seq else None
    after_generation, after_rewrite = (newest or 0 for newest in _newest.one(dialog.pk)) if last_seq else (0, 0)
    client = prepared.client
    client.dialog, client.system_messages = dialog, known.system_messages if known else None
    is_brief = prepared.is_background or not request.store
    with open_change(dialog.pk, locked=dialog) as change:
        dialog.context_policy = request.policy
        lifetime.settle(dialog, incoming.key, is_background=prepared.is_background, is_brief=is_brief)
        if request.is_asking or known is None or new.ahead:
            _store(client, is_known=known is not None)
        seq = _store_new(change, held, prepared) if request.is_asking else _store_told(change, new)
        if client.system_messages or new.system:
            _note_system(dialog, new, client.system_messages or [], last_seq)
    return Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=incoming.key.owner_id,
        seq=seq,
        queued=dialog.answering_seq != seq,
        after_event=after_event,
        after_generation=after_generation,
        after_rewrite=after_rewrite,
        round_number=round_number,
        reads_text_alone=not dialog.agent.kind.is_guided,
    )


def _store(client: Client, *, is_known: bool) -> None:
    """Store the newest request's part of the client, in place of the one before; ``first`` stays."""
    columns = ("key_id", "newest", "messages_digest", "end_user", "instructions", "tools", "required_tool", "params")
    if is_known:
        update(Client, {"dialog_id": client.dialog_id}, {name: getattr(client, name) for name in columns})
    else:
        Client.objects.bulk_create([client], update_conflicts=True, unique_fields=["dialog"], update_fields=columns)


def _store_new(change: Change, held: Held, prepared: Prepared) -> int:
    """Store the results, the message, or both. Return the seq of the message that is to be answered."""
    dialog, new = change.dialog, held.new
    if new.results:
        messages.check_answerable(dialog, prepared.unusable)
        seq = _store_results(change, prepared.results, goes_on=not new.has_message).seq
        if not new.has_message:
            return seq
    elif held.again and (message := _without_answer(dialog)):
        messages.check_answerable(dialog, prepared.unusable)
        messages.answer_again(change, message)
        return message.seq
    if dialog.answering_seq is not None and (question := _open_question(dialog)):
        _answer(change, question, new)
        return dialog.answering_seq
    return _store_message(change, new, prepared.unusable).seq


def _store_told(change: Change, new: Conversation) -> int:
    """Store what nobody is to answer. Return the seq of the newest message."""
    if new.ahead and change.dialog.state in (State.IDLE, State.FAILED):
        _store_ahead(change, new.ahead)
    newest = messages.newest_message(change.dialog)
    return newest.seq if newest else 0


def _store_results(change: Change, results: Mapping[str, Judged], *, goes_on: bool) -> Turn:
    try:
        return client_tools.accept_within(change, results, goes_on=goes_on)
    except Conflict as conflict:
        if conflict.code != "tool_calls_not_open":
            raise
        raise invalid(
            "An assistant message with tool_calls must be followed by one tool message for each of its calls; "
            "these tool messages are not that.",
            "messages",
        ) from None


def _without_answer(dialog: Dialog) -> Turn | None:
    """Return the newest message, if it ended without an answer and nothing runs."""
    message = messages.newest_message(dialog) if dialog.state in (State.IDLE, State.FAILED) else None
    return message if message and message.status in messages.WITHOUT_ANSWER else None


def _open_question(dialog: Dialog) -> Question | None:
    return dialog.questions.filter(state=Question.State.OPEN, kind=Question.Kind.QUESTION).first()


def _answer(change: Change, question: Question, new: Conversation) -> None:
    """Take the client's message for the answer that the agent waits for."""
    text, attached = new.as_one()
    if attached:
        raise invalid("The agent waits for an answer in words: files come with the next message.", "messages")
    questions.answer_within(change, question, change.dialog.owner, text)


def _store_message(change: Change, new: Conversation, unusable: str) -> Turn:
    text, attached = new.as_one()
    if new.ahead and change.dialog.state in (State.IDLE, State.FAILED):  # not while an answer is made
        text, attached = new.message, new.attached
        _store_ahead(change, new.ahead)
    whole = text_with(text, attached)
    messages.check_text(whole, may_be_blank=True)  # a model's own server takes it, too, or refuses it
    return messages.accept_message(change, text, unusable, attached)


def _store_ahead(change: Change, ahead: Sequence[ClientMessage]) -> None:
    dialog = change.dialog
    turns = imported_turns.turns_of(dialog, [message_of(message) for message in ahead])
    for turn, message in zip(turns, ahead, strict=True):
        change.turn(
            turn.role,
            turn.status,
            text=text_with(message.text, message.attached),
            attachments=store_images(dialog, message.attached),
            tool_calls=turn.tool_calls,
            tool_call_id=turn.tool_call_id,
            tool_name=turn.tool_name,
        )


def _note_system(dialog: Dialog, new: Conversation, known: list[Any], last_seq: int) -> None:
    """Keep the system messages in the middle, as the newest request has them: one without a history adds its own
    to those that are known. Where one came to stand before ``last_seq``, or is gone, what was sent has changed."""
    turns = dialog.turns.filter(Q(position__isnull=False) | Q(status=Turn.Status.QUEUED)).exclude(role=Turn.Role.NOTICE)
    role = Case(When(ANSWER_TO_AGENT, then=Value("user")), default=F("role"))
    rows = turns.order_by(F("position").asc(nulls_last=True), "seq").values_list("seq", role, "tool_call_id")
    told: list[Any] = [list(one) for one in place_system(new.system, list(rows) if new.system else ())]
    if not new.before:
        leading = [one for one in told if one[0] == LEADS]
        told = leading + [one for one in known if one[0] != LEADS] + told[len(leading) :]
    if told == known:
        return
    update(Client, {"dialog_id": dialog.pk}, {"system_messages": told or None})
    is_other = told[: len(known)] != known or any(after < last_seq for after, _ in told[len(known) :])
    if is_other and dialog.beginning:
        dialog.beginning = CHANGED


@Select
def _newest(dialog_id: UUID) -> QuerySet[Dialog, tuple[int | None, int | None]]:
    """Return the ids of its newest model call and rewrite."""
    of_dialog = (rows.filter(dialog=dialog_id).order_by("-pk") for rows in (Generation.objects, RemediationRun.objects))
    return Dialog.objects.filter(pk=dialog_id).values_list(*(Subquery(rows.values("pk")[:1]) for rows in of_dialog))
