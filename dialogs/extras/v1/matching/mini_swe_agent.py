"""mini-swe-agent leaves out an answer that held no call, and says in its place that it held none."""

from collections.abc import Iterator, Sequence

from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.likeness import DISTINCT_CHARS, Fit, exchanges_of, fit, keys_of, without_reminders
from dialogs.extras.v1.matching.incoming import Candidate, Incoming
from dialogs.extras.v1.matching.matcher import Matcher
from dialogs.extras.v1.transcripts import CANDIDATES, messages_in
from dialogs.state import State


def find(incoming: Incoming) -> Candidate | None:
    """Return the one dialog whose messages are told with all calls, and without some of the other answers."""
    conversation = incoming.conversation
    told = (*conversation.before, *conversation.ahead)
    spoken, calls = _spoken(told), _calls(told)
    if not spoken or not (calls or sum(map(len, spoken)) >= DISTINCT_CHARS):
        return None
    first = keys_of(exchanges_of([one for one in told if one.role == "user"][:1])).first
    rows = incoming.dialogs.filter(client__first=first, state=State.IDLE).values_list("pk", "last_turn_seq")
    results = []
    for dialog_id, seq in rows[:CANDIDATES]:
        messages = list(messages_in(dialog_id))
        known = _spoken(messages)
        ahead = len(known) - len(_spoken(conversation.before))
        is_told = ahead >= 0 and spoken[: len(known)] == known and messages[-1].role == "assistant"
        if not is_told or _calls(messages) != calls:
            continue
        stored = exchanges_of(_without_left_out(messages, _answered(told)))
        result = fit(exchanges_of((*conversation.before, *conversation.ahead[:ahead])), stored)
        if result or calls:  # an id is of one call alone
            result = result or Fit(False, 0, 0)
            results.append(Candidate(dialog_id, seq, tuple(exchanges_of(messages)), 0, result, held_ahead=ahead))
    return results[0] if len(results) == 1 else None


def _calls(messages: Sequence[ClientMessage]) -> list[str]:
    return [call.id for one in messages for call in one.calls]


def _spoken(messages: Sequence[ClientMessage]) -> list[str]:
    return [without_reminders(one.spoken) for one in messages if one.role == "user"]


def _places(messages: Sequence[ClientMessage]) -> Iterator[tuple[int, ClientMessage]]:
    """Yield the messages, each with the number of the user's messages before it."""
    place = 0
    for one in messages:
        yield place, one
        place += one.role == "user"


def _answered(messages: Sequence[ClientMessage]) -> set[int]:
    """Return the places of answers in words alone."""
    return {place for place, one in _places(messages) if one.role == "assistant" and not one.calls}


def _without_left_out(stored: Sequence[ClientMessage], answered: set[int]) -> list[ClientMessage]:
    """Return what is stored without the answers in words alone that are not told."""
    return [one for place, one in _places(stored) if one.role == "user" or one.calls or place in answered]


MATCHER = Matcher("mini-swe-agent", find)
