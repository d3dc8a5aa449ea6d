"""Run by ``pytest`` here: the laws of every policy, and what this one promises besides."""

from keep_newest_policy import POLICY

from remediation.policies.conformance import PolicyConformance, numbered, system, task, toolbox, unit


class TestKeepNewest(PolicyConformance):
    policy = POLICY


def test_the_newest_stay() -> None:
    units = numbered(system(), *(unit(f"message {number} " + "word " * 40) for number in range(20)))
    rewritten = POLICY.rewrite(task(units, limit=800, target=400), toolbox())
    assert rewritten.units[0] == units[0]
    assert rewritten.units[-5:] == units[-5:]
    assert units[1] in rewritten.removed
