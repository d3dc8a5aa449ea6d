"""Finds the dialog that a client's history continues: digests select candidates, and comparing the texts decides."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Q, QuerySet, Value, When
from django.utils.functional import cached_property

from dialogs.context.served import Served
from dialogs.extras.v1.history import Call, ClientMessage, Conversation
from dialogs.extras.v1.likeness import (
    DISTINCT_CHARS,
    MOST_BEYOND,
    Exchange,
    Fit,
    LastAnswer,
    answer_key,
    exchanges_of,
    fit,
    fit_of_beginning,
    keys_of,
    not_stored,
    same_beginning,
    stands_in,
    without_spaces,
)
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.transcripts import CANDIDATES, Newest, arguments_of, calls_of, messages_in, newest_of
from dialogs.models import Agent, ApiKey, Dialog, Turn
from dialogs.runtime.client_tools import UNANSWERED
from dialogs.state import State
from dominds.db.prepared import Select

RESULT_FOLLOWS = "The user's next message tells the result."
RETRY_TURNS = 64  # of calls that failed one after another, with their results
WITHOUT_ANSWER = tuple(
    (Turn.Role.USER, status) for status in (Turn.Status.FAILED, Turn.Status.STOPPED, Turn.Status.SUSPENDED)
)
WORD = re.compile(r"\S+")
CALL_ID = re.compile(r"\bcall_[0-9]{1,18}_[0-9]{1,9}\b")  # as outcomes.generation_of_call reads it
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)
HELD_UP = (State.SUSPENDED, State.CLOSED)  # by the runtime or a person: what would go on there is refused


@dataclass(frozen=True)
class Incoming:
    """A request and its conversation. What is derived from them is computed once."""

    key: ApiKey
    agent: Agent
    served: Served
    request: ChatRequest
    conversation: Conversation

    def with_(self, conversation: Conversation) -> "Incoming":
        return self if conversation == self.conversation else replace(self, conversation=conversation)

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """Return the exchanges of the whole conversation, the new message included."""
        return exchanges_of(self.conversation.whole)

    @cached_property
    def calls_in_text(self) -> frozenset[str]:
        return frozenset(call for message in self.conversation.before for call in calls_in_text(message))

    @cached_property
    def history(self) -> list[Exchange]:
        """The exchanges before what is new."""
        return self.comparable(self.conversation.before)

    def comparable(self, messages: Iterable[ClientMessage]) -> list[Exchange]:
        """Exchanges of messages, where an answer with calls that the client repeats as text
        consists of these calls alone."""
        named = self.calls_in_text
        return exchanges_of(_with_calls_as_text(messages, named) if named else messages)

    @cached_property
    def system(self) -> tuple[ClientMessage, ...]:
        texts = (self.request.instructions, *(one.text for one in self.conversation.system))
        return tuple(ClientMessage("system", text) for text in texts if text)

    @cached_property
    def text(self) -> str:
        """All of it, without white space."""
        return without_spaces(one.text for one in (*self.system, *self.conversation.whole))

    @property
    def dialogs(self) -> QuerySet[Dialog]:
        """Return the dialogs that it may continue, newest first."""
        return _own(self.key.pk, self.request.end_user).filter(agent=self.agent).order_by("-active_at")


def _own(key_id: int, end_user: str) -> QuerySet[Dialog]:
    return Dialog.objects.filter(client__key=key_id, client__end_user=end_user)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dialog as it was when its last turn was ``last_turn_seq``. Its first ``shared`` exchanges are those of the
    history; ``fit`` is None where the history does not continue it. ``again``: the history repeats its newest message,
    which has no answer. ``results`` are of calls that the history leaves out: they are taken from the newest message,
    or refer to it where a ``summary`` takes the place of the calls.
    ``is_held_up``: it is closed or suspended. Of the new messages it holds the first ``held_ahead`` already."""

    dialog_id: UUID
    last_turn_seq: int
    stored: tuple[Exchange, ...]
    shared: int
    fit: Fit | None
    again: bool = False
    results: tuple[ClientMessage, ...] = ()
    summary: ClientMessage | None = None
    is_held_up: bool = False
    held_ahead: int = 0

    @property
    def rank(self) -> tuple[Any, ...]:
        """The better fit is greater; of two equal ones, the dialog that can go on."""
        return (self.fit.rank, not self.is_held_up) if self.fit else ()


