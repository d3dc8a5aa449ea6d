"""Document B: compact before the server would cut the middle out of the conversation."""

from remediation.context import Context
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
    Rewrite,
    StreamDecision,
    ToolResultDecision,
)

MAX_RESTARTS = 3
REQUEST_PERCENT, STREAM_PERCENT, AIM_PERCENT = 80, 90, 50


def before_generation(context: Context) -> Decision:
    limit = context.limit
    full = context.overflowed or context.interrupted
    if limit is None or not (full or context.est_tokens * 100 > limit * REQUEST_PERCENT):
        return Proceed()
    if not context.changed:
        return Proceed()  # nothing new since the last rewrite (R10): guided stands behind
    if context.restarts >= MAX_RESTARTS:
        return Fail(
            "TOKEN_LIMIT_EXCEEDED",
            f"After {MAX_RESTARTS} compactions the request still has est. {context.est_tokens:,} of {limit:,} tokens. "
            "Clear the agent's mind, start afresh, or use a model with a larger context.",
        )
    return Rewrite("autocompaction", _reason(context), limit * AIM_PERCENT // 100)


def _reason(context: Context) -> str:
    if context.overflowed:
        return "the provider refused the request as too long"
    if context.interrupted:
        return f"the answer filled {STREAM_PERCENT} % of the limit"
    return f"est. over {REQUEST_PERCENT} % of the limit"


def while_streaming(used_tokens: int, limit: int | None) -> StreamDecision:
    if limit is None or used_tokens * 100 < limit * STREAM_PERCENT:
        return Continue()
    if used_tokens >= limit:
        return Abort(
            f"The answer filled the context: est. {used_tokens:,} of {limit:,} tokens. Ask for a shorter answer."
        )
    return Interrupt(f"est. {used_tokens:,} of {limit:,} tokens while streaming")


def on_tool_result(context: Context, result_tokens: int) -> ToolResultDecision:
    limit = context.limit
    if limit is None:
        return Accept()
    if context.standing_tokens + result_tokens > limit:
        return Reject(
            f"The tool result has est. {result_tokens:,} tokens, what must stay beside it est. {context.standing_tokens:,}, "
            f"and the model's whole context is {limit:,}. No compaction can make it fit. Use a model with a larger context, "
            "or read the result in parts with read_artifact."
        )
    return Compact("tool result would overflow") if context.est_tokens + result_tokens > limit else Accept()
