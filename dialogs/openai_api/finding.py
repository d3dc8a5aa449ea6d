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

CANDIDATES = 8
LAST_TURNS = 8  # of a dialog, in which what was said last is looked for
SHORTEST_QUOTE, QUOTED_CHARS = 20, 120  # without white space; programs cut what they quote
ANSWER_TO_AGENT = Q(tool_name=ASK_HUMAN, status=Turn.Status.OK)
SPOKEN = Q(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]) | ANSWER_TO_AGENT
WITHOUT_ANSWER = ((Turn.Role.USER, Turn.Status.FAILED), (Turn.Role.USER, Turn.Status.STOPPED))
CALL_ID = re.compile(r"\bcall_[0-9]{1,18}_[0-9]{1,9}\b")  # as outcomes.generation_of_call reads it
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)


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


def find(key: ApiKey, agent: Agent, told: Conversation, end_user: str, instructions: str = "") -> Candidate | None:
    """The dialog that goes on here, or else the one that shares the longest beginning with what is told."""
    named = frozenset(call for said in told.before for call in calls_in_words(said))
    exchanges = exchanges_of(_by_calls(told.before, named))
    mine = Dialog.objects.filter(client__key=key, client__end_user=end_user, agent=agent).order_by("-active_at")
    said = [one.text for one in told.whole] + [one.text for one in told.system]
    text = without_spaces((instructions, *said))
    has_answer = any(one.answered for one in exchanges)
    found = _among_those_alike(mine, told, exchanges, text, named) if has_answer else _without_answer(mine, told)
    if told.results and not told.has_message:  # another answer to results that were answered: never the dialog's end
        shared = min(found.shared, len(exchanges) - 1) if found else 0
        return replace(found, fit=None, shared=shared) if found and shared else None
    return found if found and found.fit else (_summed_up(mine, text) or found)


def calls_in_words(said: ClientMessage) -> list[str]:
    """Ids of calls made here that an answer tells as text, as agents do whose models need not know of tools."""
    return CALL_ID.findall(said.text) if said.role == "assistant" and not said.calls else []


def _by_calls(messages: Iterable[ClientMessage], named: frozenset[str]) -> Iterator[ClientMessage]:
    """An answer with calls that are told as text is these calls, whatever else it says there."""
    for said in messages:
        ids = [*CALL_ID.findall(said.text), *(call.id for call in said.calls)] if named else []
        calls = [call for call in ids if call in named] if said.role == "assistant" else []
        yield replace(said, text=" ".join(calls)) if calls else said


def _among_those_alike(
    mine: QuerySet[Dialog], told: Conversation, exchanges: Sequence[Exchange], text: str, named: frozenset[str]
) -> Candidate | None:
    seen: dict[UUID, Candidate] = {}
    for dialogs in (_with_same_head(mine, told, exchanges), mine.filter(client__first=keys_of(exchanges).first)):
        for dialog_id, seq, state in list(dialogs.values_list("pk", "last_turn_seq", "state")[:CANDIDATES]):
            if dialog_id in seen:
                continue
            stored = tuple(exchanges_of(_by_calls(said_in(dialog_id), named)))
            again = bool(stored) and not stored[-1].answered and [stored[-1]] == exchanges_of(told.whole)[-1:]
            found = _fit(exchanges, stored, state, text, again=again)
            seen[dialog_id] = Candidate(dialog_id, seq, stored, same_beginning(exchanges, stored), found, again)
            if found and found.exact:
                return seen[dialog_id]
    return _best(list(seen.values()))


def _without_answer(mine: QuerySet[Dialog], told: Conversation) -> Candidate | None:
    """The dialog that holds the same and got no word of an answer: programs send again what failed."""
    whole = exchanges_of(told.whole)
    same = mine.filter(state__in=(State.IDLE, State.FAILED), client__said=keys_of(whole).said)
    for dialog_id, seq in list(same.values_list("pk", "last_turn_seq")[:CANDIDATES]):
        turns = Turn.objects.filter(dialog=dialog_id).exclude(role=Turn.Role.NOTICE).order_by("-position")
        newest = turns.values_list("role", "status").first()
        if newest in WITHOUT_ANSWER and (stored := tuple(exchanges_of(said_in(dialog_id)))) == tuple(whole):
            return Candidate(dialog_id, seq, stored, 0, Fit(True, 0, 0), again=True)
    return None


def _fit(told: Sequence[Exchange], stored: Sequence[Exchange], state: str, text: str, *, again: bool) -> Fit | None:
    """Where a message is asked again, or a person asked, nothing can come between."""
    if state not in AT_HEAD:
        return None
    if again or state == State.WAITING:
        return fit(told, stored[: -1 if again else None], text)
    return fit_or_beyond(told, stored, text)


def _summed_up(mine: QuerySet[Dialog], text: str) -> Candidate | None:
    """The one of the newest dialogs in which the client asked last for a summary that it now tells in the place of what was said."""
    if len(text) < DISTINCT_CHARS:
        return None
    newest = _newest_said(mine.filter(state__in=AT_HEAD))
    found = [dialog_id for dialog_id, exchanges in newest if exchanges and is_summary(exchanges[-1], text)]
    if len(found) != 1:
        return None
    seq, stored = mine.values_list("last_turn_seq", flat=True).get(pk=found[0]), tuple(exchanges_of(said_in(found[0])))
    return Candidate(found[0], seq, stored, 0, fit_of_summary(stored, text))


