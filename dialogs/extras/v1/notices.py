"""Notices of compaction, as lines of text in an answer, and taken out again when a client sends the answer back."""

import re

from remediation.policies.policy import UNCHANGED
from remediation.policies.registry import policies

NOTICES = (*[text for policy in policies() for text in policy.notices or ()], UNCHANGED)
_LINES = re.compile(rf"^[ \t]*(?:{'|'.join(map(re.escape, NOTICES))})[ \t]*\r?\n?", re.MULTILINE)


def without_notices(text: str) -> str:
    return _LINES.sub("", text) if any(notice in text for notice in NOTICES) else text
