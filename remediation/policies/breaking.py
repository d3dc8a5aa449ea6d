"""Context breaking: a chain of strategies at the warning threshold, and a fresh start when nothing else helps."""

from remediation.config import ContextConfig
from remediation.context import Context, Rewritten, Toolbox
from remediation.decisions import Decision, Proceed, Rewrite
from remediation.loops import LOOP_REASON
from remediation.policies import fresh_start
from remediation.policies.policy import ByHand, Policy, RewriteTask, budget_limit, configured_tokenizer, rewrite_due
from remediation.strategies.breaking.chain import break_context

OVER_HITS_BEFORE_FRESH_START = 2  # more than this many in an hour


def before_generation(context: Context) -> Decision:
    limit = context.limit
    if limit is None or not context.changed:
        return Proceed()
    if context.loop_detected or (
        context.budget.is_over_trigger and context.over_hits_last_hour > OVER_HITS_BEFORE_FRESH_START
    ):
        reason = LOOP_REASON if context.loop_detected else "more than 2 over-hits in an hour"
        return Rewrite(fresh_start.POLICY.name, reason, context.budget.aim)
    return rewrite_due(context, POLICY.name) if context.wants_rewrite else Proceed()


def warning_share(config: ContextConfig) -> float:
    return config.warning_threshold


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    return break_context(task.units, task.config, toolbox, task.limit, task.target)


def failure_ends_message(config: ContextConfig) -> bool:
    return config.recovery_mode == "error"


POLICY = Policy(
    name="breaking",
    label="context breaking",
    sentence="Summarizes, chunks and discards in a chain of strategies, down to a token budget.",
    automatic="Context is shortened before model calls when it nears its budget",
    title="Context shortened",
    place=40,
    before_generation=before_generation,
    limit=budget_limit,
    trigger_share=warning_share,
    tokenizer=configured_tokenizer,
    watches_past=True,
    rewrite=rewrite,
    shows_phases=True,
    failure_ends_message=failure_ends_message,
    is_reviewed=True,
    tools=("complete_milestone",),
    by_hand=ByHand(
        verb="break",
        label="Break down",
        button="Report & Continue",
        does="Run the chain of breaking strategies.",
        menu="Report & Continue",
        hint="Old messages become a summary, long ones are shortened, and what matters least goes.",
        beside_warning=True,
    ),
)
