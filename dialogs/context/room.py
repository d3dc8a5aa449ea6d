"""Divides a model's window: every subtraction of room for one part of a request stands here."""

from dialogs.context.retrieval.recall import NOTHING, PushRecall, Recall
from dialogs.context.served import Served
from dialogs.context.sizes import Sizes
from dialogs.context.view_sizes import LEAST_CHARS_PER_TOKEN, ViewSizes
from dialogs.models import Dialog
from dominds.llm.models.room import output_room
from health.levels import Level, Thresholds
from remediation.context import Context
from remediation.policies.policy import limit_for_trigger
from remediation.recall.recall import room_for
from remediation.tokens.calibration import output_buffer

BEFORE_CRITICAL_PERCENT = 95  # of the critical threshold, where a policy acts at the latest: estimates err by a little
# Of the critical threshold: with less in sight a rewrite would not answer a critical report.
WORTH_REWRITING_PERCENT = 50
UNKNOWN_LIMIT_TOKENS = 1_024  # for recalled text where nobody knows the model's window
MOST_PERCENT = 90  # of a limit, for request and answer: a policy that watches answers interrupts one that goes beyond
FRAME_TOKENS = 8_000  # instructions, tools and reminders, at most in general
SHORT_ANSWER = 4_000  # tokens: a re-entry package, a summary


def lacks_room(dialog: Dialog, served: Served, sizes: ViewSizes) -> bool:
    """Whether what is new since the last report leaves no room for a re-entry package: the clear comes first then, and
    not a request that is refused or that nothing can follow. Never twice: what a fresh round begins with is sent."""
    window = served.thresholds.context_limit
    if (
        window is None
        or served.policy.counts
        or not dialog.agent.kind.is_guided
        or dialog.report != Dialog.Report.REPORTED
        or dialog.clear_unproven
    ):
        return False
    room = max(served.thresholds.most_before_package(window), served.thresholds.critical_max or 0)
    if sizes.most_tokens + FRAME_TOKENS <= room:
        return False
    return sizes.own.source == "calibrated" and sizes.own.prompt > room


def limit_before_generation(context: Context, thresholds: Thresholds, recall: PushRecall) -> int | None:
    """The limit that leaves recalled text its room and lets a policy act before the level is critical, where that is
    the only reason to rewrite: a view that was rewritten for this message stands, and recall has what is left."""
    is_needed = context.requested or context.overflowed or context.interrupted or context.restarts
    if context.limit is None or is_needed:
        return context.limit
    limits = [context.limit]
    if recall.is_on:
        limits.append(limit_beside_recall(context.limit))
    if critical := thresholds.effective_critical_max:  # of the prompt, without the room for an answer
        room = context.est_tokens - context.est_prompt
        limits.append(limit_for_trigger(critical * BEFORE_CRITICAL_PERCENT // 100 + room))
        if context.level is Level.CRITICAL and context.est_prompt * 100 > critical * WORTH_REWRITING_PERCENT:
            limits.append(limit_for_trigger(context.est_tokens - 1))  # a rewrite goes before a clear
    return min(limits)


def limit_beside_recall(limit: int) -> int:
    """The limit to judge a view by, so that at the usual trigger recalled text still has its share of the whole one."""
    return min(limit, limit_for_trigger(limit - room_for(limit, 0)))


def recall_tokens(sizes: Sizes, served: Served) -> int:
    """Calibrated tokens for recalled text: its share, as far as the request leaves that free
    beside room for the answer.

    It never lifts the level of the context: what is brought back must not be what the agent clears its mind for.
    """
    window = served.thresholds.context_limit
    answer = output_buffer(served.model.output_length, window)
    ceilings = (
        sizes.limit and sizes.limit * MOST_PERCENT // 100 - answer,
        window and window - answer,
        served.thresholds.effective_optimal_max,
        served.thresholds.effective_critical_max,
    )
    free = min(ceiling for ceiling in ceilings if ceiling is not None) - sizes.prompt
    return min(UNKNOWN_LIMIT_TOKENS if sizes.limit is None else room_for(sizes.limit, 0), free)


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
    prompt = own.prompt + recalled.est_tokens + own.count_text(guidance)
    room = output_room(served.model, prompt, window=window, wanted=most, margin=own.margin(prompt))
    return min(most, room or most)  # a request may ask for less than there is always room for
