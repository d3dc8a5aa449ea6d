"""The generator of overflowing dialogs."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remediation.context import UnitKind, UnitRole
from remediation.synthetic_dialogs import FactKind, Mix, Position, overflowing_dialog
from remediation.text.classify import classify
from tests.remediation.building import count, ids


@pytest.mark.parametrize("multiple", [1, 2, 3, 5])
def test_it_overflows_as_asked(multiple: float) -> None:
    dialog = overflowing_dialog(Random(1), 4000, multiple, count)
    assert 4000 * multiple <= dialog.est_tokens <= 4000 * multiple + 400


def test_a_seed_gives_the_same_dialog_and_another_seed_another() -> None:
    first, same, other = (overflowing_dialog(Random(seed), 4000, 2, count) for seed in (7, 7, 8))
    assert first == same
    assert first != other


def test_facts_are_planted_where_they_say_and_nowhere_else() -> None:
    dialog = overflowing_dialog(Random(3), 4000, 3, count)
    assert len(dialog.facts) >= 19
    for fact in dialog.facts:
        holders = [u for u in dialog.units if fact.needle in u.text]
        assert ids(holders) == [fact.unit_id]
        assert (holders[0].role, holders[0].priority) == (fact.role, fact.priority)


def test_facts_are_spread_over_positions_roles_and_kinds() -> None:
    facts = [fact for seed in range(20) for fact in overflowing_dialog(Random(seed), 4000, 3, count).facts]
    assert {fact.position for fact in facts} == set(Position)
    assert {fact.kind for fact in facts} == set(FactKind)
    assert {fact.role for fact in facts} == {UnitRole.USER, UnitRole.ASSISTANT, UnitRole.TOOL}
    old = sum(fact.position is Position.OLD for fact in facts)
    assert 0.25 < old / len(facts) < 0.42


def test_tools_state_no_prohibitions() -> None:
    facts = [fact for seed in range(20) for fact in overflowing_dialog(Random(seed), 4000, 3, count).facts]
    assert not any(fact.kind is FactKind.PROHIBITION and fact.role is not UnitRole.USER for fact in facts)


def test_the_newest_message_is_an_unanswered_question() -> None:
    dialog = overflowing_dialog(Random(1), 4000, 2, count)
    assert dialog.units[-1].role is UnitRole.USER
    assert dialog.units[-1].pinned
    assert dialog.units[0].role is UnitRole.SYSTEM


def test_the_mix_is_obeyed() -> None:
    prose_only = overflowing_dialog(Random(1), 4000, 3, count, Mix(code=0, plan=0, tools=0, priority_one=0))
    assert {u.kind for u in prose_only.units} == {UnitKind.MESSAGE}
    assert not any(u.priority == 1 for u in prose_only.units[1:])
    mixed = overflowing_dialog(Random(1), 4000, 5, count)
    assert {UnitKind.MESSAGE, UnitKind.CODE, UnitKind.LOG} <= {u.kind for u in mixed.units}


def test_most_units_are_classified_as_what_they_are() -> None:
    units = [u for seed in range(5) for u in overflowing_dialog(Random(seed), 4000, 3, count).units]
    right = sum(classify(u.messages[-1].text, u.role) is u.kind for u in units)
    assert right / len(units) > 0.9


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(100, 3000), st.floats(0.5, 4), st.integers(0, 60))
def test_units_are_whole_and_distinct(seed: int, limit: int, multiple: float, facts: int) -> None:
    dialog = overflowing_dialog(Random(seed), limit, multiple, count, Mix(facts=facts))
    assert len(set(ids(dialog.units))) == len(dialog.units)
    assert all(u.est_tokens == count(u.messages) for u in dialog.units)
    assert len(dialog.facts) <= facts
