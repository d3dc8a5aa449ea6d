"""Treatment of tool results that are too large for the model: stored in full as artifacts, with a
note in their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog

from dialogs.context.served import Served, served_or_unknown
from dialogs.context.sizes import Sizes
from dialogs.context.tool_calls import Result
from dialogs.context.view import View
from dialogs.models import Artifact, Dialog
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from dialogs.store.text import storable
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.messages import Message, Role
from remediation.context import Context
from remediation.decisions import Compact, Reject
from remediation.policies import on_tool_result
from remediation.policies.policy import Policy

log = structlog.get_logger(__name__)

MOST_CHARS = 200_000  # beyond this a result is an artifact under every policy
PREVIEW_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A result, and what the model will see in its place if it is too large."""

    result: Result
    instead: Result | None = None


def fit(dialog: Dialog, call_id: str, result: Result) -> Result:
    """Return what the model will see of the result. Call it outside a transaction: it may count the whole context."""
    return keep_whole(dialog.pk, call_id, judge_results(dialog, served_or_unknown(dialog), {call_id: result})[call_id])


def judge_results(
    dialog: Dialog, served: Served | UnknownModel, results: Mapping[str, Result], view: View | None = None
) -> dict[str, Judged]:
    """Judge results by the ids of their calls, without storing anything.

    Call it before a transaction, because it counts tokens if the policy asks for that. ``view`` is that of a dialog
    that is not stored yet.
    """
    if not results or isinstance(served, UnknownModel) or not _is_judged(served, results):
        return {call_id: judge_by_length(result) for call_id, result in results.items()}
    now = dialog if view else Dialog.objects.select_related("agent").get(pk=dialog.pk)
    now_served, view, _, sizes = materials_of(now, view)
    context = context_of(now, now_served, view, sizes)
    fits = partial(_judge, dialog.pk, served.policy, context, sizes.own)
    return {call_id: fits(call_id, result) for call_id, result in results.items()}


def _is_judged(served: Served, results: Mapping[str, Result]) -> bool:
    """Check whether counting is worth it: the policy asks for it, or a result may take a quarter of the window."""
    if served.policy.on_tool_result:
        return True
    window = served.thresholds.context_limit
    return window is not None and sum(len(result.text) for result in results.values()) > window


def judge_by_length(result: Result) -> Judged:
    return Judged(result) if len(result.text) <= MOST_CHARS else _preview(result, PREVIEW_CHARS)


def _preview(result: Result, chars: int) -> Judged:
    note = f"The result has {len(result.text):,} characters; the first {chars:,} follow."
    return Judged(result, Result(f"{note}\n\n{result.text[:chars]}", result.failed))


def keep_whole(dialog_id: UUID, call_id: str, judged: Judged) -> Result:
    """Return what the model will see of the result, and store an oversized one as an artifact."""
    if judged.instead is None:
        return judged.result
    artifact = Artifact.objects.create(
        dialog_id=str(dialog_id), tool_call_id=call_id, text=storable(judged.result.text)
    )
    note = f"[The full text is kept as artifact {artifact.pk}; read_artifact reads it in parts.]"
    return Result(f"{judged.instead.text}\n{note}", judged.instead.failed)


def _judge(dialog_id: UUID, policy: Policy, context: Context, sizes: Sizes, call_id: str, result: Result) -> Judged:
    tokens = sizes.count((Message(Role.TOOL, result.text, tool_call_id=call_id),))
    match on_tool_result(policy, context, tokens):
        case Reject(message):
            log.warning("tool_result_too_large", dialog_id=str(dialog_id), est_tokens=tokens, limit=sizes.limit)
            return Judged(result, Result(message, failed=True))
        case Compact(reason):
            # The result is kept; the policy sees it before the next generation and compacts what came before it.
            log.info("restart_marked", dialog_id=str(dialog_id), reason=reason, est_tokens=tokens)
    window = sizes.budget.window
    if (
        policy.on_tool_result is None
        and window is not None
        and not sizes.budget.holds(tokens, policy.rewrite is not None)
    ):
        log.warning("tool_result_put_aside", dialog_id=str(dialog_id), est_tokens=tokens, window=window)
        return _preview(result, min(PREVIEW_CHARS, window))
    return judge_by_length(result)
