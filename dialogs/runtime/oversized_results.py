"""Treatment of tool results that are too large for the model: they are stored in full as artifacts, and the model sees
a note in their place."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from dialogs.context.limits import judgement_of
from dialogs.context.room import FRAME_TOKENS
from dialogs.context.served import Served, served_or_unknown
from dialogs.context.sizes import LEAST_CHARS_PER_TOKEN, Sizes
from dialogs.context.tool_calls import Result
from dialogs.context.view import View, view_of
from dialogs.context.view_sizes import most_tokens
from dialogs.models import Artifact, Dialog
from dialogs.runtime.materials import materials_of
from dialogs.store.text import storable
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.messages import Message, Role
from remediation.budget import answer_room
from remediation.context import Context
from remediation.decisions import Compact, PutAside, Reject
from remediation.policies import on_tool_result
from remediation.policies.policy import Policy

log = structlog.get_logger(__name__)

MOST_CHARS = 200_000  # a longer result is an artifact under every policy
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

    Call it before a transaction, because it counts tokens if the policy asks for that. Pass the ``view`` of a dialog
    that is not stored yet.
    """
    if not results or isinstance(served, UnknownModel):
        return {call_id: judge_by_length(result) for call_id, result in results.items()}
    seen = view or view_of(dialog)
    if not (served.policy.on_tool_result or _may_fill(served, seen, results)):
        return {call_id: judge_by_length(result) for call_id, result in results.items()}
    now = dialog if view else Dialog.objects.select_related("agent").get(pk=dialog.pk)
    sizes = materials_of(now, seen, served).sizes.own
    context = Context(judgement_of(now, served.thresholds).level, sizes.budget)
    judged: dict[str, Judged] = {}
    for call_id, result in results.items():  # each result has the room that those before it leave
        judged[call_id] = _judge(dialog.pk, served.policy, context, sizes, call_id, result)
        shown = _message(call_id, judged[call_id].instead or result)
        context = replace(context, budget=context.budget.with_result(sizes.count((shown,))))
    return judged


def _may_fill(served: Served, view: View, results: Mapping[str, Result]) -> bool:
    """Check whether the window may be full with these results, without counting them."""
    window = served.thresholds.context_limit
    if window is None:
        return False
    chars = sum(len(result.text) for result in results.values())
    most = most_tokens(view, served.model) + chars / LEAST_CHARS_PER_TOKEN
    return most + FRAME_TOKENS + answer_room(served.model.output_length, window) > window


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
    tokens = sizes.count((_message(call_id, result),))
    match on_tool_result(policy, context, tokens):
        case Reject(message):
            log.warning("tool_result_too_large", dialog_id=str(dialog_id), est_tokens=tokens, limit=sizes.limit)
            return Judged(result, Result(message, failed=True))
        case PutAside(room):
            log.warning("tool_result_put_aside", dialog_id=str(dialog_id), est_tokens=tokens, room=room)
            return _preview(result, min(PREVIEW_CHARS, room))  # as many characters as tokens: hardly any takes two
        case Compact(reason):
            # The result is kept; the policy sees it before the next generation and compacts what came before it.
            log.info("restart_marked", dialog_id=str(dialog_id), reason=reason, est_tokens=tokens)
    return judge_by_length(result)


def _message(call_id: str, result: Result) -> Message:
    return Message(Role.TOOL, result.text, tool_call_id=call_id)
