"""opencode asks beside a conversation for its title."""

import re

from dialogs.extras.v1.matching.matcher import Matcher

BEGINNING = 200  # characters
TITLE = re.compile(
    r"\b(?:generate|provide|create|write)\b[^.\n]{0,60}\btitle\b[^.\n]{0,10}\bfor (?:the|this|a) conversation", re.I
)

MATCHER = Matcher("opencode", asks_beside=lambda _, text: bool(TITLE.search(text[:BEGINNING])))
