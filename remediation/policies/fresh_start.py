"""A fresh start from a handover summary: by hand, at a milestone, or when breaking did not help.

No agent can have it as its own policy.
"""

import json

from remediation.context import Rewritten, Toolbox, Units
from remediation.decisions import AT_MILESTONE, BY_HAND
from remediation.loops import LOOP_REASON
from remediation.policies.policy import ByHand, Policy, RewriteTask, budget_limit, configured_tokenizer
from remediation.prompts import render
from remediation.strategies.fresh_start import start_fresh
from remediation.strategies.outcome import newest_user
from remediation.strategies.stand_ins import HANDOVER_OPENING

VERB = "fresh_start"
COMPLETE_MILESTONE = "complete_milestone"  # the tool's name
AFTER_LOOP = (
    "Resuming after a loop: the same calls brought the same results again and again. Try another way, or ask.\n"
)
BY_REQUEST = "Resuming at a person's request.\n"
NAME_CHARS = 200  # of a milestone's name, at most


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    return start_fresh(task.units, toolbox, task.limit, opening_of(task, toolbox))


def opening_of(task: RewriteTask, toolbox: Toolbox) -> str:
    """Return the handover's first words, which say why the agent starts afresh."""
    if task.reason == LOOP_REASON:
        return AFTER_LOOP
    if task.reason not in (BY_HAND, AT_MILESTONE):
        return HANDOVER_OPENING
    if name := _milestone(task.units):
        return render(toolbox.prompt("milestone"), name=name) + "\n"
    return BY_REQUEST


def _milestone(units: Units) -> str:
    """Return the agent's summary of the newest milestone since the newest message, or an empty string."""
    since = units[newest_user(units) + 1 :]
    calls = (call for unit in reversed(since) for message in unit.messages for call in message.tool_calls)
    summary = next((call.arguments for call in calls if call.name == COMPLETE_MILESTONE), "")
    try:
        arguments = json.loads(summary or "null")
    except (ValueError, RecursionError):
        return ""
    return " ".join(str(arguments.get("summary", "")).split())[:NAME_CHARS] if isinstance(arguments, dict) else ""


POLICY = Policy(
    name="fresh_start",
    label="fresh start",
    sentence="Replaces the conversation by a handover summary.",
    title="Fresh start from a handover",
    place=60,
    is_choice=False,
    limit=budget_limit,
    tokenizer=configured_tokenizer,
    rewrite=rewrite,
    shows_phases=True,
    by_hand=ByHand(
        verb=VERB,
        label="Fresh start",
        button="Reset Agent Chat",
        does="Go on from a handover summary.",
        menu="Reset Agent Chat",
        hint="All messages go; the agent begins anew from a handover note.",
        starts_over=True,
        confirm="Reset the agent's chat? It starts fresh from a handover summary; everything stays in the archive.",
    ),
)
