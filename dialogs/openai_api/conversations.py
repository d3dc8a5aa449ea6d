"""Posts what is new in a request to the dialog that it goes on with.

A client sends its whole history each time, and not always as it got it. What it tells finds the dialog; it neither rewrites nor
hides what is stored there, and storage grows by what is new: what it says of the time after the dialog's head is stored there with
the message. What fits no dialog, or goes on from an older place of one, becomes a dialog of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Subquery, Value, When

from dialogs.actions import imported_turns, messages, questions
from dialogs.actions.attachments import stored, text_with
from dialogs.context.client import client_of
from dialogs.context.limits import unusable_reason
from dialogs.context.tool_calls import Result
from dialogs.context.view import unresolved_calls, view_of_turns
from dialogs.errors import Conflict, Forbidden
from dialogs.models import Agent, ApiKey, Client, Dialog, Generation, Question, Turn
from dialogs.openai_api import lifetime, options
from dialogs.openai_api.errors import ApiError, invalid
from dialogs.openai_api.finding import (
    ANSWER_TO_AGENT,
    AT_HEAD,
    RESULT_FOLLOWS,
    Candidate,
    after_head,
    calls_in_words,
    find,
)
from dialogs.openai_api.forks import copyable, fork, message_of, take_place
from dialogs.openai_api.history import LEADS, ClientMessage, Conversation, conversation_of, placed
from dialogs.openai_api.likeness import Keys, answer_key, exchanges_of, keys_of
from dialogs.openai_api.parsing import ChatRequest
from dialogs.permissions import ACT_IN_ALL, may
from dialogs.runtime import client_tools, outcomes
from dialogs.runtime.oversized_results import Judged, judged
from dialogs.state import State
from dialogs.store.change import open_change
from dialogs.tools.registry import tools_of
from dominds.db.prepared import Select, update
from remediation.models import RemediationRun

CHANGED = "changed"  # no digest: the next request begins another epoch


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


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What is computed, or asked of a server, before a dialog's row is locked: others wait for whoever holds it."""

    keys: Keys
    background: bool
    results: Mapping[str, Judged]


def _ahead(
    key: ApiKey, agent: Agent, request: ChatRequest, conversation: Conversation, dialog_id: UUID | None
) -> _Ahead:
    """``dialog_id`` is the dialog that goes on, or that a new one begins like; None where there is none yet."""
    dialog = _with_agent.first(dialog_id) if dialog_id else None
    if dialog is not None:
        unusable_reason(dialog)  # keeps what its server answers
    results = {message.call_id: Result(message.text) for message in conversation.results}
    return _Ahead(
        keys=keys_of(exchanges_of(conversation.whole)),
        background=lifetime.is_background(key, request, conversation),
        results=judged(dialog, results) if dialog else _judged_of_new(key, agent, request, conversation, results),
    )


def _judged_of_new(
    key: ApiKey, agent: Agent, request: ChatRequest, conversation: Conversation, results: Mapping[str, Result]
) -> Mapping[str, Judged]:
    """By the dialog that a new conversation becomes, with what it tells. Nothing of it is stored yet."""
    if not results:
        return {}
    dialog = Dialog(owner=key.owner, agent=agent)
    dialog.context_policy = lifetime.requested_policy(dialog, request.policy)
    # The dialog knows its client from here on, without a row.
    system = [(LEADS, one.text) for one in conversation.system if one.leads]
    Client(
        dialog=dialog, key=key, instructions=request.instructions, tools=request.tools, system_messages=system or None
    )
    turns = imported_turns.turns_of(dialog, [message_of(message) for message in conversation.before])
    return judged(dialog, results, view_of_turns(dialog, turns))


def begin(key: ApiKey, request: ChatRequest) -> Run:
    """Post what is new in the request to the dialog that it belongs to. Raises ``ApiError`` or ``Refusal``."""
    agent = agent_of(request)
    conversation = conversation_of(request.messages)
    if request.dialog_id is not None:
        return _named(key, agent, request, conversation)
    if run := _holding_calls(key, agent, request, conversation):
        return run
    if lifetime.asks_for_title(conversation):  # as its last message, of a conversation that goes on without it
        return _forked(key, agent, request, conversation, None, is_aside=True)
    candidate = find(key, agent, conversation, request.end_user, request.instructions)
    if candidate is not None and candidate.fit and (run := _go_on(key, agent, request, conversation, candidate)):
        return run
    return _forked(key, agent, request, conversation, copyable(candidate))


