"""Document C: break the context at the warning threshold, recover when nothing else helps."""

from remediation.context import Context
from remediation.decisions import Decision, Proceed, Rewrite

LOOP_REASON = "a loop was detected"
OVER_HITS_BEFORE_FRESH_START = 2  # more than this many in an hour


def before_generation(context: Context) -> Decision:
    limit = context.limit
    if limit is None or not context.changed:
        return Proceed()
    over_warning = context.est_tokens > limit * context.warning_threshold
    if context.loop_detected or (over_warning and context.over_hits_last_hour > OVER_HITS_BEFORE_FRESH_START):
        reason = LOOP_REASON if context.loop_detected else "more than 2 over-hits in an hour"
        return Rewrite("fresh_start", reason, limit // 2)
    if context.overflowed or over_warning:
        return Rewrite("breaking", f"est. {context.est_tokens:,} of {limit:,} tokens", limit // 2)
    return Proceed()
