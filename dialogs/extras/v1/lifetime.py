"""The origin, lifetime and policy of a dialog of ``/v1``."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.context.served import Served
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.models import ApiKey, Dialog
from dominds.llm.catalog.catalog import UnknownModel
from remediation.policies.registry import choices, restriction

POLICY_HEADER = "X-Dominds-Policy"
ORIGIN = Dialog.Origin


def settle(dialog: Dialog, key: ApiKey, *, is_background: bool, is_brief: bool) -> None:
    """Set how long a dialog under change is kept. One that a person opened is theirs: it never expires."""
    if dialog.origin != ORIGIN.PERSON:
        dialog.origin = ORIGIN.BACKGROUND if is_background else ORIGIN.KEY
        dialog.expires_at = _expires(key, brief=is_brief)


def _expires(key: ApiKey, *, brief: bool) -> Any:
    kept = [timedelta(hours=settings.BRIEF_HOURS)] if brief and settings.BRIEF_HOURS else []
    kept += [timedelta(days=key.keep_days)] if key.keep_days else []
    return timezone.now() + min(kept) if kept else None


def check_policy(name: str, served: Served | UnknownModel) -> None:
    """Raise ``ApiError`` where the requested policy is not installed, or not for this model."""
    if not name:
        return
    policy = next((policy for policy in choices() if policy.name == name), None)
    if policy is None:
        known = ", ".join(policy.name for policy in choices())
        raise invalid(f"{POLICY_HEADER}: there is no policy {name!r}; known are {known}.", POLICY_HEADER)
    if isinstance(served, Served) and not policy.allows(served.model.kind.family):
        raise ApiError(400, "unsupported_parameter", f"{POLICY_HEADER}: {restriction(policy)}.", param=POLICY_HEADER)
