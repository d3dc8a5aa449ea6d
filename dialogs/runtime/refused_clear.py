"""The reason why the last forced attempt to clear the mind was refused, for the next one."""

from dialogs.context.package_draft import draft_package
from dialogs.models import Dialog, Generation
from dominds.llm.messages import ToolCall
from dominds.llm.models.model import ModelInfo
from health.levels import Thresholds
from remediation.budget import Budget
from remediation.context import NOT_REFUSED, RefusedClear
from remediation.guidance import CLEAR_MIND, MAX_FORCED_CLEARS
from remediation.tokens.counting import counter_for

NO_HELP = "the mind was cleared, but the context was still critical with that package; write a much shorter one"


def refused_clear(dialog: Dialog, model: ModelInfo, thresholds: Thresholds) -> RefusedClear:
    if not dialog.failed_clears:
        return NOT_REFUSED
    tries = dialog.generations.filter(purpose=Generation.Purpose.FORCED_CLEAR, clear_episode=dialog.clear_episode)
    ended = tries.filter(outcome__in=[Generation.Outcome.DISCARDED, Generation.Outcome.KEPT])
    newest = ended.order_by("-id").values_list("outcome", "error", "prompt_tokens").first()
    reason = "" if newest is None else NO_HELP if newest[0] == Generation.Outcome.KEPT else newest[1]
    used, window = dialog.prompt_tokens or 0, thresholds.context_limit or 0
    # The prompt of the refused attempt. It is smaller than the context if messages were left out to make room.
    sent = (newest[2] if newest is not None and newest[0] == Generation.Outcome.DISCARDED else None) or used
    draft = draft_package(dialog) if dialog.failed_clears >= MAX_FORCED_CLEARS - 1 else ""
    if draft and window:  # the model is sent the draft and repeats it in its answer, so the window must hold it twice
        size = counter_for(model.model_id, model.tokenizer).count(draft)
        draft = draft if Budget(window=window).holds_twice(size, sent) else ""
    return RefusedClear(reason, used, window, draft)


def explanation(reason: str, calls: tuple[ToolCall, ...], offered: set[str]) -> str:
    """Return the reason to store. It names no tool that the model made up, since no text of a refused answer stays."""
    if all(call.name in offered for call in calls):
        return reason
    return f"no valid {CLEAR_MIND} call, but others"
