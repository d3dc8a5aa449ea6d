"""The newest exchange stands word for word in every policy's rewrite, as long as it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.config import ContextConfig
from remediation.context import Units, total_tokens
from remediation.policies.newest_whole import newest_that_fit, with_newest_whole
from remediation.policies.policy import Policy, RewriteTask
from remediation.policies.registry import own
from tests.remediation.building import numbered, prose, system, tool, toolbox, user

LIMIT = 1_000
REWRITING = [policy for policy in own() if policy.rewrite and policy.is_choice]


def view(words: int) -> Units:
    """A talk of some 800 tokens, then a call whose result has so many words."""
    talk = [user(prose(f"topic{number}", 38)) for number in range(20)]
    return numbered(system(), *talk, user("Read it."), tool(prose("result", words), id="newest"))


def task(units: Units) -> RewriteTask:
    return RewriteTask(units, LIMIT, LIMIT // 2, 0, 0, LIMIT, ContextConfig())


@pytest.mark.parametrize("words", [20, 100, 300, 600, 900])
@pytest.mark.parametrize("policy", REWRITING, ids=lambda policy: policy.name)
def test_the_result_that_was_just_read_stays_whole(policy: Policy, words: int) -> None:
    assert policy.rewrite is not None
    units = view(words)
    rewritten = with_newest_whole(task(units), toolbox(), policy.rewrite)
    assert rewritten.units[-1].messages == units[-1].messages
    assert not any(unit.pinned for unit in rewritten.units[-1:]), "it is pinned for the rewrite alone"
    assert rewritten.failure or total_tokens(rewritten.units) <= LIMIT


@pytest.mark.parametrize(("words", "stays"), [(60, True), (240, True), (330, False)])
def test_results_before_the_newest_message_leave_room_for_an_account(words: int, stays: bool) -> None:
    """The aim is 500 tokens, of which an earlier call may take 333, and an earlier message all."""
    read = numbered(*view(words), user("And now?"))
    assert (read[-2].id in newest_that_fit(task(read))) == stays
    said = numbered(*view(0)[:-1], user(prose("message", words)), user("And now?"))
    assert said[-2].id in newest_that_fit(task(said))


@given(st.integers(1, 1_500), st.integers(1, 500))
def test_no_larger_result_stays_where_a_smaller_one_does_not(words: int, more: int) -> None:
    smaller, larger = view(words), view(words + more)
    assert smaller[-1].id in newest_that_fit(task(smaller)) or larger[-1].id not in newest_that_fit(task(larger))
