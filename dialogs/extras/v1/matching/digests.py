"""Finds the dialog that a history continues: digests select candidates, and comparing the texts decides."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from time import monotonic, sleep
from uuid import UUID

from django.db.models import Case, Q, QuerySet, Value, When

from dialogs.extras.v1.exchanges import Exchange, answer_key, exchanges_of, keys_of
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.likeness import MOST_BEYOND, Fit, fit, fit_of_beginning, same_beginning
from dialogs.extras.v1.matching.incoming import AT_HEAD, Candidate, Incoming, dialogs_of
from dialogs.extras.v1.transcripts import CANDIDATES, messages_in
from dialogs.models import Dialog, Turn
from dialogs.state import State
from dominds.db.hand_back import hand_back
from dominds.db.prepared import Select

WITHOUT_ANSWER = (Turn.Status.FAILED, Turn.Status.STOPPED, Turn.Status.SUSPENDED)
HELD_UP = (State.SUSPENDED, State.CLOSED)  # by the runtime or a person: what would go on there is refused
ENDED = (*AT_HEAD, *HELD_UP)
STOPPING_SECONDS = 3  # a worker sees within half a second that an answer is to be stopped
STOPPING_POLL_SECONDS = 0.1

Row = tuple[UUID, int, str]  # a dialog, its last turn and its state
_HELD_UP_LAST = Case(When(state__in=HELD_UP, then=Value(1)), default=Value(0))


def most_alike(incoming: Incoming) -> Candidate | None:
    """Return the dialog that an answered history continues, or else the one that shares its longest beginning."""
    seen: dict[UUID, Candidate] = {}
    for dialog_id, seq, state in _likeliest_first(incoming):
        if dialog_id not in seen:
            candidate = seen[dialog_id] = _compare(incoming, dialog_id, seq, state)
            if candidate.fit and candidate.fit.exact and not candidate.is_held_up:
                return candidate
    return _best(list(seen.values()))


def find_unanswered(incoming: Incoming) -> Candidate | None:
    """Return the dialog that holds the same and has no answer: programs send again what failed, or what they left."""
    for dialog_id, seq, state in _with_same_messages(incoming, incoming.exchanges):
        if state != State.WAITING and _status_of_newest.first(dialog_id) in WITHOUT_ANSWER:
            stored = exchanges_of(messages_in(dialog_id))
            if [one.message for one in stored] == [one.message for one in incoming.exchanges]:
                return Candidate(dialog_id, seq, tuple(stored), 0, Fit(True, 0, 0), again=True)
    return None


@Select
def _status_of_newest(dialog_id: UUID) -> QuerySet[Turn, str]:
    """Return how the newest message of a dialog ended."""
    placed = Turn.objects.filter(dialog=dialog_id, role=Turn.Role.USER, position__isnull=False)
    return placed.order_by("-position").values_list("status", flat=True)[:1]


def _likeliest_first(incoming: Incoming) -> Iterator[Row]:
    """Yield dialogs, and ask for the less likely ones only where no other fits exactly."""
    yield from _with_same_messages(incoming, incoming.history, incoming.exchanges)
    same_first = incoming.dialogs.filter(client__first=keys_of(incoming.history).first)
    for dialogs in (_with_same_head(incoming), same_first):
        yield from list(dialogs.values_list("pk", "last_turn_seq", "state")[:CANDIDATES])


def _with_same_messages(incoming: Incoming, *histories: Sequence[Exchange]) -> list[Row]:
    """Return dialogs whose user wrote what one of these, one or two, holds: almost always the right one. An answer
    whose client has just gone is waited for until it has ended: the client may have sent the same again.
    """
    wholes = [keys_of(history).whole for history in histories]
    asked = incoming.key.pk, incoming.request.end_user, incoming.agent.pk, wholes[0], wholes[-1]
    rows, deadline = list(_by_messages(*asked)), monotonic() + STOPPING_SECONDS
    while any(state not in ENDED for _, _, state in rows) and monotonic() < deadline:
        hand_back("for an answer to stop")
        sleep(STOPPING_POLL_SECONDS)
        rows = list(_by_messages(*asked))
    return [row for row in rows if row[-1] in ENDED]


@Select
def _by_messages(key_id: int, end_user: str, agent_id: str, whole: str, again: str) -> QuerySet[Dialog, Row]:
    same = dialogs_of(key_id, end_user).filter(agent=agent_id, client__messages_digest__in=[whole, again])
    same = same.filter(Q(state__in=ENDED) | Q(stop_requested=True))
    return same.order_by("-active_at").values_list("pk", "last_turn_seq", "state")[:CANDIDATES]


def _with_same_head(incoming: Incoming) -> QuerySet[Dialog]:
    """Return dialogs that end with the user's message, or the answer, with which the history ends; likeliest first."""
    keys = keys_of(incoming.history)
    answers = (one.text for one in reversed(incoming.conversation.before) if one.role == "assistant")
    answer_keys = list(islice(filter(None, map(answer_key, answers)), MOST_BEYOND + 1))
    again = incoming.keys.whole
    whole, newest = Q(client__messages_digest__in=[keys.whole, again]), Q(client__newest=keys.newest)
    answer = Q(client__answer_digest__in=answer_keys)
    either = whole | newest | answer if answer_keys else whole | newest
    likelihood = Case(When(whole, Value(0)), When(newest & answer, Value(1)), When(answer, Value(2)), default=Value(3))
    at_an_end = incoming.dialogs.filter(either, state__in=ENDED)
    return at_an_end.order_by(_HELD_UP_LAST, likelihood, "-active_at")


def _compare(incoming: Incoming, dialog_id: UUID, last_turn_seq: int, state: str) -> Candidate:
    history = incoming.history
    stored = tuple(incoming.comparable(messages_in(dialog_id)))
    is_repeated = bool(stored) and [stored[-1].message] == [one.message for one in incoming.exchanges[-1:]]
    is_repeated = is_repeated and incoming.request.is_asking and incoming.conversation.has_message
    again = is_repeated and _status_of_newest.first(dialog_id) in WITHOUT_ANSWER
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


def _with_arguments_as_text(messages: Iterable[ClientMessage]) -> Iterator[ClientMessage]:
    """Put what a call was made with in the place of an answer that has no words: so users of instructor tell the value
    that they asked for by a tool.
    """
    for message in messages:
        words = "" if message.text else " ".join(call.arguments for call in message.calls)
        yield replace(message, text=words) if words else message


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
