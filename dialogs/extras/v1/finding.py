"""Finds the dialog that a request continues, what of its conversation is new there, and what is asked beside one."""

from dataclasses import replace

from dialogs.extras.v1.asked_summaries import stands_in
from dialogs.extras.v1.exchanges import exchanges_of, without_spaces
from dialogs.extras.v1.history import ClientMessage, Conversation
from dialogs.extras.v1.likeness import not_stored
from dialogs.extras.v1.matching.clients import MATCHERS
from dialogs.extras.v1.matching.digests import find_unanswered, most_alike
from dialogs.extras.v1.matching.incoming import Candidate, Incoming
from dialogs.extras.v1.matching.quoting import quotes_newest
from dominds.llm.messages import NO_TOOL


def find(incoming: Incoming) -> Candidate | None:
    """Return the dialog that the conversation continues, or else the one that shares its longest beginning."""
    has_answer = any(one.answered for one in incoming.history)
    result = most_alike(incoming) if has_answer else find_unanswered(incoming)
    # Here results without a message ask for another answer, since no call waits for them.
    if incoming.conversation.results and not incoming.conversation.has_message:
        shared = min(result.shared, len(incoming.history) - 1) if result else 0
        return replace(result, fit=None, shared=shared) if result and shared else None
    if result and result.fit:
        return result
    return next((found for client in MATCHERS if (found := client.find(incoming))), result)


def is_background(incoming: Incoming) -> bool:
    """Check whether a program asks beside a conversation: for its title, its tags, a commit's message or the like."""
    request, conversation = incoming.request, incoming.conversation
    # One tool that must be called is a way to ask for a value of a schema.
    asks_for_value = len(request.tools) == 1 and request.required_tool not in ("", NO_TOOL)
    if request.tools and not asks_for_value:
        return False
    if any(message.role != "user" for message in (*conversation.before, *conversation.results)):
        return False
    text = "\n\n".join((*(message.text for message in conversation.ahead), conversation.message)).lstrip()
    return any(client.asks_beside(incoming, text) for client in MATCHERS) or quotes_newest(incoming, text)


def asks_for_title(conversation: Conversation) -> bool:
    """Check whether the newest message is a program's, and asks for the title of what stands before it."""
    if not conversation.before or conversation.results:
        return False
    return any(client.is_title(conversation.message.lstrip()) for client in MATCHERS)


def after_head(conversation: Conversation, candidate: Candidate) -> Conversation:
    """Take as new what the client puts behind the newest exchange of the dialog, as far as it is not stored there."""
    if conversation.results:  # beside a message they were sent before, so the dialog holds them
        conversation = replace(conversation, before=(*conversation.before, *conversation.results), results=())
    if candidate.held_ahead or candidate.held_chars:
        ahead, message = conversation.ahead[candidate.held_ahead :], conversation.message[candidate.held_chars :]
        is_new = bool(message or conversation.attached)
        return replace(conversation, ahead=ahead, message=message, has_message=is_new)
    if candidate.fit and candidate.fit.summed_up:
        ahead = conversation.ahead[_end_of_summary(conversation, candidate) :]
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


def _end_of_summary(conversation: Conversation, candidate: Candidate) -> int:
    """Count the messages ahead that recount the history, up to its summary."""
    messages = (*conversation.ahead, ClientMessage("user", conversation.message))
    holds = (stands_in(candidate.stored[-1].answered, without_spaces([one.text])) for one in messages)
    return max((number for number, is_held in enumerate(holds, 1) if is_held), default=0)
