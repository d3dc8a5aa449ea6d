"""Document D: prune by importance before the model call when utilisation is over 80 %."""

from remediation.context import Context
from remediation.decisions import Decision, Proceed, Rewrite


def before_generation(context: Context) -> Decision:
    limit = context.limit
    if limit is None or not context.changed or not (context.overflowed or context.est_tokens * 10 > limit * 8):
        return Proceed()
    return Rewrite("retention", "utilisation over 80 %", limit // 2)
