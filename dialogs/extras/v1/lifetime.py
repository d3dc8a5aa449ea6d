"""The origin, lifetime and policy of a dialog of ``/v1``."""

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.context.served import Served
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.finding import Incoming, quotes_newest
from dialogs.extras.v1.history import Conversation
from dialogs.extras.v1.likeness import asks_for_summary
from dialogs.models import ApiKey, Dialog
from dominds.llm.catalog.catalog import UnknownModel
from remediation.policies.registry import choices, restriction

POLICY_HEADER = "X-Dominds-Policy"
ORIGIN = Dialog.Origin
# How clients begin what they send beside a conversation that may be another model's: Open WebUI (title, tags,
# follow-ups, searches; its retrieval begins alike, and holds no history; a heading in other languages), LibreChat,
# opencode.
_HEADING, _HISTORY = "### ", "<chat_history>"
_BEGINS = (
    "Analyze this conversation and provide:\n1. The detected language",  # LibreChat: a title
    "Your task is to reflect the speaker's likely facial expression",  # Open WebUI: a face for a call
    "You have been provided with a set of responses from various models",  # Open WebUI: one answer of several
)
_TOOL_CHOICE = ("Available Tools: ", "Query: ")  # Open WebUI, system and user: which of its tools would help
_TITLE = re.compile(
    r"\b(?:generate|provide|create|write)\b[^.\n]{0,60}\btitle\b[^.\n]{0,10}\bfor (?:the|this|a) conversation", re.I
)
# What aider's system messages say where it asks for the message of a commit, or for a summary of its own.
_BESIDE = re.compile(r"\bone-line git commit messages?\b|\bsummarize this partial conversation\b", re.I)
# What NextChat and its kin say last, behind the conversation itself, for its title.
_LAST = re.compile(
    r"(?:Please )?generate a four to five word title summarizing our conversation"
    r"|请?使用四到五个字直接返回这句话的简要主题",
    re.I,
)
_BEGINNING = 200  # characters


def is_background(incoming: Incoming) -> bool:
    """Check whether a program asks beside a person's conversation: for its title, its tags, a commit's message or
    the like.
    """
    request, conversation = incoming.request, incoming.conversation
    text = "\n\n".join((*(message.text for message in conversation.ahead), conversation.message)).lstrip()
    asks_for_value = len(request.tools) == 1 and request.required_tool  # a tool in the place of a schema
    if request.tools and not asks_for_value:
        return False
    if any(message.role != "user" for message in (*conversation.before, *conversation.results)):
        return False
    if text.startswith(_BEGINS) or (text.startswith(_HEADING) and _HISTORY in text) or _TITLE.search(text[:_BEGINNING]):
        return True
    if request.instructions.startswith(_TOOL_CHOICE[0]) and text.startswith(_TOOL_CHOICE[1]):
        return True
    if _BESIDE.search(request.instructions[:_BEGINNING]):
        return True
    if asks_for_summary(text) and quotes_newest(incoming, request.instructions):  # Goose
        return True
    return quotes_newest(incoming, text)


def asks_for_title(conversation: Conversation) -> bool:
    """Check whether the newest message asks for the title of what stands before it, and the program, not its
    user, wrote it.
    """
    return bool(conversation.before and not conversation.results and _LAST.match(conversation.message.lstrip()))


def settle(dialog: Dialog, key: ApiKey, *, is_background: bool, is_brief: bool) -> None:
    """Set how long a dialog under change is kept. One that a person opened is theirs: it never expires."""
    if dialog.origin != ORIGIN.PERSON:
        dialog.origin = ORIGIN.BACKGROUND if is_background else ORIGIN.KEY
        dialog.expires_at = _expires(key, brief=is_brief)


def _expires(key: ApiKey, *, brief: bool) -> Any:
    kept = [timedelta(hours=settings.BRIEF_HOURS)] if brief and settings.BRIEF_HOURS else []
    kept += [timedelta(days=key.keep_days)] if key.keep_days else []
    return timezone.now() + min(kept) if kept else None


def requested_policy(name: str, served: Served | UnknownModel) -> str:
    """Return the requested policy. Raises ``ApiError`` for one that is not installed, or not for the dialog's
    model.
    """
    if not name:
        return ""
    policy = next((policy for policy in choices() if policy.name == name), None)
    if policy is None:
        known = ", ".join(policy.name for policy in choices())
        raise invalid(f"{POLICY_HEADER}: there is no policy {name!r}; known are {known}.", POLICY_HEADER)
    if isinstance(served, UnknownModel):
        return name  # the message will be refused for that
    if not policy.allows(served.model.kind.family):
        raise ApiError(400, "unsupported_parameter", f"{POLICY_HEADER}: {restriction(policy)}.", param=POLICY_HEADER)
    return name
