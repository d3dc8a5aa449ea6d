"""Open WebUI asks beside a conversation for a title, tags, follow-ups, searches, and which of its tools would help."""

from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.matching.matcher import Matcher

# Its retrieval begins with the heading as well, and holds no history; the heading may be in other languages.
HEADING, HISTORY = "### ", "<chat_history>"
BEGINS = (
    "Your task is to reflect the speaker's likely facial expression",  # a face for a call
    "You have been provided with a set of responses from various models",  # one answer of several
)
TOOLS, QUERY = "Available Tools: ", "Query: "  # system and user


def asks_beside(incoming: Incoming, text: str) -> bool:
    if text.startswith(BEGINS) or (text.startswith(HEADING) and HISTORY in text):
        return True
    return incoming.request.instructions.startswith(TOOLS) and text.startswith(QUERY)


MATCHER = Matcher("Open WebUI", asks_beside=asks_beside)
