"""Messages that no request to their model could hold: refused before they are stored (``docs/spec.md#too-large-message``)."""

from dialogs.context.limits import policy_for, thresholds_of_model
from dialogs.context.sizes import sizes_of
from dialogs.models import Dialog
from dominds.llm.messages import Message, Role
from dominds.llm.models.model import ModelInfo
from remediation.context import Unit, UnitKind, UnitRole

SHORT_CHARS = 2_000  # fit every window
LEAST_CHARS_PER_TOKEN = 1.5
SURE = {"calibrated": 0.95, "tokenizer": 0.8}  # of an estimate: what may fit is sent, and its provider decides
COARSE = 0.6  # the same of characters


def too_large(dialog: Dialog, model: ModelInfo, text: str) -> str:
    """Why a message cannot be answered, with its size and what there is for it; empty where it may fit.

    Scripts have no window. Long texts are counted, and a server may be asked for its window: not within a transaction.
    """
    if not model.kind.is_server or len(text) < SHORT_CHARS:
        return ""
    thresholds = thresholds_of_model(model)
    window = thresholds.context_limit and min(
        thresholds.context_limit, thresholds.input_limit or thresholds.context_limit
    )
    if window is None or len(text) / LEAST_CHARS_PER_TOKEN * 2 < window:
        return ""
    unit = Unit("new", UnitKind.MESSAGE, UnitRole.USER, (Message(Role.USER, text),))
    policy = policy_for(dialog, model.kind.family).policy
    sizes = sizes_of(dialog, (unit,), model, thresholds, (), policy)
    beside, own = sizes.fixed - sizes.output_room, sizes.units[0].est_tokens
    if (beside + own) * SURE.get(sizes.source, COARSE) <= window:
        return ""
    return (
        f"The message is too large for {model.model_id}: it has est. {own:,} tokens, and there is room for "
        f"{max(0, window - beside):,}. The model takes {window:,}, and instructions and reminders have est. {beside:,} of them. "
        "Send it in parts, or choose a model with a larger context."
    )
