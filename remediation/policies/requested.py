"""A rewrite that a person asked for by hand, whatever the agent's own policy is."""

from remediation.context import Context
from remediation.decisions import ClearMind, Decision, Proceed, Rewrite

_POLICY_OF = {"compact": "autocompaction", "break": "breaking", "prune": "retention", "fresh_start": "fresh_start"}


def policy_of(request: str) -> str:
    """Whose rules and limit a rewrite asked for by hand follows; empty when none was asked for."""
    return _POLICY_OF.get(request, "")


def before_generation(context: Context) -> Decision:
    if not context.requested:
        return Proceed()
    if context.requested == "clear":
        return ClearMind("asked for by hand", by_person=True)
    # D's function keeps its own default of 80 % when a person calls it; the others aim at half (R15).
    limit = context.limit or 0
    target = limit * 8 // 10 if context.requested == "prune" else limit // 2
    return Rewrite(_POLICY_OF[context.requested], "asked for by hand", target)
