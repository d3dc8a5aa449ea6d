"""The questions to the policies, and the order in which the policies answer. The first answer that objects wins."""

from remediation.context import Context
from remediation.decisions import (
    Accept,
    Continue,
    Decision,
    Fail,
    Proceed,
    PutAside,
    Rewrite,
    StreamDecision,
    Suspend,
    ToolResultDecision,
)
from remediation.economy import waits
from remediation.policies import guided, requested
from remediation.policies.policy import Policy
from remediation.spending import BUDGET_KIND


def decide(policy: Policy, context: Context) -> Decision:
    """Decide what to do before a generation.

    A used-up budget in USD comes first, since anything else may cost more. Then come a person's request, a message too
    large for any request, the agent's policy and guidance.
    """
    if context.spending.refused_above:
        return Fail("", context.spending.refused_above)
    if context.spending.exceeded:
        return Suspend(BUDGET_KIND, context.spending.reason)
    for question in (
        requested.before_generation,
        _refuse_too_large,
        policy.before_generation,
        guided.before_generation,
    ):
        answer = question(context) if question else Proceed()
        is_put_off = isinstance(answer, Rewrite) and waits(context, answer, policy.name)
        if answer != Proceed() and not is_put_off:
            return answer
    return Proceed()


def _refuse_too_large(context: Context) -> Decision:
    return Fail("TOKEN_LIMIT_EXCEEDED", context.too_large) if context.too_large else Proceed()


def while_streaming(policy: Policy, used_tokens: int, limit: int | None) -> StreamDecision:
    """Decide whether an answer may go on. ``used_tokens`` is the estimate of its prompt and its output so far."""
    return policy.while_streaming(used_tokens, limit) if policy.while_streaming else Continue()


def on_tool_result(policy: Policy, context: Context, result_tokens: int) -> ToolResultDecision:
    """Decide what becomes of a tool result. Under a policy without an answer, a result stays if it fits the window."""
    if policy.on_tool_result:
        return policy.on_tool_result(context, result_tokens)
    room = context.budget.result_room(can_rewrite=policy.rewrite is not None)
    return Accept() if room is None or result_tokens <= room else PutAside(max(0, room))
