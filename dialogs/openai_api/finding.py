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
    answer_key,
    exchanges_of,
    fit,
    fit_of_summary,
    fit_or_beyond,
    is_summary,
    keys_of,
    news_of,
    same_beginning,
    without_spaces,
)
from dialogs.state import State
from dominds.db.prepared import Select

CANDIDATES = 8
LAST_TURNS = 8  # of a dialog, in which what was said last is looked for
SHORTEST_QUOTE, QUOTED_CHARS = 20, 120  # without white space; programs cut what they quote
ANSWER_TO_AGENT = Q(tool_name=ASK_HUMAN, status=Turn.Status.OK)
SPOKEN = Q(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]) | ANSWER_TO_AGENT
WITHOUT_ANSWER = ((Turn.Role.USER, Turn.Status.FAILED), (Turn.Role.USER, Turn.Status.STOPPED))
CALL_ID = re.compile(r"\bcall_[0-9]{1,18}_[0-9]{1,9}\b")  # as outcomes.generation_of_call reads it
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)
NO_KEY = "-"  # is no digest, and equals none
Mine = tuple[int, str, str]  # key, end user and agent of a client's dialogs


@dataclass(frozen=True, slots=True)
class Candidate:
    """``last_turn_seq`` tells whether the dialog is still the one that was read. Its first ``shared`` exchanges are told as
    they are; ``fit`` is how well the whole fits, None where the dialog does not go on here. ``again``: its newest message
    had no answer, and is sent once more."""

    dialog_id: UUID
    last_turn_seq: int
    stored: tuple[Exchange, ...]
    shared: int
    fit: Fit | None
    again: bool = False


def find(
    key: ApiKey, agent: Agent, conversation: Conversation, end_user: str, instructions: str = ""
) -> Candidate | None:
    """The dialog that goes on here, or else the one that shares the longest beginning with what is told."""
    named = frozenset(call for message in conversation.before for call in calls_in_words(message))
    exchanges = exchanges_of(_by_calls(conversation.before, named))
    mine = _of(key.pk, end_user, agent.pk).order_by("-active_at")
    texts = [one.text for one in conversation.whole] + [one.text for one in conversation.system]
    text = without_spaces((instructions, *texts))
    has_answer = any(one.answered for one in exchanges)
    if has_answer:
        found = _among_those_alike((key.pk, end_user, agent.pk), conversation, exchanges, text, named)
    else:
        found = _without_answer(mine, conversation)
    # Another answer to results that were answered: never the dialog's end.
    if conversation.results and not conversation.has_message:
        shared = min(found.shared, len(exchanges) - 1) if found else 0
        return replace(found, fit=None, shared=shared) if found and shared else None
    return found if found and found.fit else (_summed_up(mine, text) or found)


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
    mine: Mine, conversation: Conversation, exchanges: Sequence[Exchange], text: str, named: frozenset[str]
) -> Candidate | None:
    seen: dict[UUID, Candidate] = {}
    for dialog_id, seq, state in _alike(mine, conversation, exchanges):
        if dialog_id in seen:
            continue
        stored = tuple(exchanges_of(_by_calls(messages_in(dialog_id), named)))
        again = bool(stored) and not stored[-1].answered and [stored[-1]] == exchanges_of(conversation.whole)[-1:]
        found = _fit(exchanges, stored, state, text, again=again)
        seen[dialog_id] = Candidate(dialog_id, seq, stored, same_beginning(exchanges, stored), found, again)
        if found and found.exact:
            return seen[dialog_id]
    return _best(list(seen.values()))


def _without_answer(mine: QuerySet[Dialog], conversation: Conversation) -> Candidate | None:
    """The dialog that holds the same and got no word of an answer: programs send again what failed."""
    whole = exchanges_of(conversation.whole)
    same = mine.filter(state__in=(State.IDLE, State.FAILED), client__said=keys_of(whole).whole)
    for dialog_id, seq in list(same.values_list("pk", "last_turn_seq")[:CANDIDATES]):
        turns = Turn.objects.filter(dialog=dialog_id).exclude(role=Turn.Role.NOTICE).order_by("-position")
        newest = turns.values_list("role", "status").first()
        if newest in WITHOUT_ANSWER and (stored := tuple(exchanges_of(messages_in(dialog_id)))) == tuple(whole):
            return Candidate(dialog_id, seq, stored, 0, Fit(True, 0, 0), again=True)
    return None


def _fit(history: Sequence[Exchange], stored: Sequence[Exchange], state: str, text: str, *, again: bool) -> Fit | None:
    """Where a message is asked again, or a person asked, nothing can come between."""
    if state not in AT_HEAD:
        return None
    if again or state == State.WAITING:
        return fit(history, stored[: -1 if again else None], text)
    return fit_or_beyond(history, stored, text)


def _summed_up(mine: QuerySet[Dialog], text: str) -> Candidate | None:
    """The one of the newest dialogs in which the client asked last for a summary that it now tells in the place of what was said."""
    if len(text) < DISTINCT_CHARS:
        return None
    newest = _newest_exchanges(mine.filter(state__in=AT_HEAD))
    found = [dialog_id for dialog_id, exchanges in newest if exchanges and is_summary(exchanges[-1], text)]
    if len(found) != 1:
        return None
    seq = mine.values_list("last_turn_seq", flat=True).get(pk=found[0])
    stored = tuple(exchanges_of(messages_in(found[0])))
    return Candidate(found[0], seq, stored, 0, fit_of_summary(stored, text))


