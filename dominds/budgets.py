"""Bounds on data from outside: how much a model, a tool server or a client may make this process hold.

Each bound has a setting (an environment variable) and a sentence that names both. Code that reads from outside counts
while it reads and stops at the bound, so that it never holds more.
"""

import os
from dataclasses import dataclass

MEGABYTE = 1_000_000


class OverBudget(ValueError):
    """Raised for more data from outside than ``bound`` allows. The message names the setting that raises the bound."""

    def __init__(self, bound: "Budget", subject: str) -> None:
        super().__init__(bound.sentence(subject))
        self.bound = bound


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound of ``most`` units. ``is_given`` says that it comes from the environment variable ``setting``."""

    setting: str
    most: int
    unit: str
    is_given: bool = False

    def sentence(self, subject: str) -> str:
        """Say that the bound was exceeded. ``subject`` begins the sentence, as in "api.example.com answered with"."""
        return f"{subject} more than {self.most:,} {self.unit}. {self.setting} sets this limit."

    def within(self, stated: int) -> int:
        """Return the bound that applies: the server's ``stated`` one, unless that is 0 or the operator set a lower."""
        if not stated:
            return self.most
        return min(stated, self.most) if self.is_given else stated

    def check(self, amount: int, subject: str = "There are") -> None:
        """Raise ``OverBudget`` if ``amount`` exceeds the bound."""
        if amount > self.most:
            raise OverBudget(self, subject)


ALL: list[Budget] = []


def _budget(setting: str, most: int, unit: str, formerly: str = "") -> Budget:
    """Read a bound. A setting that is not a number is ignored here, but ``dominds.settings`` refuses to start with it.

    ``formerly`` is an older name of the setting, which is read if the setting has no value.
    """
    given = os.environ.get(setting, "").strip()
    if not given and formerly:
        setting = formerly if (given := os.environ.get(formerly, "").strip()) else setting
    is_given = given.isdecimal() and int(given) > 0
    ALL.append(Budget(setting, int(given) if is_given else most, unit, is_given))
    return ALL[-1]


# -- A model's answer --------------------------------------------------------------------------------------------------
# An answer of 128,000 tokens, each an event of 300 bytes, takes 38 MB.
ANSWER_BYTES = _budget("DOMINDS_ANSWER_BYTES", 64 * MEGABYTE, "bytes, unpacked")
ANSWER_CHARS = _budget("DOMINDS_ANSWER_CHARS", 2 * MEGABYTE, "characters of text")
HEADER_BYTES = _budget("DOMINDS_ANSWER_HEADER_BYTES", 16_384, "bytes in one header")
HEADERS = _budget("DOMINDS_ANSWER_HEADERS", 128, "headers")
EVENT_BYTES = _budget("DOMINDS_EVENT_BYTES", 4 * MEGABYTE, "bytes in one event")
CALLS = _budget("DOMINDS_CALLS_PER_ANSWER", 128, "tool calls in one answer")
# The text of a refusal, annotations and citations, which are stored with the call. Programs are not told more of them.
FIELDS_BYTES = _budget("DOMINDS_FIELDS_BYTES", 100_000, "bytes beside an answer")
LOGPROBS = _budget("DOMINDS_LOGPROBS_PER_ANSWER", 8_192, "tokens with probabilities in one answer")
ARGUMENT_CHARS = _budget("DOMINDS_ARGUMENT_CHARS", 2 * MEGABYTE, "characters of arguments in one answer")

# -- Local servers' lists of models ------------------------------------------------------------------------------------
LISTING_BYTES = _budget("DOMINDS_LISTING_BYTES", 4 * MEGABYTE, "bytes, unpacked")

# -- Servers of tools --------------------------------------------------------------------------------------------------
TOOL_BYTES = _budget("DOMINDS_TOOL_ANSWER_BYTES", 16 * MEGABYTE, "bytes in one message")

# -- Clients -----------------------------------------------------------------------------------------------------------
BODY_BYTES = _budget("DOMINDS_BODY_BYTES", 32 * 1024 * 1024, "bytes in one request")
# All messages are stored in one transaction, for which other writers of SQLite wait: 20,000 take two seconds.
CONVERSATION_MESSAGES = _budget(
    "DOMINDS_CONVERSATION_MESSAGES", 20_000, "messages of one conversation", formerly="DOMINDS_TOLD_MESSAGES"
)
RECEIVE_SECONDS = _budget("DOMINDS_RECEIVE_SECONDS", 30, "seconds for a request to arrive")

# -- Attachments -------------------------------------------------------------------------------------------------------
# Anthropic takes images of 5,242,880 bytes in base64 and 8,000 pixels a side (2,000 if there are more than 20 images),
# and requests of 32 MB. Other providers take no less.
ATTACHMENT_BYTES = _budget("DOMINDS_ATTACHMENT_BYTES", 3_900_000, "bytes")
ATTACHMENTS = _budget("DOMINDS_ATTACHMENTS", 10, "attachments in one message")
IMAGE_PIXELS = _budget("DOMINDS_IMAGE_PIXELS", 8_000, "pixels a side")
# The bounds for servers that state none.
REQUEST_IMAGES = _budget("DOMINDS_REQUEST_IMAGES", 20, "images in one request")
REQUEST_IMAGE_BYTES = _budget("DOMINDS_REQUEST_IMAGE_BYTES", 20 * MEGABYTE, "bytes of images in one request")

# -- Images that answers name by address -------------------------------------------------------------------------------
REMOTE_IMAGES = _budget("DOMINDS_REMOTE_IMAGES_PER_MINUTE", 30, "images of one person in a minute")
REMOTE_IMAGE_BYTES = _budget("DOMINDS_REMOTE_IMAGE_BYTES", 30 * MEGABYTE, "bytes of one person's images in a minute")

# -- Forks -------------------------------------------------------------------------------------------------------------
# A fork is copied inside the database in one transaction, for which other writers of SQLite wait.
FORK_ROWS = _budget("DOMINDS_FORK_ROWS", 100_000, "turns and archived messages")

# -- Pages -------------------------------------------------------------------------------------------------------------
# Rendering 50,000 characters of Markdown takes a quarter of a second, and a page has 40 turns.
TURN_CHARS = _budget("DOMINDS_TURN_CHARS", 50_000, "characters of one turn on a page")

# -- Rewrites of the context -------------------------------------------------------------------------------------------
# Archived units are stored in one transaction. A window of a million tokens holds no more messages than this.
ARCHIVED_UNITS = _budget("DOMINDS_ARCHIVED_MESSAGES", 100_000, "messages at once")
REWRITE_SECONDS = _budget("DOMINDS_REWRITE_SECONDS", 600, "seconds for one rewrite")

# -- Push notifications ------------------------------------------------------------------------------------------------
# Each question is sent to all browsers of a person.
PUSH_BROWSERS = _budget("DOMINDS_PUSH_BROWSERS", 10, "browsers of one person")
