"""Origin, lifetime and policy of a dialog of ``/v1``."""

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.context.limits import model_of
from dialogs.models import ApiKey, Dialog
from dialogs.openai_api.errors import ApiError, invalid
from dialogs.openai_api.finding import quotes_newest
from dialogs.openai_api.history import Conversation
from dialogs.openai_api.parsing import ChatRequest
from dominds.llm.catalog.catalog import UnknownModel
from remediation.policies.registry import choices, restriction

POLICY_HEADER = "X-Dominds-Policy"
ORIGIN = Dialog.Origin
# How clients begin what they send beside a conversation that may be another model's: Open WebUI (title, tags, follow-ups,
# searches; its retrieval begins alike, and holds no history), LibreChat, opencode.
_TASK, _HISTORY = "### Task:", "<chat_history>"
_TITLE = re.compile(
    r"\b(?:generate|provide|create|write)\b[^.\n]{0,60}\btitle\b[^.\n]{0,10}\bfor (?:the|this|a) conversation", re.I
)
# What aider's system messages say where it asks for the message of a commit, or for a summary of its own.
_BESIDE = re.compile(r"\bone-line git commit messages?\b|\bsummarize this partial conversation\b", re.I)
_BEGINNING = 200  # characters


def is_background(key: ApiKey, request: ChatRequest, conversation: Conversation) -> bool:
    """Whether a program asks beside a conversation of a person's: for its title, its tags, a commit's message or the like."""
    text = "\n\n".join((*(message.text for message in conversation.ahead), conversation.message)).lstrip()
    if request.tools or any(message.role != "user" for message in (*conversation.before, *conversation.results)):
        return False
    if (text.startswith(_TASK) and _HISTORY in text) or _TITLE.search(text[:_BEGINNING]):
        return True
    if _BESIDE.search(request.instructions[:_BEGINNING]):
        return True
    return quotes_newest(key, request.end_user, text)


def settle(dialog: Dialog, key: ApiKey, request: ChatRequest, *, background: bool) -> None:
    """Store what the request says of its dialog. One that a person opened is theirs: it never expires."""
    policy = requested_policy(dialog, request.policy)
    wanted: dict[str, Any] = {"context_policy": policy}
    if dialog.origin != ORIGIN.PERSON:
        wanted |= {
            "origin": ORIGIN.BACKGROUND if background else ORIGIN.KEY,
            "expires_at": _expires(key, brief=background or not request.store),
        }
    changed = {name: value for name, value in wanted.items() if value != getattr(dialog, name)}
    if changed:
        Dialog.objects.filter(pk=dialog.pk).update(**changed)


def _expires(key: ApiKey, *, brief: bool) -> Any:
    kept = [timedelta(hours=settings.BRIEF_HOURS)] if brief and settings.BRIEF_HOURS else []
    kept += [timedelta(days=key.keep_days)] if key.keep_days else []
    return timezone.now() + min(kept) if kept else None


def requested_policy(dialog: Dialog, name: str) -> str:
    """Raises ``ApiError`` for a policy that is not installed, or not for the dialog's model."""
    if not name:
        return ""
    policy = next((policy for policy in choices() if policy.name == name), None)
    if policy is None:
        known = ", ".join(policy.name for policy in choices())
        raise invalid(f"{POLICY_HEADER}: there is no policy {name!r}; known are {known}.", POLICY_HEADER)
    try:
        family = model_of(dialog).kind.family
    except UnknownModel:
        return name  # the message will be refused for that
    if not policy.allows(family):
        raise ApiError(400, "unsupported_parameter", f"{POLICY_HEADER}: {restriction(policy)}.", param=POLICY_HEADER)
    return name
