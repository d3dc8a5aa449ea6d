"""Posts what is new in a request to the dialog that it continues.

A client sends its whole history each time, and not always as it received it. The history serves to find the dialog; it
neither rewrites nor hides what is stored there. Only what is new is stored: the message, and whatever the client puts
behind the newest exchange of the dialog. A history that fits no dialog, or continues an older place of one, becomes a
dialog of its own.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Subquery, Value, When

from dialogs.actions import imported_turns, messages, questions
from dialogs.actions.attachments import stored, text_with
from dialogs.actions.messages import Accepted
from dialogs.context.client import client_of
from dialogs.context.served import Served, served_or_unknown
from dialogs.context.tool_calls import Result
from dialogs.context.view import unresolved_calls, view_of_turns
from dialogs.errors import Conflict, Forbidden
from dialogs.extras.v1 import lifetime, options
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.finding import (
    AT_HEAD,
    RESULT_FOLLOWS,
    Candidate,
    Incoming,
    after_head,
    calls_in_text,
    find,
)
from dialogs.extras.v1.forks import copyable, fork, message_of, take_place
from dialogs.extras.v1.history import LEADS, ClientMessage, Conversation, conversation_of, placed
from dialogs.extras.v1.likeness import Keys, answer_key, keys_of
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.transcripts import ANSWER_TO_AGENT
from dialogs.models import Agent, ApiKey, Client, Dialog, Generation, Question, Turn
from dialogs.permissions import ACT_IN_ALL, may
from dialogs.runtime import client_tools, outcomes
from dialogs.runtime.oversized_results import Judged, judged
from dialogs.state import State
from dialogs.store.change import open_change
from dialogs.tools.registry import tools_under
from dominds.db.prepared import Select, update
from dominds.llm.catalog.catalog import UnknownModel
from remediation.models import RemediationRun

CHANGED = "changed"  # no digest: the next request begins another epoch


@dataclass(frozen=True, slots=True)
class Run:
    """One message under way. Its events come after ``after_event``, its model calls after ``after_generation``, what is
    done about the context after ``after_rewrite`` and the round ``round_number``. A program ``reads_text_alone`` where
    the runtime adds no words of its own."""

    dialog_id: UUID
    agent_id: str
    user_id: int
    seq: int
    queued: bool
    after_event: int
    after_generation: int
    after_rewrite: int = 0
    round_number: int = 1
    reads_text_alone: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """All that is computed, or asked of a server, before a dialog's row is locked, since others wait for the lock."""

    served: Served | UnknownModel
    keys: Keys
    is_background: bool
    results: Mapping[str, Judged]


def _prepared(incoming: Incoming, dialog_id: UUID | None) -> _Prepared:
    """``dialog_id`` is the dialog that goes on, or that a new one begins like; None where there is none yet."""
    dialog = _with_agent.first(dialog_id) if dialog_id else None
    served = served_or_unknown(dialog) if dialog else incoming.served
    if isinstance(served, Served):
        _ = served.unusable  # asks its server, while nobody waits for the dialog's row
    results = {message.call_id: Result(message.text) for message in incoming.conversation.results}
    return _Prepared(
        served=served,
        keys=keys_of(incoming.exchanges),
        is_background=lifetime.is_background(incoming),
        results=judged(dialog, served, results) if dialog else _judged_of_new(incoming, results),
    )


def _judged_of_new(incoming: Incoming, results: Mapping[str, Result]) -> Mapping[str, Judged]:
    """By the dialog that a new conversation becomes, with its whole history. Nothing of it is stored yet."""
    if not results:
        return {}
    key, request, conversation = incoming.key, incoming.request, incoming.conversation
    dialog = Dialog(owner=key.owner, agent=incoming.agent)
    dialog.context_policy = lifetime.requested_policy(request.policy, incoming.served)
    # The dialog knows its client from here on, without a row.
    system = [(LEADS, one.text) for one in conversation.system if one.leads]
    Client(
        dialog=dialog, key=key, instructions=request.instructions, tools=request.tools, system_messages=system or None
    )
    turns = imported_turns.turns_of(dialog, [message_of(message) for message in conversation.before])
    served = incoming.served.with_policy_of(dialog)
    return judged(dialog, served, results, view_of_turns(dialog, turns))