def after_head(told: Conversation, candidate: Candidate) -> Conversation:
    """With what the client says of the time after the dialog's head as new, so far as it is not known there."""
    if told.results:  # with a message: the dialog holds them
        told = replace(told, before=(*told.before, *told.results), results=())
    if candidate.fit and candidate.fit.summed_up:
        new = [said for said in told.ahead[_behind_summary(told, candidate) :] if said.role == "user"]
        return replace(told, ahead=tuple(new))
    if candidate.fit is None or not candidate.fit.beyond:
        return told
    before = [replace(said, position=number) for number, said in enumerate(told.before)]
    beyond = exchanges_of(before)[-candidate.fit.beyond :]
    news = {exchange.begin for exchange in news_of(beyond, candidate.stored)}
    ends = [exchange.begin for exchange in beyond[1:]] + [len(before)]
    new = [said for one, end in zip(beyond, ends, strict=True) if one.begin in news for said in before[one.begin : end]]
    return replace(told, before=told.before[: beyond[0].begin], ahead=(*new, *told.ahead))


def _behind_summary(told: Conversation, candidate: Candidate) -> int:
    """How many of the messages ahead are the client's account of what was said, up to its summary."""
    said = (*told.ahead, ClientMessage("user", told.message))
    holds = (is_summary(candidate.stored[-1], without_spaces([one.text])) for one in said)
    return max((number for number, found in enumerate(holds, 1) if found), default=0)


def _with_same_head(mine: QuerySet[Dialog], told: Conversation, exchanges: Sequence[Exchange]) -> QuerySet[Dialog]:
    """Dialogs whose user, or agent, said last what the client tells as said last; likeliest first."""
    keys = keys_of(exchanges)
    heard = list(islice(filter(None, map(_heard, reversed(told.before))), MOST_BEYOND + 1))
    again = keys_of(exchanges_of(told.whole)).said
    said, newest = Q(client__said__in=[keys.said, again]), Q(client__newest=keys.newest)
    answered = Q(client__heard__in=heard)
    either = said | newest | answered if heard else said | newest
    likelihood = Case(
        When(said, Value(0)), When(newest & answered, Value(1)), When(answered, Value(2)), default=Value(3)
    )
    return mine.filter(either, state__in=AT_HEAD).order_by(likelihood, "-active_at")


def _heard(said: ClientMessage) -> str:
    return answer_key(said.text) if said.role == "assistant" else ""


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
    for _, exchanges in _newest_said(mine):
        for exchange in exchanges[-1:]:
            asked, answered = "".join(exchange.asked.split())[:QUOTED_CHARS], exchange.answered[:QUOTED_CHARS]
            if len(answered) >= SHORTEST_QUOTE and asked in text and answered in text:
                return True
    return False


def _newest_said(dialogs: QuerySet[Dialog]) -> Iterator[tuple[UUID, list[Exchange]]]:
    """What was said last in each of the newest ones of these that are conversations."""
    newest = dialogs.exclude(origin=Dialog.Origin.BACKGROUND).order_by("-active_at")
    turns = Turn.objects.filter(
        SPOKEN,
        dialog__in=newest.values("pk")[:CANDIDATES],
        position__gt=F("dialog__last_position") - LAST_TURNS,
    )
    for dialog_id, said in groupby(turns.order_by("dialog", "position"), lambda turn: turn.dialog_id):
        yield dialog_id, exchanges_of(_spoken(said))


def said_in(dialog_id: UUID) -> Iterator[ClientMessage]:
    turns = Turn.objects.filter(SPOKEN, dialog=dialog_id, position__isnull=False).order_by("position")
    return _spoken(turns.only("role", "position", "text", "attachments", "tool_calls"))


def _spoken(turns: Iterable[Turn]) -> Iterator[ClientMessage]:
    """A dialog as its client saw it: a question to a person was text of the answer, and its reply the user's."""
    for turn in turns:
        if turn.role == Turn.Role.ASSISTANT:
            text = turn.text + "".join(f"\n\n{asked}" for asked in asked_in(turn))
            calls = tuple(Call(call["id"], call["name"], call["arguments"]) for call in turn.tool_calls or ())
            yield ClientMessage("assistant", text, calls, position=turn.position or 0)
        else:
            typed, files = text_typed(turn.text, turn.attachments), digests(turn.attachments)
            yield ClientMessage("user", typed, position=turn.position or 0, digests=files)


def asked_in(turn: Turn) -> Iterator[str]:
    """The questions to a person with which an answer ended."""
    for call in turn.tool_calls or ():
        if call["name"] == ASK_HUMAN:
            try:
                yield str(orjson.loads(call["arguments"])["question"])
            except (ValueError, KeyError, TypeError):
                continue  # it was refused as malformed, so nobody was asked
