"""The call that a decision asks for, made from the parts of the next request."""

from dialogs.context.client import params_of, required_tool_of
from dialogs.context.model_calls import Answer, ForcedClear
from dialogs.context.retrieval.recall import NOTHING, PushRecall, Recall
from dialogs.context.room import output_tokens, package_tokens, with_room_for_package
from dialogs.context.sizes import Sizes, StreamWatch
from dialogs.models import Dialog
from dialogs.runtime import overflow_history, tracing
from dialogs.runtime.materials import Materials
from dialogs.runtime.repeats import OUTPUT
from dominds.llm.models.params import most_output
from remediation.policies import while_streaming


def answer(dialog: Dialog, materials: Materials, guidance: str, nudge: str, recall: PushRecall) -> Answer:
    served, view, tools, sizes = materials
    asked = params_of(dialog)
    recalled = NOTHING
    if recall.is_on:
        recalled = tracing.trace_recall(dialog, lambda: recalled_into(dialog, materials, recall, sizes.own))
    wanted = most_output(dialog.agent.model_params, asked)
    output = _at_most(dialog, output_tokens(served, sizes, wanted, guidance, recalled))
    counted = sizes.counted_with(recalled.raw_tokens)
    policy, watch = served.policy, None
    if policy.while_streaming:
        watch = StreamWatch(sizes.own, lambda used, limit: while_streaming(policy, used, limit), recalled.est_tokens)
    return Answer(
        view=view,
        tools=tools,
        guidance=guidance,
        nudge=nudge,
        recalled=recalled,
        asked=asked,
        required_tool=required_tool_of(dialog),
        output=output,
        counted=counted,
        est_tokens=sizes.own.prompt + recalled.est_tokens if sizes.are_told or _tells_sizes(dialog) else None,
        watch=watch,
    )


def forced_clear(dialog: Dialog, materials: Materials, guidance: str) -> ForcedClear:
    """Make a forced clear.

    It asks for as much output as a re-entry package needs, whatever the agent's settings say about answers. If the
    window has no room for that, the request leaves out a part of the view.
    """
    served, view, tools, sizes = materials
    view = with_room_for_package(view, served, sizes, dialog.prompt_tokens or 0, guidance)
    sizes = sizes if view is materials.view else sizes.of_shorter(view)
    output = _at_most(dialog, package_tokens(served, sizes, guidance))
    est_tokens = sizes.own.prompt if sizes.are_told else None
    return ForcedClear(view, guidance, tools, output, sizes.counted_with(0), est_tokens)


def recalled_into(dialog: Dialog, materials: Materials, recall: PushRecall, sizes: Sizes) -> Recall:
    """Return the archived text that the next request recalls.

    Nothing is recalled if the last request was refused as too long, if its answer was interrupted because it filled the
    window, if its report was critical only because of recalled text, or after two rewrites for one message. The
    first request after a clear goes on from the re-entry package alone.
    """
    served, view, _, _ = materials
    if not recall.is_on or dialog.overflowed or view.interrupted or dialog.restarts > 1 or view.is_fresh_round:
        return NOTHING
    if overflow_history.is_red_by_recall(dialog, served.thresholds):
        return NOTHING
    budget = sizes.budget
    if dialog.restarts and view.base_position:
        before = overflow_history.size_before_last_rewrite(dialog)
        budget = budget if before is None else budget.after_rewrite(before)
    return recall.within(budget, sizes)


def next_recall(dialog: Dialog, materials: Materials, sizes: Sizes) -> Recall:
    """Return the archived text that the next request would recall if it were sent now."""
    return recalled_into(dialog, materials, PushRecall(dialog, materials.view), sizes)


def next_prompt(dialog: Dialog, materials: Materials, sizes: Sizes) -> int:
    """Return the estimated tokens of the whole next request if it were sent now, recalled text included."""
    return sizes.prompt + next_recall(dialog, materials, sizes).est_tokens


def _tells_sizes(dialog: Dialog) -> bool:
    """Check whether the answer has to name its request's size, as in ``/v1``. The request is then counted for that."""
    return dialog.origin != Dialog.Origin.PERSON


def _at_most(dialog: Dialog, output: int | None) -> int | None:
    """Limit the output to the tokens with which the attempt is repeated after the provider refused more."""
    less: int | None = dialog.repeats.get(OUTPUT)
    return min(less, output or less) if less else output