def agent_of(request: ChatRequest) -> Agent:
    """The agent that the request names and can be answered by. Raises ``ApiError`` or ``Refusal``."""
    agent = _enabled.first(request.model)
    if agent is None:
        raise ApiError(404, "model_not_found", f"The model {request.model!r} does not exist.", param="model")
    if reason := unusable_reason(agent):
        raise Conflict("agent_unusable", reason)
    _check_names(agent, request)
    return agent


def _check_names(agent: Agent, request: ChatRequest) -> None:
    taken = tools_of(agent)
    for index, tool in enumerate(request.tools):
        if tool["name"] in taken:
            raise invalid(
                f"The agent has a tool named {tool['name']!r} of its own. Rename yours.",
                f"tools[{index}].function.name",
            )


def _named(key: ApiKey, agent: Agent, request: ChatRequest, conversation: Conversation) -> Run:
    """The client says which dialog it means; what it says of the past does not matter then."""
    assert request.dialog_id is not None
    dialog = messages.owned(request.dialog_id, key.owner)
    if dialog.owner_id != key.owner_id and not may(key.owner, ACT_IN_ALL):
        raise Forbidden(
            "/v1 writes in dialogs of the key's owner alone. Members of its group write on its page or by /api."
        )
    if dialog.agent_id != agent.pk:
        raise invalid(f"Dialog {dialog.pk} is with the agent {dialog.agent_id!r}, not {agent.pk!r}.", "model")
    ahead = _ahead(key, agent, request, conversation, dialog.pk)
    if dialog.last_turn_seq:  # what was said in it is no prompt beside it
        ahead = replace(ahead, background=False)
    with transaction.atomic():
        return _post(_locked(dialog.pk), key, request, conversation, ahead)


def _holding_calls(key: ApiKey, agent: Agent, request: ChatRequest, conversation: Conversation) -> Run | None:
    """Results belong to the dialog that holds their calls, whatever its state: a client may send them at once."""
    generations = {outcomes.generation_of_call(message.call_id) for message in conversation.results}
    if len(generations) != 1 or None in generations:
        return None
    held = Dialog.objects.filter(
        generations__in=generations, client__key=key, client__end_user=request.end_user, agent=agent
    )
    dialog_id = held.values_list("pk", flat=True).first()
    if dialog_id is None:
        return None
    ahead = _ahead(key, agent, request, conversation, dialog_id)
    with transaction.atomic():
        dialog = _locked(dialog_id)
        if {call.id for call in unresolved_calls(dialog)} != {message.call_id for message in conversation.results}:
            return None  # answered long ago: the client goes on from an older place of the conversation
        return _post(dialog, key, request, conversation, ahead)


def _go_on(
    key: ApiKey, agent: Agent, request: ChatRequest, conversation: Conversation, candidate: Candidate
) -> Run | None:
    conversation = after_head(conversation, candidate)
    if conversation.before and (named := calls_in_words(conversation.before[-1])):
        conversation = replace(
            conversation,
            results=tuple(ClientMessage("tool", RESULT_FOLLOWS, call_id=call) for call in dict.fromkeys(named)),
        )
    if candidate.results:
        conversation = replace(conversation, results=candidate.results)
    ahead = _ahead(key, agent, request, conversation, candidate.dialog_id)
    if candidate.results and not candidate.summary:  # all that is new in the message
        conversation = replace(conversation, ahead=(), message="", attached=())
    with transaction.atomic():
        try:
            dialog = _locked(candidate.dialog_id)
        except Dialog.DoesNotExist:
            return None  # it has expired meanwhile
        if dialog.state not in AT_HEAD or dialog.last_turn_seq != candidate.last_turn_seq:
            return None  # somebody was faster
        if _queued.first(dialog.pk):
            return None
        ids = {message.call_id for message in conversation.results}
        if ids and {call.id for call in unresolved_calls(dialog)} != ids:
            conversation = replace(conversation, results=())
        if dialog.archived_at and (dialog.forked_from_id or dialog.fork_count):
            take_place(dialog, dialog)  # its user went back to this version
        return _post(dialog, key, request, conversation, ahead, again=candidate.again)


