"""mini-swe-agent leaves out an answer that held no call, and says in its place that it held none. By Anthropic's API,
where the user never speaks twice in a row, that and the next task are one message.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from dialogs.extras.v1.exchanges import DISTINCT_CHARS, exchanges_of, keys_of, without_reminders
from dialogs.extras.v1.history import ClientMessage, Conversation
from dialogs.extras.v1.likeness import Fit, fit
from dialogs.extras.v1.matching.incoming import Candidate, Incoming
from dialogs.extras.v1.matching.matcher import Matcher
from dialogs.extras.v1.transcripts import CANDIDATES, messages_in
from dialogs.state import State

WORD = re.compile(r"\S+")


def find(incoming: Incoming) -> Candidate | None:
    """Return the one dialog whose messages are told with all calls, and without some of the other answers."""
    conversation = incoming.conversation
    told = (*conversation.before, *conversation.ahead)
    spoken, calls = _words_of_user(conversation.before), _calls(told)
    if not told or not (calls or sum(map(len, _words_of_user(told))) >= DISTINCT_CHARS):
        return None
    first = keys_of(exchanges_of([one for one in told if one.role == "user"][:1])).first
    rows = incoming.dialogs.filter(client__first=first, state=State.IDLE).values_list("pk", "last_turn_seq")
    results = []
    for dialog_id, seq in rows[:CANDIDATES]:
        messages = list(messages_in(dialog_id))
        said, known = " ".join((*spoken, "")), " ".join((*_words_of_user(messages), ""))
        rest = known.removeprefix(said).strip()
        held = _count_held(conversation, rest) if known.startswith(said) and messages[-1].role == "assistant" else None
        if held is None or _calls(messages) != calls:
            continue
        stored = exchanges_of(_without_left_out(messages, _places_of_answers(told)))
        result = fit(exchanges_of((*conversation.before, ClientMessage("user", rest))), stored)
        if result or calls:  # an id is of one call alone
            ahead, chars = held
            whole = tuple(exchanges_of(messages))
            fits = result or Fit(False, 0, 0)
            results.append(Candidate(dialog_id, seq, whole, 0, fits, held_ahead=ahead, held_chars=chars))
    return results[0] if len(results) == 1 else None


def _count_held(conversation: Conversation, text: str) -> tuple[int, int] | None:
    """Return how many of the new messages begin with a text, all but the newest whole, and how many characters of the
    newest do; None where they do not, or hold nothing else.
    """
    for number, one in enumerate(conversation.ahead):
        spoken = without_reminders(one.spoken)
        if not text:
            return number, 0
        if not f"{text} ".startswith(f"{spoken} "):
            return None
        text = text[len(spoken) :].strip()
    known = text.split()
    words = list(islice(WORD.finditer(conversation.message), len(known) + 1))
    if len(words) <= len(known) or [word[0] for word in words[:-1]] != known:
        return None
    return len(conversation.ahead), words[-1].start() if known else 0


def _calls(messages: Sequence[ClientMessage]) -> list[str]:
    return [call.id for one in messages for call in one.calls]


def _words_of_user(messages: Sequence[ClientMessage]) -> list[str]:
    return [without_reminders(one.spoken) for one in messages if one.role == "user"]


def _places(messages: Sequence[ClientMessage]) -> Iterator[tuple[int, ClientMessage]]:
    """Yield the messages, each with the number of the user's messages before it."""
    place = 0
    for one in messages:
        yield place, one
        place += one.role == "user"


def _places_of_answers(messages: Sequence[ClientMessage]) -> set[int]:
    """Return the places of answers in words alone."""
    return {place for place, one in _places(messages) if one.role == "assistant" and not one.calls}


def _without_left_out(stored: Sequence[ClientMessage], answered: set[int]) -> list[ClientMessage]:
    """Return what is stored without the answers in words alone that are not told."""
    return [one for place, one in _places(stored) if one.role == "user" or one.calls or place in answered]


MATCHER = Matcher("mini-swe-agent", find)