def begin(key: ApiKey, request: ChatRequest) -> Run:
    """Post what is new in the request to the dialog that it belongs to. Raises ``ApiError`` or ``Refusal``."""
    incoming = Incoming(key, *agent_of(request), request, conversation_of(request.messages))
    if request.dialog_id is not None:
        return _in_named_dialog(incoming, request.dialog_id)
    if run := _with_results(incoming):
        return run
    if lifetime.asks_for_title(incoming.conversation):  # as its last message, of a conversation that goes on without it
        return _in_new_dialog(incoming, None, is_aside=True)
    candidate = find(incoming)
    if candidate is not None and candidate.fit and (run := _in_same_dialog(incoming, candidate)):
        return run
    return _in_new_dialog(incoming, copyable(candidate))


def agent_of(request: ChatRequest) -> tuple[Agent, Served]:
    """Return the agent that the request names, if it can answer, and what serves it. Raises ``ApiError`` or
    ``Refusal``.
    """
    agent = _enabled.first(request.model)
    if agent is None:
        raise ApiError(404, "model_not_found", f"The model {request.model!r} does not exist.", param="model")
    served = served_or_unknown(agent)
    if isinstance(served, UnknownModel) or served.unusable:
        raise Conflict("agent_unusable", str(served) if isinstance(served, UnknownModel) else served.unusable)
    _check_names(request, taken=tools_under(served.policy, agent))
    return agent, served


def _check_names(request: ChatRequest, taken: Collection[str]) -> None:
    for index, tool in enumerate(request.tools):
        if tool["name"] in taken:
            raise invalid(
                f"The agent has a tool named {tool['name']!r} of its own. Rename yours.",
                f"tools[{index}].function.name",
            )


def _in_named_dialog(incoming: Incoming, dialog_id: UUID) -> Run:
    """Go on with the dialog that the client names; its account of the past does not matter."""
    key, agent = incoming.key, incoming.agent
    dialog = messages.owned(dialog_id, key.owner)
    if dialog.owner_id != key.owner_id and not may(key.owner, ACT_IN_ALL):
        raise Forbidden(
            "/v1 writes in dialogs of the key's owner alone. Members of its group write on its page or by /api."
        )
    if dialog.agent_id != agent.pk:
        raise invalid(f"Dialog {dialog.pk} is with the agent {dialog.agent_id!r}, not {agent.pk!r}.", "model")
    prepared = _prepared(incoming, dialog.pk)
    if dialog.last_turn_seq:  # a prompt in a conversation is none beside it
        prepared = replace(prepared, is_background=False)
    with transaction.atomic():
        return _post(_locked(dialog.pk), incoming, prepared)


def _with_results(incoming: Incoming) -> Run | None:
    """Results belong to the dialog that holds their calls, whatever its state: a client may send them at once."""
    ids = {message.call_id for message in incoming.conversation.results}
    generations = set(map(outcomes.generation_of_call, ids))
    if len(generations) != 1 or None in generations:
        return None
    dialog_id = incoming.dialogs.filter(generations__in=generations).values_list("pk", flat=True).first()
    if dialog_id is None:
        return None
    prepared = _prepared(incoming, dialog_id)
    with transaction.atomic():
        dialog = _locked(dialog_id)
        if {call.id for call in unresolved_calls(dialog)} != ids:
            return None  # answered long ago: the client goes on from an older place of the conversation
        return _post(dialog, incoming, prepared)