def find(incoming: Incoming) -> Candidate | None:
    """Return the dialog that the conversation continues, or else the one that shares the longest beginning with
    it.
    """
    has_answer = any(one.answered for one in incoming.history)
    result = _most_alike(incoming) if has_answer else _unanswered(incoming)
    # Another answer to results that were answered: never the dialog's end.
    if incoming.conversation.results and not incoming.conversation.has_message:
        shared = min(result.shared, len(incoming.history) - 1) if result else 0
        return replace(result, fit=None, shared=shared) if result and shared else None
    if result and result.fit:
        return result
    return _after_failed_call(incoming) or _summarized(incoming) or _with_answer_left_out(incoming) or result


def calls_in_text(message: ClientMessage) -> list[str]:
    """Ids of calls made here that an answer repeats as text, as agents do whose models need not know of tools."""
    is_text = message.role == "assistant" and not message.calls and "call_" in message.text
    return CALL_ID.findall(message.text) if is_text else []


def _with_arguments_as_text(messages: Iterable[ClientMessage]) -> Iterator[ClientMessage]:
    """Put what a call was made with in the place of an answer that has no words: so users of instructor tell the value
    that they asked for by a tool."""
    for message in messages:
        words = "" if message.text else " ".join(call.arguments for call in message.calls)
        yield replace(message, text=words) if words else message


def _with_calls_as_text(messages: Iterable[ClientMessage], named: frozenset[str]) -> Iterator[ClientMessage]:
    for message in messages:
        ids = [*CALL_ID.findall(message.text), *(call.id for call in message.calls)]
        calls = [call for call in ids if call in named] if message.role == "assistant" else []
        yield replace(message, text=" ".join(calls)) if calls else message


# -- by their digests --------------------------------------------------------------------------------------------------

Row = tuple[UUID, int, str]  # a dialog, its last turn and its state
_HELD_UP_LAST = Case(When(state__in=HELD_UP, then=Value(1)), default=Value(0))


def _most_alike(incoming: Incoming) -> Candidate | None:
    seen: dict[UUID, Candidate] = {}
    for dialog_id, seq, state in _likeliest_first(incoming):
        if dialog_id not in seen:
            candidate = seen[dialog_id] = _compared(incoming, dialog_id, seq, state)
            if candidate.fit and candidate.fit.exact and not candidate.is_held_up:
                return candidate
    return _best(list(seen.values()))


def _likeliest_first(incoming: Incoming) -> Iterator[Row]:
    """Asks for the less likely ones only where no other fits exactly."""
    yield from _with_same_messages(incoming, incoming.history, incoming.exchanges)
    same_first = incoming.dialogs.filter(client__first=keys_of(incoming.history).first)
    for dialogs in (_with_same_head(incoming), same_first):
        yield from list(dialogs.values_list("pk", "last_turn_seq", "state")[:CANDIDATES])


def _with_same_messages(incoming: Incoming, *histories: Sequence[Exchange]) -> list[Row]:
    """Dialogs whose user wrote what one of these, one or two, holds: almost always the one that is looked for."""
    wholes = [keys_of(history).whole for history in histories]
    return _by_messages(incoming.key.pk, incoming.request.end_user, incoming.agent.pk, wholes[0], wholes[-1])


@Select
def _by_messages(key_id: int, end_user: str, agent_id: str, whole: str, again: str) -> QuerySet[Dialog, Row]:
    same = _own(key_id, end_user).filter(agent=agent_id, client__messages_digest__in=[whole, again])
    same = same.filter(state__in=(*AT_HEAD, *HELD_UP))
    return same.order_by("-active_at").values_list("pk", "last_turn_seq", "state")[:CANDIDATES]


