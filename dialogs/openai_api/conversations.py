"""Which dialog a request goes on with, and posting what is new in it.

A client sends its whole history each time. It goes on with a dialog only when it tells exactly what that dialog holds, at its
head; anything else becomes a dialog of its own. So stored history can neither be rewritten nor hidden from here, and storage
grows by what is new.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import orjson
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Subquery
from django.utils import timezone

from dialogs.actions import messages, questions
from dialogs.actions.questions import ASK_HUMAN
from dialogs.context.limits import unusable_reason
from dialogs.context.view import unresolved_calls
from dialogs.errors import Conflict
from dialogs.models import Agent, ApiKey, Client, Dialog, Event, Generation, Question, Turn
from dialogs.openai_api import lifetime, options
from dialogs.openai_api.errors import ApiError, invalid
from dialogs.openai_api.history import Call, ClientMessage, Conversation, conversation_of, same
from dialogs.openai_api.parsing import ChatRequest
from dialogs.runtime import client_tools, outcomes
from dialogs.state import State
from dialogs.tools.registry import tools_of
from remediation.models import RemediationRun

CANDIDATES = 20
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)


@dataclass(frozen=True, slots=True)
class Run:
    """One message under way. Its events come after ``after_event``, its model calls after ``after_generation``, what is done
    about the context after ``after_rewrite`` and the round ``round_number``."""

    dialog_id: UUID
    agent_id: str
    user_id: int
    seq: int
    queued: bool
    after_event: int
    after_generation: int
    after_rewrite: int = 0
    round_number: int = 1
    is_proxy: bool = False


def begin(key: ApiKey, request: ChatRequest) -> Run:
    """Post what is new in the request to the dialog that it belongs to. Raises ``ApiError`` or ``Refusal``."""
    agent = Agent.objects.filter(pk=request.model, enabled=True).first()
    if agent is None:
        raise ApiError(404, "model_not_found", f"The model {request.model!r} does not exist.", param="model")
    if reason := unusable_reason(agent):
        raise Conflict("agent_unusable", reason)
    _check_names(agent, request)
    told = conversation_of(request.messages)
    if request.dialog_id is not None:
        return _named(key, agent, request, told)
    return (
        _holding_calls(key, agent, request, told)
        or _found(key, agent, request, told)
        or _forked(key, agent, request, told)
    )


def _check_names(agent: Agent, request: ChatRequest) -> None:
    taken = tools_of(agent)
    for index, tool in enumerate(request.tools):
        if tool["name"] in taken:
            raise invalid(
                f"The agent has a tool named {tool['name']!r} of its own. Rename yours.",
                f"tools[{index}].function.name",
            )


def _named(key: ApiKey, agent: Agent, request: ChatRequest, told: Conversation) -> Run:
    """The client says which dialog it means; what it says of the past does not matter then."""
    assert request.dialog_id is not None
    dialog = messages.owned(request.dialog_id, key.owner)
    if dialog.agent_id != agent.pk:
        raise invalid(f"Dialog {dialog.pk} is with the agent {dialog.agent_id!r}, not {agent.pk!r}.", "model")
    with transaction.atomic():
        return _post(_locked(dialog.pk), key, request, told)


def _holding_calls(key: ApiKey, agent: Agent, request: ChatRequest, told: Conversation) -> Run | None:
    """Results belong to the dialog that holds their calls, whatever its state: a client may send them at once."""
    generations = {outcomes.generation_of_call(said.call_id) for said in told.results}
    if len(generations) != 1 or None in generations:
        return None
    held = Dialog.objects.filter(generations__in=generations, client__key=key, agent=agent)
    dialog_id = held.values_list("pk", flat=True).first()
    if dialog_id is None:
        return None
    with transaction.atomic():
        dialog = _locked(dialog_id)
        if {call.id for call in unresolved_calls(dialog)} != {said.call_id for said in told.results}:
            return None  # answered long ago: the client goes on from an older place of the conversation
        return _post(dialog, key, request, told)


def _found(key: ApiKey, agent: Agent, request: ChatRequest, told: Conversation) -> Run | None:
    if not any(said.role == "assistant" for said in told.before):
        return None
    known = Client.objects.filter(key=key, said=told.digest_before, dialog__agent=agent, dialog__state__in=AT_HEAD)
    ids = known.order_by("-dialog__active_at").values_list("dialog_id", flat=True)[:CANDIDATES]
    for dialog_id in list(ids):
        with transaction.atomic():
            dialog = _locked(dialog_id)
            if _is_at(dialog, told):
                return _post(dialog, key, request, told)
    return None


def _locked(dialog_id: UUID) -> Dialog:
    return Dialog.objects.select_for_update(of=("self",)).select_related("agent").get(pk=dialog_id)


def _is_at(dialog: Dialog, told: Conversation) -> bool:
    if dialog.state not in AT_HEAD or dialog.turns.queued().exists():
        return False
    if told.results and {call.id for call in unresolved_calls(dialog)} != {said.call_id for said in told.results}:
        return False
    return same(told.before, list(_said_in(dialog)))


def _said_in(dialog: Dialog) -> Iterator[ClientMessage]:
    """The dialog as its client saw it: a question to a person was text of the answer, and its reply the user's."""
    whole = dict(dialog.artifacts.values_list("tool_call_id", "text"))
    turns = dialog.turns.filter(position__isnull=False).exclude(role=Turn.Role.NOTICE).order_by("position")
    for turn in turns.only("role", "status", "text", "tool_calls", "tool_call_id", "tool_name"):
        if turn.role == Turn.Role.ASSISTANT:
            yield ClientMessage("assistant", turn.text + "".join(f"\n\n{text}" for text in _asked(turn)))
        elif turn.role == Turn.Role.USER or (turn.tool_name == ASK_HUMAN and turn.status == Turn.Status.OK):
            yield ClientMessage("user", turn.text)
        else:
            yield ClientMessage("tool", whole.get(turn.tool_call_id, turn.text), call_id=turn.tool_call_id)


