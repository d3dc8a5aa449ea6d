"""Tool results that are too large for the model: kept in full as artifacts, with a note in their place."""

from uuid import UUID

import structlog

from dialogs.context.limits import policy_of
from dialogs.context.tool_calls import Result
from dialogs.models import Artifact, Dialog
from dialogs.runtime.situation import situation_of
from dialogs.store.text import storable
from dominds.llm.messages import Message, Role
from remediation.decisions import Compact, Reject
from remediation.policies import on_tool_result

log = structlog.get_logger(__name__)

MOST_CHARS = 200_000  # beyond this a result is an artifact under every policy
PREVIEW_CHARS = 4_000


def fit(dialog: Dialog, call_id: str, result: Result) -> Result:
    """The result as the model is to see it."""
    if policy_of(dialog).policy.on_tool_result:  # under no other is a result touched by estimates
        result = _under_policy(dialog, call_id, result)
    if len(result.text) <= MOST_CHARS:
        return result
    note = f"The result has {len(result.text):,} characters; the first {PREVIEW_CHARS:,} follow."
    text = _as_artifact(dialog.pk, call_id, result, f"{note}\n\n{result.text[:PREVIEW_CHARS]}")
    return Result(text, result.failed)


def _under_policy(dialog: Dialog, call_id: str, result: Result) -> Result:
    situation = situation_of(Dialog.objects.select_related("agent").get(pk=dialog.pk))
    sizes = situation.sizes_for(situation.policy)
    tokens = sizes.count((Message(Role.TOOL, result.text, tool_call_id=call_id),))
    match on_tool_result(situation.policy, situation.context, tokens):
        case Reject(message):
            log.warning("tool_result_too_large", dialog_id=str(dialog.pk), est_tokens=tokens, limit=sizes.limit)
            return Result(_as_artifact(dialog.pk, call_id, result, message), failed=True)
        case Compact(reason):
            # The result is kept; the policy sees it before the next generation and compacts what came before it.
            log.info("restart_marked", dialog_id=str(dialog.pk), reason=reason, est_tokens=tokens)
    return result


def _as_artifact(dialog_id: UUID, call_id: str, result: Result, message: str) -> str:
    artifact = Artifact.objects.create(dialog_id=dialog_id, tool_call_id=call_id, text=storable(result.text))
    return f"{message}\n[The full text is kept as artifact {artifact.pk}; read_artifact reads it in parts.]"
