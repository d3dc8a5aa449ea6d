"""What the work needs is in sight after a rewrite: measured on agent dialogs, with a good summary,
without, and with bad ones.

``docs/quality.md`` tells the figures without a model, which are compared to the digit. The other bounds are a little
below what was measured.
"""

from pathlib import Path

import pytest

from remediation.context import UnitRole
from remediation.strategies.outcome import is_question
from tests.quality.facts import load_dialogs
from tests.quality.keeping import FACTORS, POLICIES, SUMMARISERS, Case, cases, keep, keep_on, out_of_ten

CASES = list(cases())
ONE_CUT = [case for case in CASES if case.summary.cut == 70]
USABLE = ("thinking aloud", "Error: truthfully", "I cannot, truthfully")
UNUSABLE = ("thinking only", "truncating", "refusing", "obeying", "calling")


PAGE = Path(__file__).parents[2] / "docs/quality.md"
NAMES = {"fallback": "compaction"}  # of policies on the page, if other than here


def published(policy: str) -> list[str]:
    """Facts of ten on the page: once at a third and at a fifth, then again and again at both."""
    start = f"| **{NAMES.get(policy, policy)}** | "
    (*_, row) = (line for line in PAGE.read_text().splitlines() if line.startswith(start) and " of 96 " in line)
    return [cell.strip() for cell in row.split("|")[2:6]]


def name_of(case: Case) -> str:
    return f"{case.dialog.name}-{case.summary.cut}"


# Minutes of CPU for all cuts and factors: one of each here, and all of them in `make faults`.
@pytest.mark.parametrize(
    ("factor", "measured"),
    [(3, ONE_CUT), *(pytest.param(factor, CASES, marks=pytest.mark.deep) for factor in FACTORS)],
    ids=["one cut", *(f"all cuts {factor}x" for factor in FACTORS)],
)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("summariser", "on_average", "at_least"), [("good", 9.0, 7.0), ("none", 8.0, 6.0)])
def test_most_facts_stay_in_sight(
    policy: str, factor: int, measured: list[Case], summariser: str, on_average: float, at_least: float
) -> None:
    kept = [keep(case, POLICIES[policy], factor, SUMMARISERS[summariser]) for case in measured]
    assert out_of_ten(kept) >= on_average
    worst = min(kept, key=lambda one: one.share)
    assert 10 * worst.share >= at_least, f"{name_of(worst.case)} lost {worst.lost}"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_page_tells_what_one_rewrite_keeps(policy: str) -> None:
    kept = [[keep(case, POLICIES[policy], factor, SUMMARISERS["none"]) for case in CASES] for factor in (3, 5)]
    assert [f"{out_of_ten(one):.1f}" for one in kept] == published(policy)[:2]


@pytest.mark.parametrize("policy", POLICIES)
def test_most_facts_outlast_one_rewrite_after_the_other(policy: str) -> None:
    shares = [keep_on(dialog, POLICIES[policy], 3) for dialog in load_dialogs()]
    assert f"{10 * sum(shares) / len(shares):.1f}" == published(policy)[2]
    assert 10 * min(shares) >= 6


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "summariser", [USABLE[0], *(pytest.param(name, marks=pytest.mark.deep) for name in USABLE[1:])]
)
def test_a_truthful_summary_is_used_whatever_it_begins_with(policy: str, summariser: str) -> None:
    kept = [keep(case, POLICIES[policy], 5, SUMMARISERS[summariser]) for case in ONE_CUT]
    assert out_of_ten(kept) >= 9
    assert not any("<think>" in unit.text for one in kept for unit in one.rewritten.units)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "summariser", [name if name == "truncating" else pytest.param(name, marks=pytest.mark.deep) for name in UNUSABLE]
)
def test_a_bad_summary_costs_little(policy: str, summariser: str) -> None:
    behave = SUMMARISERS[summariser]
    kept = [keep(case, POLICIES[policy], 5, behave) for case in ONE_CUT]
    assert out_of_ten(kept) >= 8
    for one in kept if summariser != "truncating" else ():  # half a summary may end as if it were whole
        written = behave(one.case.summary.text)
        assert not any(written in unit.text for unit in one.rewritten.units)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", ONE_CUT, ids=name_of)
def test_no_answered_question_stands_bare_and_no_result_is_orphaned(policy: str, case: Case) -> None:
    units = keep(case, POLICIES[policy], 5, SUMMARISERS["none"]).rewritten.units
    answered = {
        unit.id for unit, following in zip(case.units, case.units[1:], strict=False) if not is_question(following)
    }
    for unit, following in zip(units, (*units[1:], None), strict=False):
        if is_question(unit) and unit.id in answered:
            assert following is not None
            assert not is_question(following)
        if unit.role is UnitRole.TOOL:
            calls = {call.id for message in unit.messages for call in message.tool_calls}
            assert calls == {message.tool_call_id for message in unit.messages if message.tool_call_id}
