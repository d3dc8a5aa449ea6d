"""Autocompaction: compact before the server would cut the middle out of the conversation."""

from dataclasses import replace

from dominds.llm.provider import ProviderError
from remediation.budget import STREAM_PERCENT, Budget, percent_of
from remediation.context import Context, Rewritten, Toolbox, UnitRole, Units, total_tokens, write_nothing
from remediation.decisions import (
    Abort,
    Accept,
    Compact,
    Continue,
    Decision,
    Fail,
    Interrupt,
    Proceed,
    Reject,
    StreamDecision,
    ToolResultDecision,
)
from remediation.policies.policy import ByHand, ModelKind, Policy, RewriteTask, rewrite_due
from remediation.strategies.cut_answer import room_for_answer, with_shorter_answer
from remediation.strategies.hand_off import SMALLEST_ROOM
from remediation.strategies.outcome import is_ledger, task_of
from remediation.strategies.pruning import (
    PruningFailed,
    apply_pruned,
    ask_to_prune,
    fallback,
    must_stay,
)

MAX_RESTARTS = 3
REQUEST_PERCENT = 80  # of the limit that a request may take without triggering a compaction
ENOUGH_PERCENT = 67  # of the limit that a compaction may leave at most, so that the next one is far off
ASKED_PERCENT = 80  # of the room that would just do, since no model hits a number of tokens exactly


def before_generation(context: Context) -> Decision:
    limit, prompt = context.limit, context.budget.prompt
    if limit is None:
        return Proceed()
    if not context.wants_rewrite:
        return _too_long(context.budget) if prompt > limit and not context.changed else Proceed()
    if context.restarts >= MAX_RESTARTS:
        if context.interrupted:
            words = (
                f"After {MAX_RESTARTS} compactions the answer has no end yet, and fills the context again: est. "
                f"{prompt:,} of {limit:,} tokens. Ask for a shorter answer, or use a model with a larger context."
            )
        else:
            words = (
                f"After {MAX_RESTARTS} compactions the request still has est. {prompt:,} of {limit:,} tokens. "
                "Clear the agent's mind, start afresh, or use a model with a larger context."
            )
        return Fail("TOKEN_LIMIT_EXCEEDED", words)
    return rewrite_due(context, POLICY.name)


def _too_long(budget: Budget) -> Fail:
    """Fail, since most servers would silently cut the middle out of a request that is longer than their context."""
    return Fail(
        "TOKEN_LIMIT_EXCEEDED",
        f"The request is too long to be sent: est. {budget.prompt:,} tokens, and the model's whole context is "
        f"{budget.limit or 0:,}. Instructions, tools and reminders take est. {budget.frame:,} of them, the newest "
        f"message and what has to stay est. {budget.stays:,}: neither can be made smaller. Send it in parts, or load "
        "the model with a larger context.",
    )


def while_streaming(used_tokens: int, limit: int | None) -> StreamDecision:
    if limit is None or used_tokens < percent_of(limit, STREAM_PERCENT):
        return Continue()
    if used_tokens >= limit:
        return Abort(
            f"Request and answer together filled the context: est. {used_tokens:,} of {limit:,} tokens. "
            "Send less at once, ask for a shorter answer, or load the model with a larger context."
        )
    return Interrupt(f"est. {used_tokens:,} of {limit:,} tokens while streaming")


def on_tool_result(context: Context, result_tokens: int) -> ToolResultDecision:
    limit = context.limit
    if limit is None:
        return Accept()
    standing = context.budget.least
    if standing + result_tokens > limit:
        return Reject(
            f"The tool result has est. {result_tokens:,} tokens, what must stay beside it est. {standing:,}, "
            f"and the model's whole context is {limit:,}. No compaction can make it fit. Use a model with a larger "
            f"context, "
            "or read the result in parts with read_artifact."
        )
    return Compact("tool result would overflow") if context.budget.taken + result_tokens > limit else Accept()


