"""Document D: prune by importance before the model call when utilisation is over 80 %."""

from remediation.context import Context
from remediation.decisions import Decision, Proceed, Rewrite


def before_generation(context: Context) -> Decision:
    limit = context.limit
    if limit is None or not context.changed or not (context.overflowed or context.est_tokens * 10 > limit * 8):
        return Proceed()
    if context.overflowed:
        # The limit may be only the document's table (R18); what was just refused is known to be too long.
        reason = "the provider refused the request as too long"
        return Rewrite("retention", reason, min(limit, context.est_tokens) // 2)
    return Rewrite("retention", "utilisation over 80 %", limit // 2)