def _in_same_dialog(incoming: Incoming, candidate: Candidate) -> Run | None:
    conversation = after_head(incoming.conversation, candidate)
    if conversation.before and (named := calls_in_text(conversation.before[-1])):
        conversation = replace(
            conversation,
            results=tuple(ClientMessage("tool", RESULT_FOLLOWS, call_id=call) for call in dict.fromkeys(named)),
        )
    if candidate.results:
        conversation = replace(conversation, results=candidate.results)
    incoming = incoming.with_(conversation)
    prepared = _prepared(incoming, candidate.dialog_id)
    if candidate.results and not candidate.summary:  # all that is new in the message
        conversation = replace(conversation, ahead=(), message="", attached=())
    with transaction.atomic():
        try:
            dialog = _locked(candidate.dialog_id)
        except Dialog.DoesNotExist:
            return None  # it has expired meanwhile
        if dialog.state not in AT_HEAD or dialog.last_turn_seq != candidate.last_turn_seq:
            return None  # somebody was faster
        if not dialog.all_placed and _queued.first(dialog.pk):
            return None
        ids = {message.call_id for message in conversation.results}
        if ids and {call.id for call in unresolved_calls(dialog)} != ids:
            conversation = replace(conversation, results=())
        if dialog.archived_at and (dialog.forked_from_id or dialog.fork_count):
            take_place(dialog, dialog)  # its user went back to this version
        return _post(dialog, incoming.with_(conversation), prepared, again=candidate.again)


def _locked(dialog_id: UUID) -> Dialog:
    """Return the locked dialog. Raises ``Dialog.DoesNotExist``."""
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


def _in_new_dialog(incoming: Incoming, origin: Candidate | None, *, is_aside: bool = False) -> Run:
    """``is_aside``: it asks beside a conversation, which goes on without it."""
    prepared = _prepared(incoming, origin.dialog_id if origin else None)
    prepared = replace(prepared, is_background=prepared.is_background or is_aside)
    with transaction.atomic():
        dialog = fork(incoming.key.owner, incoming.agent, incoming.conversation, origin)
        if incoming.conversation.before:
            dialog = _locked(dialog.pk)
        return _post(dialog, incoming, prepared)


def _post(dialog: Dialog, incoming: Incoming, prepared: _Prepared, *, again: bool = False) -> Run:
    """The caller holds the dialog's row, or has just made it."""
    key, request, conversation = incoming.key, incoming.request, incoming.conversation
    last_seq, after_event, round_number = dialog.last_turn_seq, dialog.last_event_seq, dialog.round_number
    known = client_of(dialog) if last_seq else None
    after_generation, after_rewrite = (newest or 0 for newest in _newest.one(dialog.pk)) if last_seq else (0, 0)
    client = Client(
        dialog=dialog,
        key=key,
        first=prepared.keys.first,
        newest=prepared.keys.newest,
        messages_digest=prepared.keys.whole,
        end_user=request.end_user,
        instructions=request.instructions,
        system_messages=known.system_messages if known else None,
        tools=request.tools,
        required_tool=request.required_tool,
        params=request.params or None,
    )
    served, is_background = prepared.served, prepared.is_background
    if isinstance(served, Served):  # or the message will be refused for that
        options.check_model_honours(served.model, dialog.agent.model_params, request.params)
    policy = lifetime.requested_policy(request.policy, served)
    is_brief = is_background or not request.store
    lifetime.settle(dialog, key, policy, is_background=is_background, is_brief=is_brief)
    if isinstance(served, Served):
        served = served.with_policy_of(dialog)
    _store(client, is_known=known is not None)
    seq, is_queued = 0, False
    if conversation.results:
        seq = _post_results(dialog, served, prepared.results, goes_on=not conversation.has_message)
    if conversation.has_message or not conversation.results:
        seq = _ask_again(dialog, served) if again else 0
        if not seq:
            accepted = _post_message(dialog, served, key, conversation)
            seq, is_queued = accepted.seq, accepted.is_queued
    if client.system_messages or conversation.system:
        _note_system(dialog, conversation, client.system_messages or [], last_seq)
    return Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=key.owner_id,
        seq=seq,
        queued=is_queued,
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


