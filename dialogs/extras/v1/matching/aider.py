"""aider asks beside a conversation for the message of a commit, and for a summary of its own."""

import re

from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.matching.matcher import Matcher

BEGINNING = 200  # characters of its system message
ASKS = re.compile(r"\bone-line git commit messages?\b|\bsummarize this partial conversation\b", re.I)


def asks_beside(incoming: Incoming, _: str) -> bool:
    return bool(ASKS.search(incoming.request.instructions[:BEGINNING]))


MATCHER = Matcher("aider", asks_beside=asks_beside)