def _with_same_head(incoming: Incoming) -> QuerySet[Dialog]:
    """Dialogs that end with the user's message, or the answer, with which the history ends; likeliest first."""
    keys = keys_of(incoming.history)
    answers = (one.text for one in reversed(incoming.conversation.before) if one.role == "assistant")
    answer_keys = list(islice(filter(None, map(answer_key, answers)), MOST_BEYOND + 1))
    again = keys_of(incoming.exchanges).whole
    whole, newest = Q(client__messages_digest__in=[keys.whole, again]), Q(client__newest=keys.newest)
    answer = Q(client__answer_digest__in=answer_keys)
    either = whole | newest | answer if answer_keys else whole | newest
    likelihood = Case(When(whole, Value(0)), When(newest & answer, Value(1)), When(answer, Value(2)), default=Value(3))
    at_an_end = incoming.dialogs.filter(either, state__in=(*AT_HEAD, *HELD_UP))
    return at_an_end.order_by(_HELD_UP_LAST, likelihood, "-active_at")


def _compared(incoming: Incoming, dialog_id: UUID, last_turn_seq: int, state: str) -> Candidate:
    history = incoming.history
    stored = tuple(incoming.comparable(messages_in(dialog_id)))
    is_repeated = bool(stored) and not stored[-1].answered and [stored[-1]] == incoming.exchanges[-1:]
    again = is_repeated and incoming.request.is_asking
    compared = stored[:-1] if again else stored
    result = None
    if state in HELD_UP:  # an answer that did not come is not told
        answered = stored if stored and stored[-1].answered else stored[:-1]
        result = fit(history, answered) or fit(history, answered, incoming.text)
    elif state in AT_HEAD:
        result = fit(history, compared) or fit(history, compared, incoming.text)
        if result is None and stored and not stored[-1].answered:
            result = fit(history, exchanges_of(_with_arguments_as_text(messages_in(dialog_id))))
        # Nothing can come between a message and its repetition, or a question and its answer.
        if not (result or again or state == State.WAITING):
            result = fit_of_beginning(history, stored)
    shared = same_beginning(history, stored)
    return Candidate(dialog_id, last_turn_seq, stored, shared, result, again, is_held_up=state in HELD_UP)


def _best(seen: Sequence[Candidate]) -> Candidate | None:
    """Choose the dialog that fits best. Of two that fit equally well and differ, neither is taken.

    Nor is one that fits less well than another one begins, since the history may continue an older place of that
    one.
    """
    if not seen:
        return None
    origin = max(seen, key=lambda one: one.shared)
    most = max((one.rank for one in seen), default=None)
    best = [one for one in seen if one.rank == most]
    if best and best[0].fit and origin.shared <= best[0].fit.same and all(one.stored == best[0].stored for one in best):
        return best[0]
    return replace(origin, fit=None) if origin.shared else None


def _unanswered(incoming: Incoming) -> Candidate | None:
    """Return the dialog that holds the same and has no answer: programs send again what failed."""
    for dialog_id, seq, state in _with_same_messages(incoming, incoming.exchanges):
        if state == State.WAITING:
            continue
        turns = Turn.objects.filter(dialog=dialog_id).exclude(role=Turn.Role.NOTICE).order_by("-position")
        if turns.values_list("role", "status").first() in WITHOUT_ANSWER:
            stored = exchanges_of(messages_in(dialog_id))
            if stored == incoming.exchanges:
                return Candidate(dialog_id, seq, tuple(stored), 0, Fit(True, 0, 0), again=True)
    return None


# -- after a call that failed ------------------------------------------------------------------------------------------


def _after_failed_call(incoming: Incoming) -> Candidate | None:
    """The one of the newest dialogs that waits for results, and whose newest message is repeated without the calls,
    with their outcome behind it: so smolagents tries again."""
    conversation = incoming.conversation
    asked = "\n\n".join(one.text for one in conversation.whole[len(conversation.before) :])
    if conversation.results or conversation.attached or len(asked) < DISTINCT_CHARS:
        return None
    newest = incoming.dialogs.filter(state=State.IDLE).values("pk")[:CANDIDATES]
    waiting = Turn.objects.filter(
        dialog__in=newest, role=Turn.Role.ASSISTANT, text="", tool_calls__isnull=False, seq=F("dialog__last_turn_seq")
    )
    results = [result for turn in list(waiting) if (result := _with_outcome(incoming, turn, asked))]
    return results[0] if len(results) == 1 else None


