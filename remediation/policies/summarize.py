"""Summaries by recency: the newest messages stay, a line of counts and a hand-off summary stand for all others."""

from dataclasses import replace

from remediation.context import Context, Rewritten, Toolbox, Units, step_of, total_tokens
from remediation.decisions import Decision
from remediation.policies.policy import ByHand, Policy, RewriteTask
from remediation.policies.retention import decide, events, window_or_table
from remediation.strategies.carrying import ledger_reserve
from remediation.strategies.conclusion import Attempt, conclude, fail
from remediation.strategies.fresh_results import cut_fresh_results
from remediation.strategies.importance import indispensable, with_account
from remediation.strategies.masking import mask_old_output
from remediation.strategies.outcome import in_units, is_ledger

KEPT = (10, 5, 3, 1)  # how many of the newest messages stay: the most that leave room for a summary


def before_generation(context: Context) -> Decision:
    return decide(context, POLICY)


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    attempt = Attempt(task.units, task.limit, toolbox.clock(), target=task.target)
    room = max(1, task.target - ledger_reserve(task.limit, task.units))
    talk = tuple(unit for unit in task.units if not is_ledger(unit))
    light = mask_old_output(cut_fresh_results(talk, room, toolbox), room, toolbox)
    kept = _newest(light, room)
    if kept == talk:
        return fail(attempt, f"Nothing to summarise: there are no more than {KEPT[0]} messages.", toolbox)
    after = with_account(task.units, kept, room, toolbox, task.limit)
    step = step_of("summarize", task.units, after, f"kept the newest {in_units(len(kept))}")
    rewritten = conclude(replace(attempt, steps=(step,)), after, toolbox)
    if rewritten.est_after > task.limit:
        says = f"est. {rewritten.est_after:,} tokens, and {task.limit:,} are allowed."
        return fail(attempt, f"What must stay is too large even with a summary of all else: {says}", toolbox)
    return rewritten


def _newest(units: Units, room: int) -> Units:
    """Return the units that stay as they are: as many of KEPT as leave half of the room to the summary."""
    stays = indispensable(units)
    views = [
        tuple(unit for index, unit in enumerate(units) if index in stays or index >= len(units) - newest)
        for newest in KEPT
    ]
    return next((view for view in views if total_tokens(view) * 2 <= room), views[-1])


POLICY = Policy(
    name="summarize",
    label="summary of older messages",
    sentence="Keeps the newest messages and summarizes all others.",
    automatic="Older messages are summarized before API calls when utilization exceeds 80%",
    title="Older messages summarized",
    place=30,
    default_for=("ollama", "llamacpp", "vllm"),  # some of these servers cut a long request without saying so
    before_generation=before_generation,
    limit=window_or_table,
    rewrite=rewrite,
    events=events,
    by_hand=ByHand(
        verb="summarize",
        label="Summarize",
        button="Summarize older messages",
        does="Keep the newest ten messages; a summary stands for the others.",
        hint="The newest messages stay as they are; one summary stands for all others.",
        preview_note=f"The newest {KEPT[0]} messages stay, fewer where they are long, with what is pinned.",
    ),
)
