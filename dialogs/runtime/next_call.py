"""Makes the call that a decision asks for, from the parts of the next request."""

from dataclasses import replace

from dialogs.context.client import params_of, required_tool_of
from dialogs.context.model_calls import Answer, ForcedClear
from dialogs.context.retrieval.recall import NOTHING, PushRecall, Recall
from dialogs.context.room import SHORT_ANSWER, lacks_room, output_tokens, recall_tokens
from dialogs.context.sizes import StreamWatch
from dialogs.context.view import View
from dialogs.models import Dialog
from dialogs.runtime.materials import Materials
from dialogs.runtime.repeats import OUTPUT
from dominds.llm.messages import chars_of
from dominds.llm.models.params import most_output
from remediation.context import UnitRole
from remediation.policies import while_streaming


def answer(dialog: Dialog, materials: Materials, guidance: str, nudge: str, recall: PushRecall) -> Answer:
    served, view, tools, sizes = materials
    recalled, asked = _recalled(dialog, materials, recall), params_of(dialog)
    policy, wanted = served.policy, most_output(dialog.agent.model_params, asked)
    output = _at_most(dialog, output_tokens(served, sizes, wanted, guidance, recalled))
    watch = None
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
        counted=sizes.counted_with(recalled.raw_tokens),
        watch=watch,
    )


def forced_clear(dialog: Dialog, materials: Materials, guidance: str) -> ForcedClear:
    """It asks for what a package needs, whatever the agent's settings say of answers."""
    served, view, tools, sizes = materials
    if lacks_room(dialog, served, sizes) and (shorter := _without_newest_message(view)):
        view, sizes = shorter, sizes.of(shorter)
    output = _at_most(dialog, output_tokens(served, sizes, SHORT_ANSWER, guidance))
    return ForcedClear(view, guidance, tools, output, sizes.counted_with(0))


def _recalled(dialog: Dialog, materials: Materials, recall: PushRecall) -> Recall:
    """A request whose answer filled the window, or that was refused, is not made longer."""
    served, view, _, sizes = materials
    if not recall.is_on or dialog.overflowed or view.interrupted or dialog.restarts > 1:
        return NOTHING
    return recall.within(recall_tokens(sizes.own, served), sizes.own)


def _at_most(dialog: Dialog, output: int | None) -> int | None:
    """No more than the provider was asked for after it had refused more."""
    less: int | None = dialog.repeats.get(OUTPUT)
    return min(less, output or less) if less else output


def _without_newest_message(view: View) -> View | None:
    """The view without the message that waits, which is answered in the fresh round;
    None where nothing else is there."""
    newest = view.units[-1]
    if newest.role is not UnitRole.USER or len(view.units) == 1:
        return None
    return replace(
        view,
        units=view.units[:-1],
        messages=view.messages[: -len(newest.messages)],
        chars=view.chars - chars_of(newest.messages),
    )
