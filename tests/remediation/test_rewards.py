"""Context breaking's reward, term by term."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.context import Rewritten
from remediation.rewards import Outcome, outcome_of, priority_preserved, reward, reward_record, state_of, with_coherence
from tests.remediation.building import model, user

PERFECT = Outcome(True, False, 0.0, 0, 0.0, 0.0, 1000)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (PERFECT, 1.0),
        (replace(PERFECT, coherence_delta=-0.1), 0.95),  # 1 - 0.1 * 0.5
        (replace(PERFECT, tokens_reduced=600), 1.18),  # 1 + 600 / 1000 * 0.3
        (replace(PERFECT, priority_preserved=1.0), 1.2),  # 1 + 1 * 0.2
        (replace(PERFECT, used_recovery=True), 0.3),  # 1 - 0.7
        (replace(PERFECT, time_ms=500), 1.0),  # not above 500
        (replace(PERFECT, time_ms=2000), 0.8),  # 1 - 2 * 0.1
        (Outcome(True, False, -0.2, 500, 1000, 1.0, 1000), 1.15),  # 1 - 0.1 + 0.15 + 0.2 - 0.1
        (replace(PERFECT, success=False), -1.0),
        (replace(PERFECT, success=False, used_recovery=True), -1.7),
        (replace(PERFECT, success=False, priority_preserved=1.0, tokens_reduced=900), -1.0),  # earns nothing
        (replace(PERFECT, success=False, used_recovery=True, time_ms=9000), -2.0),  # -2.6, clamped
        (replace(PERFECT, coherence_delta=9.0), 2.0),  # 5.5, clamped
        (replace(PERFECT, original_tokens=0, tokens_reduced=5), 1.0),
    ],
)
def test_the_formula(outcome: Outcome, expected: float) -> None:
    assert reward(outcome) == pytest.approx(expected)


@given(
    st.builds(
        Outcome,
        success=st.booleans(),
        used_recovery=st.booleans(),
        coherence_delta=st.floats(-1, 1),
        tokens_reduced=st.integers(-1000, 100_000),
        time_ms=st.floats(0, 1e6),
        priority_preserved=st.floats(0, 1),
        original_tokens=st.integers(0, 100_000),
    )
)
def test_rewards_stay_between_minus_two_and_two(outcome: Outcome) -> None:
    assert -2 <= reward(outcome) <= 2


def test_an_outcome_is_read_from_a_rewrite() -> None:
    kept, gone = user("keep me", priority=1, id="a"), model("a b c d e f", id="b")
    rewritten = Rewritten((kept,), (gone,), 10, 3, millis=42.0)
    outcome = outcome_of((kept, gone), rewritten)
    assert outcome == Outcome(True, False, 0.0, 7, 42.0, 1.0, 10)


def test_coherence_is_part_of_the_reward_from_when_it_was_measured() -> None:
    measured = with_coherence(reward_record({}, {}, PERFECT, {}), 0.9)
    assert reward_record({}, {}, PERFECT, {})["reward"] == 1.0  # unmeasured coherence counts as no change
    assert measured["reward"] == pytest.approx(0.95)  # 1 - 0.1 * 0.5
    assert measured["outcome"]["coherence_delta"] == pytest.approx(-0.1)


def test_a_changed_unit_is_not_preserved() -> None:
    before = (user("one", priority=1, id="a"), user("two", priority=1, id="b"), user("three", id="c"))
    after = (user("one", priority=1, id="a"), user("shorter", priority=1, id="b"))
    assert priority_preserved(before, after) == 0.5
    assert priority_preserved((), after) == 1.0


def test_the_export_line_has_the_documents_keys() -> None:
    state = state_of((user("one two", priority=1), model("three")), 17, 5000)
    record = reward_record(state, {"chain": ["summarize_old"]}, PERFECT, state)
    assert {"stateBefore", "action", "reward", "stateAfter"} <= set(record)
    assert record["reward"] == 1.0
    assert state == {"units": 2, "estTokens": 17, "limit": 5000, "kinds": {"message": 2}, "priorityOne": 1}
