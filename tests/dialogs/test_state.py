"""A dialog's state: one pure function of its rows. That the column keeps up with it is the driver model's invariant."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dialogs.state import Facts, State, state_of

NOTHING = Facts(closed=False, open_question_kind="", leased=False, owes_work=False, failed=False)
facts = st.builds(
    Facts,
    closed=st.booleans(),
    open_question_kind=st.sampled_from(["", "question", "context_health_critical"]),
    leased=st.booleans(),
    owes_work=st.booleans(),
    failed=st.booleans(),
)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (NOTHING, State.IDLE),
        (Facts(False, "", False, True, False), State.QUEUED),
        (Facts(False, "", True, True, False), State.GENERATING),
        (Facts(False, "question", False, True, False), State.WAITING),
        (Facts(False, "context_health_critical", False, True, False), State.SUSPENDED),
        (Facts(False, "", False, False, True), State.FAILED),
        (Facts(True, "", False, False, False), State.CLOSED),
    ],
)
def test_each_state_has_its_facts(value: Facts, state: State) -> None:
    assert state_of(value) is state


@given(facts)
def test_what_is_closed_is_nothing_else(value: Facts) -> None:
    assert (state_of(value) is State.CLOSED) == value.closed


@given(facts)
def test_only_what_owes_work_and_waits_for_nobody_may_be_driven(value: Facts) -> None:
    """The sweeper and the claim go by these two states."""
    if state_of(value) in (State.QUEUED, State.GENERATING):
        assert not value.closed
        assert not value.open_question_kind
        assert value.owes_work or value.leased


@given(facts)
def test_work_that_is_owed_is_never_shown_as_rest(value: Facts) -> None:
    if value.owes_work:
        assert state_of(value) not in (State.IDLE, State.FAILED)