def _asked(turn: Turn) -> Iterator[str]:
    for call in turn.tool_calls or ():
        if call["name"] == ASK_HUMAN:
            try:
                yield str(orjson.loads(call["arguments"])["question"])
            except (ValueError, KeyError, TypeError):
                continue  # it was refused as malformed, so nobody was asked


def _forked(key: ApiKey, agent: Agent, request: ChatRequest, told: Conversation) -> Run:
    with transaction.atomic():
        dialog = messages.create_dialog(key.owner, agent.pk, origin=Dialog.Origin.KEY)
        if told.before:
            _store(dialog, told.before)
            dialog = _locked(dialog.pk)
        return _post(dialog, key, request, told)


def _store(dialog: Dialog, before: Sequence[ClientMessage]) -> None:
    """Turns for what was said elsewhere. When that was is not known, only that it is no message of this minute."""
    earlier = timezone.now() - timedelta(minutes=2)
    names = {call.id: call.name for said in before for call in said.calls}
    turns = [
        Turn(
            dialog=dialog,
            seq=number,
            position=number,
            round_number=1,
            role=said.role,
            status=_status(said, before[number : number + 1]),
            text=said.text,
            tool_calls=[_call_json(call) for call in said.calls] or None,
            tool_call_id=said.call_id,
            tool_name=names.get(said.call_id, ""),
            created_at=earlier,
        )
        for number, said in enumerate(before, 1)
    ]
    Turn.objects.bulk_create(turns, batch_size=500)
    events = (Event(dialog=dialog, seq=turn.seq, type="turn", data={"turn": turn.seq}) for turn in turns)
    Event.objects.bulk_create(events, batch_size=500)
    count = len(turns)
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=count, last_position=count, last_event_seq=count)


def _status(said: ClientMessage, following: Sequence[ClientMessage]) -> str:
    if said.role == "assistant":
        return Turn.Status.COMPLETE
    if said.role == "tool":
        return Turn.Status.OK
    return Turn.Status.ANSWERED if following and following[0].role == "assistant" else Turn.Status.SUPERSEDED


def _call_json(call: Call) -> dict[str, str]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _post(dialog: Dialog, key: ApiKey, request: ChatRequest, told: Conversation) -> Run:
    """The caller holds the dialog's row, or has just made it."""
    after_generation, after_rewrite = _newest(dialog)
    client = Client(
        dialog=dialog,
        key=key,
        said=told.digest,
        instructions=request.instructions,
        tools=request.tools,
        required_tool=request.required_tool,
        params=request.params or None,
    )
    options.check_model_honours(dialog)
    lifetime.settle(dialog, key, request, told)
    told_anew = ("key", "said", "instructions", "tools", "required_tool", "params")
    Client.objects.bulk_create([client], update_conflicts=True, unique_fields=["dialog"], update_fields=told_anew)
    seq = _post_results(dialog, told) if told.results else _post_message(dialog, key, told.message)
    queued = dialog.turns.filter(seq=seq, status=Turn.Status.QUEUED).exists()
    return Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=key.owner_id,
        seq=seq,
        queued=queued,
        after_event=dialog.last_event_seq,
        after_generation=after_generation,
        after_rewrite=after_rewrite,
        round_number=dialog.round_number,
        is_proxy=dialog.agent.proxy,
    )


def _newest(dialog: Dialog) -> tuple[int, int]:
    """The ids of its newest model call and rewrite; 0 where there is none."""
    of_dialog = (rows.filter(dialog=dialog.pk).order_by("-pk") for rows in (Generation.objects, RemediationRun.objects))
    found = Dialog.objects.filter(pk=dialog.pk).values_list(*(Subquery(rows.values("pk")[:1]) for rows in of_dialog))
    generation, rewrite = found.get()
    return generation or 0, rewrite or 0


def _post_results(dialog: Dialog, told: Conversation) -> int:
    try:
        return client_tools.accept(dialog.pk, {said.call_id: said.text for said in told.results})
    except Conflict as conflict:
        if conflict.code != "tool_calls_not_open":
            raise
        raise invalid(
            "An assistant message with tool_calls must be followed by one tool message for each of its calls; "
            "these tool messages are not that.",
            "messages",
        ) from None


def _post_message(dialog: Dialog, key: ApiKey, text: str) -> int:
    """While the agent waits for a person, the client's message is the answer that it waits for."""
    question = dialog.questions.filter(state=Question.State.OPEN, kind=Question.Kind.QUESTION).first()
    if question is not None and dialog.answering_seq is not None:
        questions.answer(question.pk, key.owner, text)
        return dialog.answering_seq
    return messages.post_message(dialog.pk, text).seq


def abandon(run: Run) -> None:
    """The client has gone: its message ends, whether under way or still waiting for its turn."""
    status = Turn.objects.filter(dialog=run.dialog_id, seq=run.seq).values_list("status", flat=True).first()
    if status == Turn.Status.QUEUED:
        messages.remove_queued(run.dialog_id, run.seq, User.objects.get(pk=run.user_id))
    elif status == Turn.Status.ANSWERING:
        messages.stop(run.dialog_id)
