"""A context policy that keeps the newest messages: above 70 % of the window, older ones go until half is taken."""

from remediation.context import Context, Rewritten, Toolbox, Unit, UnitRole, step_of, total_tokens
from remediation.decisions import Decision, Proceed, Rewrite
from remediation.policies.laws import untouchable
from remediation.policies.policy import ByHand, Policy, RewriteTask
from remediation.strategies.carrying import ledger_budget
from remediation.strategies.conclusion import Attempt, conclude, fail

WARNING_PERCENT = 70


def before_generation(context: Context) -> Decision:
    limit = context.limit
    if limit is None or not context.changed:
        return Proceed()  # without a limit there is no target; without news, the last rewrite did not help
    if context.overflowed or context.est_tokens * 100 > limit * WARNING_PERCENT:
        return Rewrite(POLICY.name, f"over {WARNING_PERCENT} % of the window", POLICY.target(limit))
    return Proceed()


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    """What must stay, and then from the newest down what fits; the key facts of the rest are carried in a ledger."""
    attempt = Attempt(task.units, task.limit, toolbox.clock())
    stays = {unit.id for unit in untouchable(task.units)}
    stays |= {unit.id for unit in task.units if unit.priority == 1 and unit.role is not UnitRole.SYSTEM}
    room = task.target - sum(unit.est_tokens for unit in task.units if unit.id in stays) - ledger_budget(task.limit)
    for unit in reversed(task.units):
        if unit.id in stays:
            continue
        if unit.est_tokens > room:
            break
        stays.add(unit.id)
        room -= unit.est_tokens
    after: tuple[Unit, ...] = tuple(unit for unit in task.units if unit.id in stays)
    if total_tokens(after) > task.limit:
        return fail(attempt, f"What must stay takes est. {total_tokens(after):,} of {task.limit:,} tokens.", toolbox)
    step = step_of("keep_newest", task.units, after, f"kept {len(after)} units")
    return conclude(Attempt(task.units, task.limit, attempt.started_at, (step,)), after, toolbox)


POLICY = Policy(
    name="keep_newest",
    label="newest messages",
    sentence="Keeps the newest messages and what must stay.",
    automatic=f"Older messages go when the context exceeds {WARNING_PERCENT}% of the window",
    title="Older messages dropped",
    before_generation=before_generation,
    rewrite=rewrite,
    by_hand=ByHand(
        verb="keep_newest",
        label="Keep newest",
        button="Drop older messages",
        does="Keep the newest messages, down to half of the window.",
        hint="drop the oldest",
    ),
)