def after_head(conversation: Conversation, candidate: Candidate) -> Conversation:
    """With what the client says of the time after the dialog's head as new, so far as it is not known there."""
    if conversation.results:  # with a message: the dialog holds them
        conversation = replace(conversation, before=(*conversation.before, *conversation.results), results=())
    if candidate.fit and candidate.fit.summed_up:
        ahead = conversation.ahead[_behind_summary(conversation, candidate) :]
        return replace(conversation, ahead=tuple(message for message in ahead if message.role == "user"))
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
    holds = (is_summary(candidate.stored[-1], without_spaces([one.text])) for one in messages)
    return max((number for number, found in enumerate(holds, 1) if found), default=0)


def _alike(mine: Mine, conversation: Conversation, exchanges: Sequence[Exchange]) -> Iterator[tuple[UUID, int, str]]:
    """Id, newest turn and state of dialogs, likeliest first. The later ones are asked for when the first are not taken."""
    yield from _with_same_head(*mine, *_heads(conversation, exchanges))
    yield from _with_same_first(*mine, keys_of(exchanges).first)


def _heads(conversation: Conversation, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """The digests of what the client tells as said last, for ``_with_same_head``."""
    keys, again = keys_of(exchanges), keys_of(exchanges_of(conversation.whole)).whole
    answers = list(islice(filter(None, map(_key_of_answer, reversed(conversation.before))), MOST_BEYOND + 1))
    return keys.whole, again, keys.newest, *answers, *[NO_KEY] * (MOST_BEYOND + 1 - len(answers))


@Select
def _with_same_head(
    key: int,
    end_user: str,
    agent: str,
    whole: str,
    again: str,
    newest: str,
    answer_1: str,
    answer_2: str,
    answer_3: str,
    answer_4: str,
    answer_5: str,
    answer_6: str,
    answer_7: str,
    answer_8: str,
    answer_9: str,
) -> QuerySet[Dialog, tuple[UUID, int, str]]:
    """Dialogs whose user, or agent, said last what the client tells as said last; likeliest first."""
    same, said_last = Q(client__said__in=[whole, again]), Q(client__newest=newest)
    heard = Q(
        client__heard__in=[answer_1, answer_2, answer_3, answer_4, answer_5, answer_6, answer_7, answer_8, answer_9]
    )
    of_heard = Case(When(said_last, Value(1)), default=Value(2))
    likelihood = Case(When(same, Value(0)), When(heard, of_heard), default=Value(3))
    dialogs = _of(key, end_user, agent).filter(same | said_last | heard, state__in=AT_HEAD)
    return dialogs.order_by(likelihood, "-active_at").values_list("pk", "last_turn_seq", "state")[:CANDIDATES]


@Select
def _with_same_first(key: int, end_user: str, agent: str, first: str) -> QuerySet[Dialog, tuple[UUID, int, str]]:
    dialogs = _of(key, end_user, agent).filter(client__first=first).order_by("-active_at")
    return dialogs.values_list("pk", "last_turn_seq", "state")[:CANDIDATES]


def _of(key: int, end_user: str, agent: str) -> QuerySet[Dialog]:
    return Dialog.objects.filter(client__key=key, client__end_user=end_user, agent=agent)


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
    if len(text) < SHORTEST_QUOTE:
        return False
    mine = Dialog.objects.filter(client__key=key, client__end_user=end_user)
    for _, exchanges in _newest_exchanges(mine):
        for exchange in exchanges[-1:]:
            message, answer = "".join(exchange.message.split())[:QUOTED_CHARS], exchange.answered[:QUOTED_CHARS]
            if len(answer) >= SHORTEST_QUOTE and message in text and answer in text:
                return True
    return False


def _newest_exchanges(dialogs: QuerySet[Dialog]) -> Iterator[tuple[UUID, list[Exchange]]]:
    """What was said last in each of the newest ones of these that are conversations."""
    newest = dialogs.exclude(origin=Dialog.Origin.BACKGROUND).order_by("-active_at")
    turns = Turn.objects.filter(
        SPOKEN,
        dialog__in=newest.values("pk")[:CANDIDATES],
        position__gt=F("dialog__last_position") - LAST_TURNS,
    )
    for dialog_id, turns_of_one in groupby(turns.order_by("dialog", "position"), lambda turn: turn.dialog_id):
        yield dialog_id, exchanges_of(_spoken(turns_of_one))


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
            calls = tuple(Call(call["id"], call["name"], call["arguments"]) for call in turn.tool_calls or ())
            yield ClientMessage("assistant", text, calls, position=turn.position or 0)
        else:
            typed, files = text_typed(turn.text, turn.attachments), digests(turn.attachments)
            yield ClientMessage("user", typed, position=turn.position or 0, digests=files)


def questions_in(turn: Turn) -> Iterator[str]:
    """The questions to a person with which an answer ended."""
    for call in turn.tool_calls or ():
        if call["name"] == ASK_HUMAN:
            try:
                yield str(orjson.loads(call["arguments"])["question"])
            except (ValueError, KeyError, TypeError):
                continue  # it was refused as malformed, so nobody was asked
