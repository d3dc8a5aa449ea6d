"""Room within one request: how much output it asks for, and the shorter view that a forced clear may need."""

from dataclasses import replace

from dialogs.context.retrieval.recall import NOTHING, Recall
from dialogs.context.served import Served
from dialogs.context.sizes import LEAST_CHARS_PER_TOKEN, Sizes
from dialogs.context.view import View
from dialogs.context.view_cache import messages_of
from dialogs.context.view_sizes import ViewSizes
from dominds.llm.messages import Message, Role, chars_of
from dominds.llm.models.room import SHORTEST_ANSWER, output_room
from remediation.budget import package_room
from remediation.context import Units
from remediation.strategies.left_out import ALL_SHOWN, LEFT_OUT_MESSAGES, LeftOut, to_leave_out, without

FRAME_TOKENS = 8_000  # assumed for instructions, tools and reminders until they are counted
SHORT_ANSWER = 4_000  # tokens of output for a re-entry package or a summary
MARK = (Message(Role.USER, LEFT_OUT_MESSAGES),)


def with_room_for_package(view: View, served: Served, sizes: ViewSizes, reported: int, guidance: str) -> View:
    """Return a view that leaves room to write a re-entry package: for this request alone, old tool output and then the
    oldest messages are left out, behind a mark. ``reported`` is the last prompt in tokens, 0 if that is unknown.
    """
    window = served.thresholds.context_limit
    if window is None:
        return view
    room = package_room(window)
    if max(sizes.most_tokens + FRAME_TOKENS, reported) + room <= window:
        return view
    left_out = left_out_for_package(view.units, sizes.own, reported, guidance)
    if left_out == ALL_SHOWN:
        return view
    units = without(view.units, left_out)
    messages = messages_of(units)
    return replace(view, units=units, messages=messages, chars=chars_of(messages), left_out=left_out)


def left_out_for_package(units: Units, own: Sizes, reported: int, guidance: str) -> LeftOut:
    """Choose what to leave out so that the package surely fits: the rest may have more tokens than estimated, and the
    part left out fewer.
    """
    most = max(own.most(own.prompt + own.count_text(guidance) + own.count(MARK)), reported)
    return to_leave_out(units, own.units, own.most_expected(own.budget.package_excess(most)), own.count)


def package_tokens(served: Served, sizes: ViewSizes, guidance: str) -> int | None:
    """Return the tokens of output to ask for when a re-entry package is to be written: no more than surely fit."""
    window = served.thresholds.context_limit
    return output_tokens(served, sizes, SHORT_ANSWER, guidance, shortest=package_room(window) if window else 0)


def output_tokens(
    served: Served,
    sizes: ViewSizes,
    wanted: int | None,
    guidance: str,
    recalled: Recall = NOTHING,
    shortest: int = SHORTEST_ANSWER,
) -> int | None:
    """Return the tokens of output to ask for; None leaves that to the provider. The request is counted only if it may
    come near the end of the window.
    """
    most = output_room(served.model, None, window=None, wanted=wanted)
    window = served.thresholds.context_limit
    if most is None or window is None:
        return most
    added = (len(recalled.text) + len(guidance)) / LEAST_CHARS_PER_TOKEN
    if sizes.most_tokens + added + FRAME_TOKENS + most <= window:
        return most
    own = sizes.own
    beside = recalled.est_tokens + own.count_text(guidance)
    return own.budget.output(served.model, beside, most, own.margin(own.prompt + beside), shortest)
