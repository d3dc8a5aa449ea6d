"""Requests that quote a conversation: programs ask so, in whatever words, for its title, its tags or the next
questions."""

from dialogs.extras.v1.matching.incoming import Incoming, without_background
from dialogs.extras.v1.transcripts import newest_of


def quotes_newest(incoming: Incoming, prompt: str) -> bool:
    """Check whether a prompt quotes the last exchange of one of the newest dialogs."""
    text = "".join(prompt.split())
    return any(one.is_quoted_in(text) for one in newest_of(without_background(incoming.own_dialogs)))
