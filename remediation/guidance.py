"""Guidance by reported usage: when it is due, how it is worded, and which output a forced clear accepts."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dominds.llm.messages import ToolCall
from dominds.visible_text import is_blank
from health.levels import Level
from remediation.context import NOT_REFUSED, Context, RefusedClear
from remediation.decisions import Discard, Keep, ReplyDecision
from remediation.prompts import Filled, join, load, render

MAX_FORCED_CLEARS = 3
CRITICAL_KIND = "context_health_critical"
EXHAUSTED = f"{MAX_FORCED_CLEARS} forced attempts to clear the mind failed."
COUNTDOWN_GENERATIONS = 5
CLEAR_MIND = "clear_mind"

CLEAR_OR_REMIND = render(load("guidance"))  # as shipped
CLEAR_ONLY = render(load("forced_clear_first"))
# The outline and the placeholders that a package is to fill.
UNFILLED = frozenset(
    (found[1] or found[2]).casefold()
    for text in (CLEAR_ONLY, load("forced_clear_third").text)
    for found in re.finditer(r"^- (.+)$|<([^<>]+)>", text, re.M)
)
NO_REASON = "it was not exactly one clear_mind call with a package"


def guidance(folder: Path | None = None) -> Filled:
    return render(load("guidance", folder))


def countdown_guidance(remaining: int, folder: Path | None = None) -> str:
    """Write guidance that the runtime will clear by itself after ``remaining`` generations, including this one."""
    more = f"{remaining} more generation{'' if remaining == 1 else 's'}"
    return join(guidance(folder), render(load("guidance_countdown", folder), remaining=more))


def forced_clear(failed_clears: int, refused: RefusedClear = NOT_REFUSED, folder: Path | None = None) -> str:
    """Write the guidance of a forced clear after ``failed_clears`` refused ones.

    It says why the last one was refused. The last attempt offers a drafted package to correct.
    """
    if failed_clears <= 0:
        return render(load("forced_clear_first", folder))
    size = (
        f"{refused.tokens:,} of {refused.limit:,} tokens" if refused.tokens and refused.limit else "its size is unknown"
    )
    is_last = failed_clears >= MAX_FORCED_CLEARS - 1 and bool(refused.draft.strip())
    prompt = load("forced_clear_third" if is_last else "forced_clear_second", folder)
    reason = refused.reason or NO_REASON
    values = {"attempt": failed_clears + 1, "attempts": MAX_FORCED_CLEARS, "reason": reason, "size": size}
    return render(prompt, **values, **({"draft": refused.draft.strip()} if is_last else {}))


def guidance_due(context: Context) -> bool:
    """Check for the entry into caution, and then for ``cadence`` kept generations since the last guidance."""
    return context.kept_since_guidance is None or context.kept_since_guidance >= context.cadence


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters that last between generations. ``kept_since_guidance`` counts the guided one itself."""

    kept_since_guidance: int | None = None
    guided_generations: int = 0
    failed_clears: int = 0
    clear_unproven: bool = False


def after_kept(counters: Counters, level: Level, *, guided: bool) -> Counters:
    """Return the counters after a kept generation that reported ``level``.

    An unknown level changes nothing, except that guidance, if it was given, restarts its cadence. A reply is kept only
    while no episode of forced clears is open. So failed clears from before belong to an episode that new limits closed,
    and are forgotten.
    """
    if level is Level.UNKNOWN:
        return replace(counters, kept_since_guidance=0) if guided else counters
    counters = judge_last_clear(counters, level) if counters.clear_unproven else replace(counters, failed_clears=0)
    if level is Level.CAUTION:
        kept = 1 if guided else None if counters.kept_since_guidance is None else counters.kept_since_guidance + 1
        return replace(counters, kept_since_guidance=kept, guided_generations=0)
    if level is Level.CRITICAL:
        return replace(counters, kept_since_guidance=None, guided_generations=counters.guided_generations + guided)
    return replace(counters, kept_since_guidance=None, guided_generations=0)


def judge_last_clear(counters: Counters, level: Level) -> Counters:
    """Judge the first known report after an accepted clear. If it is still critical, the clear counts as failed."""
    if not counters.clear_unproven or level is Level.UNKNOWN:
        return counters
    failed = counters.failed_clears + 1 if level is Level.CRITICAL else 0
    return replace(counters, failed_clears=failed, clear_unproven=False)


def clears_exhausted(counters: Counters) -> bool:
    return counters.failed_clears >= MAX_FORCED_CLEARS


def after_discarded(counters: Counters) -> Counters:
    return replace(counters, failed_clears=counters.failed_clears + 1)


def after_clear(counters: Counters, *, forced: bool) -> Counters:
    """Restart the counters for a new round. Failed clears are kept until a report shows that a forced one helped."""
    return Counters(failed_clears=counters.failed_clears if forced else 0, clear_unproven=forced)


def judge_forced(calls: Sequence[ToolCall]) -> ReplyDecision:
    """Accept exactly one ``clear_mind`` with a package that says something. Other text and calls are ignored."""
    clears = [call for call in calls if call.name == CLEAR_MIND]
    if not clears:
        called = ", ".join(sorted({call.name for call in calls}))
        return Discard(f"no clear_mind call, but {called}" if called else "text only, no clear_mind call")
    if len(clears) > 1:
        return Discard(f"{len(clears)} clear_mind calls, exactly one is valid")
    return (
        Keep() if package_of(clears[0]) else Discard("clear_mind with a blank, unfilled or unreadable reminder_content")
    )


def package_of(call: ToolCall) -> str:
    """Return the re-entry package of a call, or an empty string when its arguments hold none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except json.JSONDecodeError:
        return ""
    content = arguments.get("reminder_content") if isinstance(arguments, dict) else None
    return content.strip() if isinstance(content, str) and not says_nothing(content) else ""


def says_nothing(package: str) -> bool:
    """Check for a package that is blank, or no more than the outline that it was to fill, as weak models return it."""
    if is_blank(package):
        return True
    lines = [bare for line in package.splitlines() if (bare := line.strip(" \t<>[]#*•-:.").casefold())]
    return bool(lines) and all(line in UNFILLED for line in lines)
