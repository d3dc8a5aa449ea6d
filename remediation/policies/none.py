"""No compaction: reported usage alone decides when the agent is asked to clear its mind."""

from remediation.policies.policy import Policy
from remediation.policies.retention import window_or_table

POLICY = Policy(
    name="none",
    label="no compaction",
    sentence="Nothing is compacted; health guidance and forced clears keep the context in bounds.",
    automatic="Nothing is pruned by itself. Reported usage alone decides when the agent is asked to clear its mind",
    place=10,
    limit=window_or_table,  # shown by the context panel; nothing is decided by it
)
