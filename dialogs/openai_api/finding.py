"""The dialog that a client's history belongs to: looked up by digests, judged by what was said."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from uuid import UUID

import orjson
from django.db.models import Case, F, Q, QuerySet, Value, When

from dialogs.actions.attachments import digests, text_typed
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Agent, ApiKey, Dialog, Turn
from dialogs.openai_api.history import Call, ClientMessage, Conversation
from dialogs.openai_api.likeness import (
    DISTINCT_CHARS,
    MOST_BEYOND,
    Exchange,
    Fit,
    LastAnswer,
    answer_key,
    exchanges_of,
    fit,
    fit_or_beyond,
    keys_of,
    news_of,
    same_beginning,
    stands_in,
    without_spaces,
)
from dialogs.runtime.client_tools import UNANSWERED
from dialogs.state import State
from dominds.db.prepared import Select

CANDIDATES = 8
RESULT_FOLLOWS = "The user's next message tells the result."
LAST_TURNS = 8  # of a dialog, in which what was said last is looked for
RETRY_TURNS = 64  # of calls that failed one after another, with their results
SHORTEST_QUOTE = 20  # bytes of UTF-8 without white space: seven characters of Chinese say as much as twenty of English
QUOTED_CHARS = 120  # programs cut what they quote
ANSWER_TO_AGENT = Q(tool_name=ASK_HUMAN, status=Turn.Status.OK)
SPOKEN = Q(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]) | ANSWER_TO_AGENT
WITHOUT_ANSWER = ((Turn.Role.USER, Turn.Status.FAILED), (Turn.Role.USER, Turn.Status.STOPPED))
WORD = re.compile(r"\S+")
CALL_ID = re.compile(r"\bcall_[0-9]{1,18}_[0-9]{1,9}\b")  # as outcomes.generation_of_call reads it
Newest = tuple[UUID, list[Exchange], ClientMessage]  # what was said last in a dialog, and the last message of that
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)


@dataclass(frozen=True, slots=True)
class Candidate:
    """``last_turn_seq`` tells whether the dialog is still the one that was read. Its first ``shared`` exchanges are told as
    they are; ``fit`` is how well the whole fits, None where the dialog does not go on here. ``again``: its newest message
    had no answer, and is sent once more. ``results`` are of calls that the client left out of what it tells: taken from its newest
    message, or where it tells a ``summary`` in their place, a word on that."""

    dialog_id: UUID
    last_turn_seq: int
    stored: tuple[Exchange, ...]
    shared: int
    fit: Fit | None
    again: bool = False
    results: tuple[ClientMessage, ...] = ()
    summary: ClientMessage | None = None


def find(
    key: ApiKey, agent: Agent, conversation: Conversation, end_user: str, instructions: str = ""
) -> Candidate | None:
    """The dialog that goes on here, or else the one that shares the longest beginning with what is told."""
    named = frozenset(call for message in conversation.before for call in calls_in_words(message))
    exchanges = exchanges_of(_by_calls(conversation.before, named))
    mine = Dialog.objects.filter(client__key=key, client__end_user=end_user, agent=agent).order_by("-active_at")
    texts = [one.text for one in conversation.whole] + [one.text for one in conversation.system]
    text = without_spaces((instructions, *texts))
    has_answer = any(one.answered for one in exchanges)
    if has_answer:
        result = _among_those_alike(mine, conversation, exchanges, text, named)
    else:
        result = _without_answer(mine, conversation)
    # Another answer to results that were answered: never the dialog's end.
    if conversation.results and not conversation.has_message:
        shared = min(result.shared, len(exchanges) - 1) if result else 0
        return replace(result, fit=None, shared=shared) if result and shared else None
    if result and result.fit:
        return result
    return _after_failed_call(mine, conversation, named) or _summed_up(mine, conversation, text, instructions) or result


def calls_in_words(message: ClientMessage) -> list[str]:
    """Ids of calls made here that an answer tells as text, as agents do whose models need not know of tools."""
    return CALL_ID.findall(message.text) if message.role == "assistant" and not message.calls else []


def _by_calls(messages: Iterable[ClientMessage], named: frozenset[str]) -> Iterator[ClientMessage]:
    """An answer with calls that are told as text is these calls, whatever else it says there."""
    for message in messages:
        ids = [*CALL_ID.findall(message.text), *(call.id for call in message.calls)] if named else []
        calls = [call for call in ids if call in named] if message.role == "assistant" else []
        yield replace(message, text=" ".join(calls)) if calls else message


def _among_those_alike(
    mine: QuerySet[Dialog], conversation: Conversation, exchanges: Sequence[Exchange], text: str, named: frozenset[str]
) -> Candidate | None:
    seen: dict[UUID, Candidate] = {}
    same_first = mine.filter(client__first=keys_of(exchanges).first)
    for dialogs in (_with_same_head(mine, conversation, exchanges), same_first):
        for dialog_id, seq, state in list(dialogs.values_list("pk", "last_turn_seq", "state")[:CANDIDATES]):
            if dialog_id in seen:
                continue
            stored = tuple(exchanges_of(_by_calls(messages_in(dialog_id), named)))
            again = bool(stored) and not stored[-1].answered and [stored[-1]] == exchanges_of(conversation.whole)[-1:]
            result = _fit(exchanges, stored, state, text, again=again)
            seen[dialog_id] = Candidate(dialog_id, seq, stored, same_beginning(exchanges, stored), result, again)
            if result and result.exact:
                return seen[dialog_id]
    return _best(list(seen.values()))


def _without_answer(mine: QuerySet[Dialog], conversation: Conversation) -> Candidate | None:
    """The dialog that holds the same and got no word of an answer: programs send again what failed."""
    whole = exchanges_of(conversation.whole)
    same = mine.filter(state__in=(State.IDLE, State.FAILED), client__messages_digest=keys_of(whole).whole)
    for dialog_id, seq in list(same.values_list("pk", "last_turn_seq")[:CANDIDATES]):
        turns = Turn.objects.filter(dialog=dialog_id).exclude(role=Turn.Role.NOTICE).order_by("-position")
        newest = turns.values_list("role", "status").first()
        if newest in WITHOUT_ANSWER and (stored := tuple(exchanges_of(messages_in(dialog_id)))) == tuple(whole):
            return Candidate(dialog_id, seq, stored, 0, Fit(True, 0, 0), again=True)
    return None


def _after_failed_call(mine: QuerySet[Dialog], conversation: Conversation, named: frozenset[str]) -> Candidate | None:
    """The one of the newest dialogs that waits for results, and whose newest message is told again with what became of the calls
    behind it, by their names, and without them: so smolagents tries again."""
    asked = "\n\n".join(one.text for one in conversation.whole[len(conversation.before) :])
    if conversation.results or conversation.attached or len(asked) < DISTINCT_CHARS:
        return None
    newest = mine.filter(state=State.IDLE).order_by("-active_at").values("pk")[:CANDIDATES]
    waiting = Turn.objects.filter(
        dialog__in=newest, role=Turn.Role.ASSISTANT, text="", tool_calls__isnull=False, seq=F("dialog__last_turn_seq")
    )
    results = []
    for turn in list(waiting):
        calls = _calls_of(turn)
        if not (appended := asked[_end_of_known(turn.dialog_id, asked) :].strip()) or appended == asked.strip():
            continue
        stored = tuple(exchanges_of(_by_calls(messages_in(turn.dialog_id), named)))
        before = exchanges_of(_by_calls(conversation.before, named))
        is_same = fit(before, stored[:-1]) if before else Fit(True, 0, 0) if len(stored) == 1 else None
        if is_same and any(_names(call, appended) for call in calls):
            told_results = (
                ClientMessage("tool", appended if _names(call, appended) else UNANSWERED.text, call_id=call.id)
                for call in calls
            )
            results.append(
                Candidate(turn.dialog_id, turn.seq, stored, len(stored) - 1, is_same, results=tuple(told_results))
            )
    return results[0] if len(results) == 1 else None


def _end_of_known(dialog_id: UUID, asked: str) -> int:
    """Where in a message that holds a dialog's newest one, and the results of the calls that answered it, these end; 0 where it does
    not begin with them, or something else was answered."""
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
    """Whether a text speaks of a call: by the name of its tool in quotation marks, or by that and all its arguments."""
    name = re.escape(call.name)
    if re.search(rf"""(["'`‘“«]){name}["'`’”»]""", text):
        return True
    values = _values_in(call)
    return bool(values and re.search(rf"\b{name}\b", text) and all(value in text for value in values))


def _values_in(call: Call) -> list[str]:
    """What a call was given."""
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return []
    given = arguments.values() if isinstance(arguments, dict) else ()
    return [value for value in given if isinstance(value, str)]


def _fit(history: Sequence[Exchange], stored: Sequence[Exchange], state: str, text: str, *, again: bool) -> Fit | None:
    """Where a message is asked again, or a person asked, nothing can come between."""
    if state not in AT_HEAD:
        return None
    if again or state == State.WAITING:
        return fit(history, stored[: -1 if again else None], text)
    return fit_or_beyond(history, stored, text)


def _summed_up(mine: QuerySet[Dialog], conversation: Conversation, text: str, instructions: str) -> Candidate | None:
    """The one of the newest dialogs whose last answer is a summary that the client now tells in the place of what was said."""
    if len(text) < DISTINCT_CHARS:
        return None
    texts = (*_system_of(conversation, instructions), *conversation.whole)
    results: list[Candidate] = []
    newest = list(_newest_exchanges(_conversations(mine).filter(state__in=AT_HEAD)))
    for dialog_id, exchanges, _ in newest:
        if exchanges and stands_in(exchanges[-1].answered, text):
            messages = tuple(messages_in(dialog_id))
            if LastAnswer.of(messages).place_in(texts) is not None:
                results.append(_summed(dialog_id, tuple(exchanges_of(messages))))
    if not results and len(conversation.whole) > 1:
        results = list(_summed_up_beside(mine, newest, texts, text))
    if len(results) != 1:
        return None
    seq, position = mine.values_list("last_turn_seq", "last_position").get(pk=results[0].dialog_id)
    calls = _calls_at(results[0].dialog_id, position) if results[0].summary else ()
    results_to_come = tuple(ClientMessage("tool", RESULT_FOLLOWS, call_id=call.id) for call in calls)
    return replace(results[0], last_turn_seq=seq, results=results_to_come)


def _summed(dialog_id: UUID, stored: tuple[Exchange, ...], summary: ClientMessage | None = None) -> Candidate:
    return Candidate(dialog_id, 0, stored, 0, Fit(False, len(stored), len(stored), summed_up=True), summary=summary)


def _calls_at(dialog_id: UUID, position: int) -> tuple[Call, ...]:
    turn = Turn.objects.filter(dialog=dialog_id, position=position, role=Turn.Role.ASSISTANT).first()
    return _calls_of(turn) if turn else ()


def _summed_up_beside(
    mine: QuerySet[Dialog], newest: Sequence[Newest], texts: Sequence[ClientMessage], text: str
) -> Iterator[Candidate]:
    """Those of the newest dialogs that a program had summed up in a request of its own, which quotes what was said last there: so Goose
    does, and opencode. With the summary as the last thing that was said."""
    for beside_id, exchanges, _ in list(_newest_exchanges(mine)):
        if len(exchanges) != 1 or not stands_in(exchanges[0].answered, text):
            continue
        instructions = mine.values_list("client__instructions", flat=True).get(pk=beside_id)
        asked = without_spaces((instructions, exchanges[0].message))
        for dialog_id, exchanges_there, last in newest:
            if dialog_id == beside_id or not _is_quoted(exchanges_there, last, asked):
                continue
            messages = tuple(messages_in(dialog_id))
            place = LastAnswer("", exchanges[0].answered, messages).place_in(texts)
            if place is not None:
                summary = replace(texts[place], role="user")
                yield _summed(dialog_id, (*exchanges_of(messages), exchanges[0]), summary)


def _system_of(conversation: Conversation, instructions: str) -> tuple[ClientMessage, ...]:
    texts = (instructions, *(one.text for one in conversation.system))
    return tuple(ClientMessage("system", text) for text in texts if text)


def after_head(conversation: Conversation, candidate: Candidate) -> Conversation:
    """With what the client says of the time after the dialog's head as new, so far as it is not known there."""
    if conversation.results:  # with a message: the dialog holds them
        conversation = replace(conversation, before=(*conversation.before, *conversation.results), results=())
    if candidate.fit and candidate.fit.summed_up:
        ahead = conversation.ahead[_behind_summary(conversation, candidate) :]
        result = (candidate.summary,) if candidate.summary and candidate.results else ()
        return replace(conversation, ahead=(*result, *(message for message in ahead if message.role == "user")))
    if candidate.fit is None or not candidate.fit.beyond:
        return conversation
    before = [replace(message, position=number) for number, message in enumerate(conversation.before)]
    beyond = exchanges_of(before)[-candidate.fit.beyond :]
    news = {exchange.begin for exchange in news_of(beyond, candidate.stored)}
    ends = [exchange.begin for exchange in beyond[1:]] + [len(before)]
    new = [
        message
        for one, end in zip(beyond, ends, strict=True)
        if one.begin in news
        for message in before[one.begin : end]
    ]
    return replace(conversation, before=conversation.before[: beyond[0].begin], ahead=(*new, *conversation.ahead))


def _behind_summary(conversation: Conversation, candidate: Candidate) -> int:
    """How many of the messages ahead are the client's account of what was said, up to its summary."""
    messages = (*conversation.ahead, ClientMessage("user", conversation.message))
    holds = (stands_in(candidate.stored[-1].answered, without_spaces([one.text])) for one in messages)
    return max((number for number, is_held in enumerate(holds, 1) if is_held), default=0)


def _with_same_head(
    mine: QuerySet[Dialog], conversation: Conversation, exchanges: Sequence[Exchange]
) -> QuerySet[Dialog]:
    """Dialogs whose user, or agent, said last what the client tells as said last; likeliest first."""
    keys = keys_of(exchanges)
    answer_keys = list(islice(filter(None, map(_key_of_answer, reversed(conversation.before))), MOST_BEYOND + 1))
    again = keys_of(exchanges_of(conversation.whole)).whole
    whole, newest = Q(client__messages_digest__in=[keys.whole, again]), Q(client__newest=keys.newest)
    answer = Q(client__answer_digest__in=answer_keys)
    either = whole | newest | answer if answer_keys else whole | newest
    likelihood = Case(When(whole, Value(0)), When(newest & answer, Value(1)), When(answer, Value(2)), default=Value(3))
    return mine.filter(either, state__in=AT_HEAD).order_by(likelihood, "-active_at")


def _key_of_answer(message: ClientMessage) -> str:
    return answer_key(message.text) if message.role == "assistant" else ""


def _best(seen: Sequence[Candidate]) -> Candidate | None:
    """Of two dialogs that fit alike and say different things neither is taken, nor one that fits less well than another one
    begins: what is told may have gone on from an older place of that."""
    if not seen:
        return None
    origin = max(seen, key=lambda one: one.shared)
    most = max((one.fit.rank for one in seen if one.fit), default=None)
    best = [one for one in seen if one.fit and one.fit.rank == most]
    if best and best[0].fit and origin.shared <= best[0].fit.same and all(one.stored == best[0].stored for one in best):
        return best[0]
    return replace(origin, fit=None) if origin.shared else None


def quotes_newest(key: ApiKey, end_user: str, prompt: str) -> bool:
    """Whether a prompt quotes what was said last in one of the newest dialogs, the user and the answer: so programs ask
    beside a conversation for its title, its tags or the next questions, in whatever words."""
    text = "".join(prompt.split())
    mine = Dialog.objects.filter(client__key=key, client__end_user=end_user)
    newest = _newest_exchanges(_conversations(mine))
    return any(_is_quoted(exchanges, last, text) for _, exchanges, last in newest)


def _is_quoted(exchanges: Sequence[Exchange], last: ClientMessage, text: str) -> bool:
    """Whether a text without white space holds what was said last: the user's words, and the answer or its calls."""
    if not exchanges or _quotable(exchanges[-1].message) not in text:
        return False
    answer = exchanges[-1].answered[:QUOTED_CHARS]
    return (len(answer.encode()) >= SHORTEST_QUOTE and answer in text) or _are_calls_quoted(last, text)


def _quotable(text: str) -> str:
    return "".join(text.split())[:QUOTED_CHARS]


def _are_calls_quoted(answer: ClientMessage, text: str) -> bool:
    """Whether a text without white space tells the calls of an answer, each by its name and what it was given."""
    parts = [part for call in answer.calls for part in (call.name, *_values_in(call))]
    quoted = [_quotable(part) for part in parts]
    return len("".join(quoted).encode()) >= SHORTEST_QUOTE and all(part in text for part in quoted)


def _conversations(dialogs: QuerySet[Dialog]) -> QuerySet[Dialog]:
    return dialogs.exclude(origin=Dialog.Origin.BACKGROUND)


def _newest_exchanges(dialogs: QuerySet[Dialog]) -> Iterator[Newest]:
    """What was said last in each of the newest ones of these."""
    newest = dialogs.order_by("-active_at")
    turns = Turn.objects.filter(
        SPOKEN,
        dialog__in=newest.values("pk")[:CANDIDATES],
        position__gt=F("dialog__last_position") - LAST_TURNS,
    )
    for dialog_id, turns_of_one in groupby(turns.order_by("dialog", "position"), lambda turn: turn.dialog_id):
        messages = list(_spoken(turns_of_one))
        yield dialog_id, exchanges_of(messages), messages[-1]


def messages_in(dialog_id: UUID) -> Iterator[ClientMessage]:
    return _spoken(_turns_in(dialog_id))


@Select
def _turns_in(dialog_id: UUID) -> QuerySet[Turn]:
    turns = Turn.objects.filter(SPOKEN, dialog=dialog_id, position__isnull=False).order_by("position")
    return turns.only("role", "position", "text", "attachments", "tool_calls")


def _spoken(turns: Iterable[Turn]) -> Iterator[ClientMessage]:
    """A dialog as its client saw it: a question to a person was text of the answer, and its reply the user's."""
    for turn in turns:
        if turn.role == Turn.Role.ASSISTANT:
            text = turn.text + "".join(f"\n\n{question}" for question in questions_in(turn))
            yield ClientMessage("assistant", text, _calls_of(turn), position=turn.position or 0)
        else:
            typed, files = text_typed(turn.text, turn.attachments), digests(turn.attachments)
            yield ClientMessage("user", typed, position=turn.position or 0, digests=files)


def _calls_of(turn: Turn) -> tuple[Call, ...]:
    return tuple(Call(call["id"], call["name"], call["arguments"]) for call in turn.tool_calls or ())


def questions_in(turn: Turn) -> Iterator[str]:
    """The questions to a person with which an answer ended."""
    for call in turn.tool_calls or ():
        if call["name"] == ASK_HUMAN:
            try:
                yield str(orjson.loads(call["arguments"])["question"])
            except (ValueError, KeyError, TypeError):
                continue  # it was refused as malformed, so nobody was asked
