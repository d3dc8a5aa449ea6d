"""Notices, as lines of text in an answer, and taken out again when a client sends the answer back."""

import re

from dialogs.extension import installed_extensions
from remediation.policies.policy import UNCHANGED
from remediation.policies.registry import policies

NOTICES = (
    *[text for policy in policies() for text in policy.notices or ()],
    UNCHANGED,
    *[text for extension in installed_extensions() for text in extension.notices],
)
_FILLED_IN = re.compile(r"\\\{\w+\\\}")  # a name in braces, as ``re.escape`` leaves it
_FORMS = "|".join(_FILLED_IN.sub(r"[^\\n]{1,300}", re.escape(text)) for text in NOTICES)
_LINES = re.compile(rf"^[ \t]*(?:{_FORMS})[ \t]*\r?\n?", re.MULTILINE)
_BEGINNINGS = tuple(text.partition("{")[0] for text in NOTICES)


def is_notice(text: str) -> bool:
    return _LINES.fullmatch(text) is not None


def without_notices(text: str) -> str:
    return _LINES.sub("", text) if any(beginning in text for beginning in _BEGINNINGS) else text
