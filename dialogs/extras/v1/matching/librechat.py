"""LibreChat asks beside a conversation for its language and its title."""

from dialogs.extras.v1.matching.matcher import Matcher

BEGINS = "Analyze this conversation and provide:\n1. The detected language"

MATCHER = Matcher("LibreChat", asks_beside=lambda _, text: text.startswith(BEGINS))
