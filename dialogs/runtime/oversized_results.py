"""Tool results that are too large for the model: kept in full as artifacts, with a note in their place."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Judged:
    """A result, and what the model is to see in its place where it is too large."""

    result: Result
    instead: Result | None = None


def fit(dialog: Dialog, call_id: str, result: Result) -> Result:
    """The result as the model is to see it. Not in a transaction: it may count the whole context."""
    return kept(dialog.pk, call_id, judged(dialog, call_id, result))


def judged(dialog: Dialog, call_id: str, result: Result) -> Judged:
    """Stores nothing, and counts tokens where the policy asks for that: to be called before a transaction."""
    if policy_of(dialog).policy.on_tool_result and (rejected := _rejected(dialog, call_id, result)):
        return Judged(result, Result(rejected, failed=True))
    return by_length(result)


def by_length(result: Result) -> Judged:
    if len(result.text) <= MOST_CHARS:
        return Judged(result)
    note = f"The result has {len(result.text):,} characters; the first {PREVIEW_CHARS:,} follow."
    return Judged(result, Result(f"{note}\n\n{result.text[:PREVIEW_CHARS]}", result.failed))


def kept(dialog_id: UUID, call_id: str, judged: Judged) -> Result:
    """As the model is to see it; what is too large is stored as an artifact."""
    if judged.instead is None:
        return judged.result
    artifact = Artifact.objects.create(dialog_id=dialog_id, tool_call_id=call_id, text=storable(judged.result.text))
    note = f"[The full text is kept as artifact {artifact.pk}; read_artifact reads it in parts.]"
    return Result(f"{judged.instead.text}\n{note}", judged.instead.failed)


def _rejected(dialog: Dialog, call_id: str, result: Result) -> str:
    """Why the policy lets the model see another text instead; empty where it does not."""
    situation = situation_of(Dialog.objects.select_related("agent").get(pk=dialog.pk))
    sizes = situation.sizes_for(situation.policy)
    tokens = sizes.count((Message(Role.TOOL, result.text, tool_call_id=call_id),))
    match on_tool_result(situation.policy, situation.context, tokens):
        case Reject(message):
            log.warning("tool_result_too_large", dialog_id=str(dialog.pk), est_tokens=tokens, limit=sizes.limit)
            return message
        case Compact(reason):
            # The result is kept; the policy sees it before the next generation and compacts what came before it.
            log.info("restart_marked", dialog_id=str(dialog.pk), reason=reason, est_tokens=tokens)
    return ""
