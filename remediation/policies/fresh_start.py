"""A fresh start from a handover summary: by hand, at a milestone, or when breaking did not help. No agent's own policy."""

from remediation.context import Rewritten, Toolbox
from remediation.policies.policy import ByHand, Policy, RewriteTask, budget_limit, configured_tokenizer
from remediation.strategies.fresh_start import start_fresh

VERB = "fresh_start"


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    return start_fresh(task.units, toolbox, task.limit)


POLICY = Policy(
    name="fresh_start",
    label="fresh start",
    sentence="Replaces the conversation by a handover summary.",
    title="Fresh start from a handover",
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
        hint="fresh start",
        confirm="Reset the agent's chat? It starts fresh from a handover summary; everything stays in the archive.",
    ),
)