def _with_outcome(incoming: Incoming, turn: Turn, asked: str) -> Candidate | None:
    """``turn`` holds the calls; their outcome is what ``asked`` holds behind all that is known."""
    calls = calls_of(turn)
    outcome = asked[_end_of_known(turn.dialog_id, asked) :].strip()
    if not outcome or outcome == asked.strip() or not any(_names(call, outcome) for call in calls):
        return None
    stored = tuple(incoming.comparable(messages_in(turn.dialog_id)))
    if not incoming.history and len(stored) == 1:
        result: Fit | None = Fit(True, 0, 0)
    else:
        result = fit(incoming.history, stored[:-1])
    if result is None:
        return None
    results = tuple(
        ClientMessage("tool", outcome if _names(call, outcome) else UNANSWERED.text, call_id=call.id) for call in calls
    )
    return Candidate(turn.dialog_id, turn.seq, stored, len(stored) - 1, result, results=results)


def _end_of_known(dialog_id: UUID, asked: str) -> int:
    """Return where a message stops repeating a dialog's newest message and the results of its calls; 0 where it
    does not.

    It is 0, too, where something else was answered.
    """
    placed = Turn.objects.filter(dialog=dialog_id, position__isnull=False).order_by("-position")
    known: list[str] = []
    for turn in placed.exclude(role=Turn.Role.NOTICE)[:RETRY_TURNS]:
        if turn.role == Turn.Role.ASSISTANT and turn.text:
            return 0
        known = [*turn.text.split(), *known]
        if turn.role == Turn.Role.USER:
            words = list(islice(WORD.finditer(asked), len(known)))
            return words[-1].end() if known and [word[0] for word in words] == known else 0
    return 0


def _names(call: Call, text: str) -> bool:
    """Check whether a text mentions a call: its tool's name in quotation marks, or the name and all its arguments."""
    name = re.escape(call.name)
    if re.search(rf"""(["'`‘“«]){name}["'`’”»]""", text):
        return True
    values = arguments_of(call)
    return bool(values and re.search(rf"\b{name}\b", text) and all(value in text for value in values))


# -- with an answer left out -------------------------------------------------------------------------------------------


def _with_answer_left_out(incoming: Incoming) -> Candidate | None:
    """Return the one dialog of words alone whose messages are told without their answers: so mini-swe-agent tells that
    an answer held no call."""
    conversation = incoming.conversation
    if conversation.before or conversation.results or not conversation.ahead:
        return None
    told = exchanges_of(conversation.ahead)
    if len(told) != 1 or len(told[0].message) < DISTINCT_CHARS:
        return None
    first = keys_of(exchanges_of(conversation.ahead[:1])).first
    rows = incoming.dialogs.filter(client__first=first, state=State.IDLE).values_list("pk", "last_turn_seq")
    results = []
    for dialog_id, seq in rows[:CANDIDATES]:
        stored = tuple(exchanges_of(messages := list(messages_in(dialog_id))))
        is_told = " ".join(one.message for one in stored) == told[0].message
        if is_told and stored[-1].answered and not any(message.calls for message in messages):
            results.append((dialog_id, seq, stored))
    if len(results) != 1:
        return None
    dialog_id, seq, stored = results[0]
    return Candidate(dialog_id, seq, stored, 0, Fit(False, 0, 0), held_ahead=len(conversation.ahead))


# -- behind a summary --------------------------------------------------------------------------------------------------


def _summarized(incoming: Incoming) -> Candidate | None:
    """The one of the newest dialogs whose last answer is a summary that takes the place of the history."""
    if len(incoming.text) < DISTINCT_CHARS:
        return None
    texts = (*incoming.system, *incoming.conversation.whole)
    results: list[Candidate] = []
    newest = list(newest_of(_conversations(incoming.dialogs).filter(state__in=AT_HEAD)))
    for one in newest:
        if one.exchanges and stands_in(one.exchanges[-1].answered, incoming.text):
            messages = tuple(messages_in(one.dialog_id))
            if LastAnswer.of(messages).place_in(texts) is not None:
                results.append(_with_summary(one.dialog_id, exchanges_of(messages)))
    if not results and len(incoming.conversation.whole) > 1:
        results = list(_summarized_beside(incoming, newest, texts))
    if len(results) != 1:
        return None
    seq, position = incoming.dialogs.values_list("last_turn_seq", "last_position").get(pk=results[0].dialog_id)
    calls = _calls_at(results[0].dialog_id, position) if results[0].summary else ()
    results_to_come = tuple(ClientMessage("tool", RESULT_FOLLOWS, call_id=call.id) for call in calls)
    return replace(results[0], last_turn_seq=seq, results=results_to_come)


