"""Rewrites of the view: performing what a policy or a person asked for, storing it as a row, undoing it."""

from dialogs.leases import Lease
from dialogs.situation import Situation
from remediation.decisions import Rewrite


def perform(lease: Lease, situation: Situation, decision: Rewrite) -> None:
    raise NotImplementedError
