"""One question each, asked of every policy in one visible order; the first answer that objects wins."""

from collections.abc import Sequence
from types import ModuleType

from dominds.llm.messages import ToolCall
from remediation.context import Context
from remediation.decisions import (
    Accept,
    Continue,
    Decision,
    Proceed,
    ReplyDecision,
    StreamDecision,
    ToolResultDecision,
)
from remediation.policies import autocompaction, breaking, guided, requested, retention

Policies = tuple[ModuleType, ...]

# Guided stands behind every compaction policy, for every provider (R2).
POLICIES: dict[str, Policies] = {
    "none": (requested, guided),
    "autocompaction": (requested, autocompaction, guided),
    "breaking": (requested, breaking, guided),
    "retention": (requested, retention, guided),
}


def decide(policies: Policies, context: Context) -> Decision:
    """Before a generation."""
    plain: Decision = Proceed()
    for policy in policies:
        if (answer := policy.before_generation(context)) != plain:
            return answer  # type: ignore[no-any-return]
    return plain


def while_streaming(policies: Policies, used_tokens: int, limit: int | None) -> StreamDecision:
    """``used_tokens`` is the estimate of prompt and output so far."""
    for policy in policies:
        question = getattr(policy, "while_streaming", None)
        if question and not isinstance(answer := question(used_tokens, limit), Continue):
            return answer  # type: ignore[no-any-return]
    return Continue()


def on_tool_result(policies: Policies, context: Context, result_tokens: int) -> ToolResultDecision:
    for policy in policies:
        question = getattr(policy, "on_tool_result", None)
        if question and not isinstance(answer := question(context, result_tokens), Accept):
            return answer  # type: ignore[no-any-return]
    return Accept()


def after_reply(clear_only: bool, calls: Sequence[ToolCall]) -> ReplyDecision:
    return guided.after_reply(clear_only, calls)


def watches_stream(policies: Policies) -> bool:
    """Whether anybody asks for a running estimate of the stream."""
    return any(hasattr(policy, "while_streaming") for policy in policies)