def _with_summary(dialog_id: UUID, stored: Sequence[Exchange], summary: ClientMessage | None = None) -> Candidate:
    result = Fit(False, len(stored), len(stored), summed_up=True)
    return Candidate(dialog_id, 0, tuple(stored), 0, result, summary=summary)


def _calls_at(dialog_id: UUID, position: int) -> tuple[Call, ...]:
    turn = Turn.objects.filter(dialog=dialog_id, position=position, role=Turn.Role.ASSISTANT).first()
    return calls_of(turn) if turn else ()


def _summarized_beside(
    incoming: Incoming, newest: Sequence[Newest], texts: Sequence[ClientMessage]
) -> Iterator[Candidate]:
    """Yield the newest dialogs that a program had summarized by a separate request quoting the last exchange, as
    Goose and opencode do. The summary becomes their last exchange.
    """
    for beside in list(newest_of(incoming.dialogs)):
        if len(beside.exchanges) != 1 or not stands_in(beside.exchanges[0].answered, incoming.text):
            continue
        instructions = incoming.dialogs.values_list("client__instructions", flat=True).get(pk=beside.dialog_id)
        asked = without_spaces((instructions, beside.exchanges[0].message))
        for one in newest:
            if one.dialog_id == beside.dialog_id or not one.is_quoted_in(asked):
                continue
            messages = tuple(messages_in(one.dialog_id))
            place = LastAnswer("", beside.exchanges[0].answered, messages).place_in(texts)
            if place is not None:
                stored = [*exchanges_of(messages), beside.exchanges[0]]
                yield _with_summary(one.dialog_id, stored, replace(texts[place], role="user"))


# -- what is new, what is quoted ---------------------------------------------------------------------------------------


def after_head(conversation: Conversation, candidate: Candidate) -> Conversation:
    """Take as new what the client puts behind the newest exchange of the dialog, as far as it is not stored there."""
    if conversation.results:  # with a message: the dialog holds them
        conversation = replace(conversation, before=(*conversation.before, *conversation.results), results=())
    if candidate.held_ahead:
        return replace(conversation, ahead=conversation.ahead[candidate.held_ahead :])
    if candidate.fit and candidate.fit.summed_up:
        ahead = conversation.ahead[_behind_summary(conversation, candidate) :]
        result = (candidate.summary,) if candidate.summary and candidate.results else ()
        return replace(conversation, ahead=(*result, *(message for message in ahead if message.role == "user")))
    if candidate.fit is None or not candidate.fit.beyond:
        return conversation
    before = [replace(message, position=number) for number, message in enumerate(conversation.before)]
    beyond = exchanges_of(before)[-candidate.fit.beyond :]
    begins = {exchange.begin for exchange in not_stored(beyond, candidate.stored)}
    ends = [exchange.begin for exchange in beyond[1:]] + [len(before)]
    new = [
        message
        for one, end in zip(beyond, ends, strict=True)
        if one.begin in begins
        for message in before[one.begin : end]
    ]
    return replace(conversation, before=conversation.before[: beyond[0].begin], ahead=(*new, *conversation.ahead))


def _behind_summary(conversation: Conversation, candidate: Candidate) -> int:
    """Count the messages ahead that recount the history, up to its summary."""
    messages = (*conversation.ahead, ClientMessage("user", conversation.message))
    holds = (stands_in(candidate.stored[-1].answered, without_spaces([one.text])) for one in messages)
    return max((number for number, is_held in enumerate(holds, 1) if is_held), default=0)


def quotes_newest(incoming: Incoming, prompt: str) -> bool:
    """Check whether a prompt quotes the last exchange of one of the newest dialogs.

    Programs ask so, in whatever words, beside a conversation: for its title, its tags or the next questions.
    """
    text = "".join(prompt.split())
    dialogs = _conversations(_own(incoming.key.pk, incoming.request.end_user))
    return any(one.is_quoted_in(text) for one in newest_of(dialogs))


def _conversations(dialogs: QuerySet[Dialog]) -> QuerySet[Dialog]:
    return dialogs.exclude(origin=Dialog.Origin.BACKGROUND)
