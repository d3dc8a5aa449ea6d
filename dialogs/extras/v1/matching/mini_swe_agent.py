"""mini-swe-agent leaves out an answer that held no call, and says in its place that it held none."""

from dialogs.extras.v1.likeness import DISTINCT_CHARS, Fit, exchanges_of, keys_of
from dialogs.extras.v1.matching.incoming import Candidate, Incoming
from dialogs.extras.v1.matching.matcher import Matcher
from dialogs.extras.v1.transcripts import CANDIDATES, messages_in
from dialogs.state import State


def find(incoming: Incoming) -> Candidate | None:
    """Return the one dialog of words alone whose messages are told without their answers."""
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
            fit = Fit(False, 0, 0)
            results.append(Candidate(dialog_id, seq, stored, 0, fit, held_ahead=len(conversation.ahead)))
    return results[0] if len(results) == 1 else None


MATCHER = Matcher("mini-swe-agent", find)