# -- The rewrite -------------------------------------------------------------------------------------------------------


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    """Rewrite by the pruning agent. On any failure keep the system message and the newest five units.

    If the agent leaves so much that the next turn would compact again, the smaller of both views is taken.
    """
    ceiling = min(task.limit, percent_of(task.request_limit, REQUEST_PERCENT) - task.fixed)
    room = room_for_answer(task.units, ceiling)
    return with_shorter_answer(
        task.units, room, task.limit, toolbox, lambda units: _compact(replace(task, units=units), toolbox)
    )


def _compact(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    if toolbox.assistant is None:
        return _fallback(task, toolbox, "preview without the pruning agent")
    may_go, aim = _left_to_choose(task)
    if not may_go or aim < SMALLEST_ROOM:
        without_model = replace(toolbox, summarise=write_nothing)
        return _fallback(task, without_model, "what must stay leaves nothing to choose from")
    pruned: Rewritten | None = None
    try:
        window = toolbox.assistant.window() or task.limit
        reply = ask_to_prune(may_go, task_of(task.units), aim, window, toolbox, toolbox.assistant)
        pruned = apply_pruned(task.units, reply, toolbox, task.limit, task.target)
        if not pruned.failure and pruned.est_after <= _enough(task):
            return pruned
        reason = pruned.failure or f"the pruned conversation still has est. {pruned.est_after:,} tokens"
    except (PruningFailed, ProviderError) as error:
        reason = str(error)
    toolbox.assistant.failed(reason)
    cut = _fallback(task, replace(toolbox, summarise=write_nothing), reason)  # the model had its turn
    is_usable = pruned is not None and not pruned.failure and pruned.est_after <= task.limit
    if pruned is not None and is_usable and (cut.failure or pruned.est_after <= cut.est_after):
        return pruned
    return cut


def _fallback(task: RewriteTask, toolbox: Toolbox, reason: str) -> Rewritten:
    """Rewrite without the agent. A tool result that alone made the context overflow stays whole: the run needs it."""
    newest = sum(unit.est_tokens for unit in task.units[-1:] if unit.role is UnitRole.TOOL)
    total = total_tokens(task.units)
    is_cause = total - newest <= task.limit < total
    return fallback(task.units, toolbox, task.limit, reason, task.target, task.limit if is_cause else 0)


def _enough(task: RewriteTask) -> int:
    """Return the most tokens that units may have after a compaction, so that the next one is far off.

    That is two thirds of the limit: more than the target of one half, and still far from the trigger. Where the units
    that must stay exceed the target, it is enough that the request triggers no further compaction.
    """
    limit = task.request_limit
    whole = percent_of(limit, ENOUGH_PERCENT if task.standing <= task.target else REQUEST_PERCENT)
    return max(task.target, whole - task.fixed)


def _left_to_choose(task: RewriteTask) -> tuple[Units, int]:
    """Return the units that may go, and the tokens that the agent may leave of them beside the units that must stay."""
    stays = must_stay(task.units, task.limit, task.target)
    standing = sum(task.units[index].est_tokens for index in stays)
    may_go = tuple(unit for index, unit in enumerate(task.units) if index not in stays and not is_ledger(unit))
    aim = task.target - standing
    return may_go, aim if aim >= SMALLEST_ROOM else (_enough(task) - standing) * ASKED_PERCENT // 100


POLICY = Policy(
    name="autocompaction",
    label="autocompaction",
    sentence="Compacts before requests, after large tool results and while streaming.",
    automatic="Context is compacted before model calls when it exceeds 80% of the window",
    title="Context compacted",
    place=50,
    model_kind=ModelKind("lmstudio", "LM Studio's kind", is_default=True),
    before_generation=before_generation,
    while_streaming=while_streaming,
    on_tool_result=on_tool_result,
    reserves_answer=True,
    rewrite=rewrite,
    notices=("Compacting conversation history...", "Context compacted, continuing..."),
    by_hand=ByHand(
        verb="compact",
        label="Compact",
        button="Compact now",
        does="Let the pruning agent compact the conversation.",
        hint="A model shortens the older messages; the newest stay as they are.",
    ),
)