@Select
def _newest(dialog_id: UUID) -> QuerySet[Dialog, tuple[int | None, int | None]]:
    """Return the ids of its newest model call and rewrite."""
    of_dialog = (rows.filter(dialog=dialog_id).order_by("-pk") for rows in (Generation.objects, RemediationRun.objects))
    return Dialog.objects.filter(pk=dialog_id).values_list(*(Subquery(rows.values("pk")[:1]) for rows in of_dialog))


@Select
def _queued(dialog_id: UUID) -> QuerySet[Turn, int]:
    return Turn.objects.queued().filter(dialog=dialog_id).values_list("seq", flat=True)[:1]


def _note_system(dialog: Dialog, conversation: Conversation, known: list[Any], last_seq: int) -> None:
    """Keep the system messages in the middle, as the newest request has them: one without a history adds its own
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


def _post_results(
    dialog: Dialog, served: Served | UnknownModel, results: Mapping[str, Judged], *, goes_on: bool
) -> int:
    try:
        return client_tools.accept(dialog, served, results, goes_on=goes_on)
    except Conflict as conflict:
        if conflict.code != "tool_calls_not_open":
            raise
        raise invalid(
            "An assistant message with tool_calls must be followed by one tool message for each of its calls; "
            "these tool messages are not that.",
            "messages",
        ) from None


def _ask_again(dialog: Dialog, served: Served | UnknownModel) -> int:
    """Answer the newest message once more, if it ended without an answer; else 0."""
    spoken = dialog.turns.filter(role=Turn.Role.USER, position__isnull=False).order_by("-position")
    seq, status = spoken.values_list("seq", "status")[0]
    if status not in (Turn.Status.FAILED, Turn.Status.STOPPED):
        return 0
    messages.retry(dialog, served=served)
    return int(seq)


def _post_message(dialog: Dialog, served: Served | UnknownModel, key: ApiKey, conversation: Conversation) -> Accepted:
    """Post a message. While the agent waits for a person, it is the answer that the agent waits for."""
    text = "\n\n".join(message.text for message in (*conversation.ahead, ClientMessage("user", conversation.message)))
    attached = tuple(file for message in conversation.ahead for file in message.attached) + conversation.attached
    open_questions = dialog.questions.filter(state=Question.State.OPEN, kind=Question.Kind.QUESTION)
    if dialog.answering_seq is not None and (question := open_questions.first()):
        if attached:
            raise invalid("The agent waits for an answer in words: files come with the next message.", "messages")
        questions.answer(question.pk, key.owner, text)
        return Accepted(dialog.answering_seq, dialog.state)
    # Else they would stand in the answer under way.
    if conversation.ahead and dialog.state in (State.IDLE, State.FAILED):
        text, attached = conversation.message, conversation.attached
        with open_change(dialog.pk, locked=dialog) as change:
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
    return messages.post_message(dialog, text, attached=attached, is_locked=True, served=served)


def note_answer(run: Run, answer: str) -> None:
    """Note the answer that the client got, by which the dialog is found whatever the client makes of the user's
    words.
    """
    update(Client, {"dialog_id": run.dialog_id}, {"answer_digest": answer_key(answer)})


def abandon(run: Run) -> None:
    """End the message of a client that has gone, whether it is under way or still waits for its turn."""
    status = Turn.objects.filter(dialog=run.dialog_id, seq=run.seq).values_list("status", flat=True).first()
    if status == Turn.Status.QUEUED:
        messages.remove_queued(run.dialog_id, run.seq, User.objects.get(pk=run.user_id))
    elif status == Turn.Status.ANSWERING:
        messages.stop(run.dialog_id)