def _locked(dialog_id: UUID) -> Dialog:
    """Raises ``Dialog.DoesNotExist``."""
    dialog = _row_locked.first(dialog_id)
    if dialog is None:
        raise Dialog.DoesNotExist
    return dialog


@Select
def _row_locked(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.select_for_update(of=("self",)).select_related("agent", "client").filter(pk=dialog_id)


@Select
def _with_agent(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.select_related("agent").filter(pk=dialog_id)


@Select
def _enabled(agent_id: str) -> QuerySet[Agent]:
    return Agent.objects.filter(pk=agent_id, enabled=True)


def _forked(
    key: ApiKey,
    agent: Agent,
    request: ChatRequest,
    conversation: Conversation,
    origin: Candidate | None,
    *,
    is_aside: bool = False,
) -> Run:
    ahead = _ahead(key, agent, request, conversation, origin.dialog_id if origin else None)
    ahead = replace(ahead, background=ahead.background or is_aside)
    with transaction.atomic():
        dialog = fork(key.owner, agent, conversation, origin)
        if conversation.before:
            dialog = _locked(dialog.pk)
        return _post(dialog, key, request, conversation, ahead)


def _post(
    dialog: Dialog, key: ApiKey, request: ChatRequest, conversation: Conversation, ahead: _Ahead, *, again: bool = False
) -> Run:
    """The caller holds the dialog's row, or has just made it."""
    after_generation, after_rewrite = (newest or 0 for newest in _newest.one(dialog.pk))
    last_seq, known = dialog.last_turn_seq, client_of(dialog) if dialog.last_turn_seq else None
    system = (known.system_messages if known else None) or []
    client = Client(
        dialog=dialog,
        key=key,
        first=ahead.keys.first,
        newest=ahead.keys.newest,
        messages_digest=ahead.keys.whole,
        end_user=request.end_user,
        instructions=request.instructions,
        tools=request.tools,
        required_tool=request.required_tool,
        params=request.params or None,
    )
    options.check_model_honours(dialog)
    lifetime.settle(dialog, key, request, background=ahead.background)
    _store(client, is_known=known is not None)
    seq = _post_results(dialog, conversation, ahead) if conversation.results else 0
    if conversation.has_message or not conversation.results:
        seq = (_ask_again(dialog) if again else 0) or _post_message(dialog, key, conversation)
    if system or conversation.system:
        _note_system(dialog, conversation, system, last_seq)
    return Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=key.owner_id,
        seq=seq,
        queued=_status.first(dialog.pk, seq) == Turn.Status.QUEUED,
        after_event=dialog.last_event_seq,
        after_generation=after_generation,
        after_rewrite=after_rewrite,
        round_number=dialog.round_number,
        is_proxy=dialog.agent.proxy,
    )


def _store(client: Client, *, is_known: bool) -> None:
    """What the newest request says takes the place of what the one before it said; ``first`` stays."""
    columns = ("key_id", "newest", "messages_digest", "end_user", "instructions", "tools", "required_tool", "params")
    if is_known:
        update(Client, {"dialog_id": client.dialog_id}, {name: getattr(client, name) for name in columns})
    else:
        Client.objects.bulk_create([client], update_conflicts=True, unique_fields=["dialog"], update_fields=columns)


@Select
def _newest(dialog_id: UUID) -> QuerySet[Dialog, tuple[int | None, int | None]]:
    """The ids of its newest model call and rewrite."""
    of_dialog = (rows.filter(dialog=dialog_id).order_by("-pk") for rows in (Generation.objects, RemediationRun.objects))
    return Dialog.objects.filter(pk=dialog_id).values_list(*(Subquery(rows.values("pk")[:1]) for rows in of_dialog))


@Select
def _queued(dialog_id: UUID) -> QuerySet[Turn, int]:
    return Turn.objects.queued().filter(dialog=dialog_id).values_list("seq", flat=True)[:1]


@Select
def _status(dialog_id: UUID, seq: int) -> QuerySet[Turn, str]:
    return Turn.objects.filter(dialog=dialog_id, seq=seq).values_list("status", flat=True)


def _note_system(dialog: Dialog, conversation: Conversation, known: list[Any], last_seq: int) -> None:
    """Keep the system messages in the middle, as the newest request tells them: one that tells nothing of the past adds its own
    to those that are known. Where one came to stand before ``last_seq``, or is gone, what was sent has changed."""
    turns = dialog.turns.filter(Q(position__isnull=False) | Q(status=Turn.Status.QUEUED)).exclude(role=Turn.Role.NOTICE)
    role = Case(When(ANSWER_TO_AGENT, then=Value("user")), default=F("role"))
    rows = turns.order_by(F("position").asc(nulls_last=True), "seq").values_list("seq", role, "tool_call_id")
    new: list[Any] = [list(one) for one in placed(conversation.system, list(rows) if conversation.system else ())]
    if not conversation.before:
        leading = [one for one in new if one[0] == LEADS]
        new = leading + [one for one in known if one[0] != LEADS] + new[len(leading) :]
    if new == known:
        return
    Client.objects.filter(dialog=dialog.pk).update(system_messages=new or None)
    if new[: len(known)] != known or any(after < last_seq for after, _ in new[len(known) :]):
        Dialog.objects.filter(pk=dialog.pk).exclude(beginning="").update(beginning=CHANGED)


def _post_results(dialog: Dialog, conversation: Conversation, ahead: _Ahead) -> int:
    try:
        return client_tools.accept(dialog.pk, ahead.results, goes_on=not conversation.has_message)
    except Conflict as conflict:
        if conflict.code != "tool_calls_not_open":
            raise
        raise invalid(
            "An assistant message with tool_calls must be followed by one tool message for each of its calls; "
            "these tool messages are not that.",
            "messages",
        ) from None


def _ask_again(dialog: Dialog) -> int:
    """Answer the newest message once more, if it ended without an answer; else 0."""
    spoken = dialog.turns.filter(role=Turn.Role.USER, position__isnull=False).order_by("-position")
    seq, status = spoken.values_list("seq", "status")[0]
    if status not in (Turn.Status.FAILED, Turn.Status.STOPPED):
        return 0
    messages.retry(dialog.pk)
    return int(seq)


def _post_message(dialog: Dialog, key: ApiKey, conversation: Conversation) -> int:
    """While the agent waits for a person, the client's message is the answer that it waits for."""
    text = "\n\n".join(message.text for message in (*conversation.ahead, ClientMessage("user", conversation.message)))
    attached = tuple(file for message in conversation.ahead for file in message.attached) + conversation.attached
    open_questions = dialog.questions.filter(state=Question.State.OPEN, kind=Question.Kind.QUESTION)
    if dialog.answering_seq is not None and (question := open_questions.first()):
        if attached:
            raise invalid("The agent waits for an answer in words: files come with the next message.", "messages")
        questions.answer(question.pk, key.owner, text)
        return dialog.answering_seq
    # Else they would stand in the answer under way.
    if conversation.ahead and dialog.state in (State.IDLE, State.FAILED):
        text, attached = conversation.message, conversation.attached
        with open_change(dialog.pk) as change:
            turns = imported_turns.turns_of(dialog, [message_of(message) for message in conversation.ahead])
            for turn, message in zip(turns, conversation.ahead, strict=True):
                change.turn(
                    turn.role,
                    turn.status,
                    text=text_with(message.text, message.attached),
                    attachments=stored(dialog, message.attached),
                    tool_calls=turn.tool_calls,
                    tool_call_id=turn.tool_call_id,
                    tool_name=turn.tool_name,
                )
    return messages.post_message(dialog.pk, text, attached=attached).seq


def note_answer(run: Run, answer: str) -> None:
    """What the client got as its answer: by that it is found, whatever it makes of the user's words."""
    update(Client, {"dialog_id": run.dialog_id}, {"answer_digest": answer_key(answer)})


def abandon(run: Run) -> None:
    """The client has gone: its message ends, whether under way or still waiting for its turn."""
    status = Turn.objects.filter(dialog=run.dialog_id, seq=run.seq).values_list("status", flat=True).first()
    if status == Turn.Status.QUEUED:
        messages.remove_queued(run.dialog_id, run.seq, User.objects.get(pk=run.user_id))
    elif status == Turn.Status.ANSWERING:
        messages.stop(run.dialog_id)
