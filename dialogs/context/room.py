"""Room within one request: how much output it asks for, and the shorter view that a forced clear may need."""

from dataclasses import replace

from dialogs.context.retrieval.recall import NOTHING, Recall
from dialogs.context.served import Served
from dialogs.context.sizes import LEAST_CHARS_PER_TOKEN
from dialogs.context.view import View
from dialogs.context.view_cache import messages_of
from dialogs.context.view_sizes import ViewSizes
from dominds.llm.messages import chars_of
from dominds.llm.models.room import output_room
from remediation.budget import package_room
from remediation.strategies.masking import ALL_SHOWN, to_leave_out, without

FRAME_TOKENS = 8_000  # instructions, tools and reminders, at most in general
SHORT_ANSWER = 4_000  # tokens: a re-entry package, a summary


def with_room_for_package(view: View, served: Served, sizes: ViewSizes, reported: int) -> View:
    """Return the view that leaves room to write a re-entry package: for one request alone, old tool output and then
    the oldest messages are marked as left out. ``reported`` tokens had the last prompt, 0 where that is unknown."""
    window = served.thresholds.context_limit
    if window is None:
        return view
    room = package_room(window)
    if max(sizes.most_tokens + FRAME_TOKENS, reported) + room <= window:
        return view
    own = sizes.own
    left_out = to_leave_out(view.units, own.units, own.budget.package_excess(reported), own.count)
    if left_out == ALL_SHOWN:
        return view
    units = without(view.units, left_out)
    messages = messages_of(units)
    return replace(view, units=units, messages=messages, chars=chars_of(messages), left_out=left_out)


def output_tokens(
    served: Served, sizes: ViewSizes, wanted: int | None, guidance: str, recalled: Recall = NOTHING
) -> int | None:
    """Tokens of output to ask for; None leaves it to the provider. Only a request that may be near the end of the
    window is counted for it."""
    most = output_room(served.model, None, window=None, wanted=wanted)
    window = served.thresholds.context_limit
    if most is None or window is None:
        return most
    added = (len(recalled.text) + len(guidance)) / LEAST_CHARS_PER_TOKEN
    if sizes.most_tokens + added + FRAME_TOKENS + most <= window:
        return most
    own = sizes.own
    beside = recalled.est_tokens + own.count_text(guidance)
    return own.budget.output(served.model, beside, most, own.margin(own.prompt + beside))
