"""Guidance in caution, forced clears in critical, a question for a human when they fail, and the end of an endless
loop.
"""

from health.levels import Level
from remediation.context import Context
from remediation.decisions import ClearMind, Decision, Fail, ForceClear, Proceed, Suspend
from remediation.guidance import (
    COUNTDOWN_GENERATIONS,
    CRITICAL_KIND,
    EXHAUSTED,
    MAX_FORCED_CLEARS,
    countdown_guidance,
    forced_clear,
    guidance,
    guidance_due,
)


def before_generation(context: Context) -> Decision:
    if context.is_proxy:
        return _pass_on(context)
    if context.overflowed or context.clear_due or context.level is Level.CRITICAL:
        return _countdown(context) if context.countdown else _force_clear(context)
    if context.endless_loop:
        return Fail("LOOP_DETECTED", context.endless_loop)
    if context.level is Level.CAUTION and guidance_due(context):
        return Proceed(guidance=guidance(context.prompts))
    return Proceed()


def _pass_on(context: Context) -> Decision:
    """Send a proxy's request at any level. One that was refused as too long is sent again only after a rewrite."""
    if context.overflowed and context.changed:
        return Fail(
            "TOKEN_LIMIT_EXCEEDED",
            "The provider refuses the request as too long, and no policy makes it shorter. Send less, or choose a "
            "model with a larger context.",
        )
    return Proceed()


def _force_clear(context: Context) -> Decision:
    if context.failed_clears >= MAX_FORCED_CLEARS:
        return Suspend(CRITICAL_KIND, EXHAUSTED)
    return ForceClear(forced_clear(context.failed_clears, context.refused_clear, context.prompts))


def _countdown(context: Context) -> Decision:
    """Guide for some generations, then clear, but never suspend. Clear at once after a refusal as too long."""
    if context.overflowed and context.failed_clears >= MAX_FORCED_CLEARS:
        return Fail(
            "TOKEN_LIMIT_EXCEEDED",
            f"The provider refuses the message as too long even in a fresh round, {MAX_FORCED_CLEARS} times now. Send "
            "a shorter one, or choose a model with a larger context.",
        )
    remaining = COUNTDOWN_GENERATIONS - context.guided_generations
    if context.overflowed or remaining <= 0:
        return ClearMind("overflow" if context.overflowed else f"{COUNTDOWN_GENERATIONS} guided generations")
    return Proceed(guidance=countdown_guidance(remaining, context.prompts))
