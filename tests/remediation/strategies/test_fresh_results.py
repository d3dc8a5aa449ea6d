"""The newest tool result: cut where it leaves no room for the rest, with a way to read it whole; nobody's words are."""

from dataclasses import replace
from time import process_time

from dominds.llm.messages import Role
from remediation.context import Unit, Units
from remediation.policies.laws import is_paired
from remediation.strategies.fresh_results import cut_fresh_results
from tests.remediation.building import model, numbered, prose, system, tool, toolbox, user

AIM = 600


def lines(number: int) -> str:
    return "\n".join(f"record {place} was copied to shelf {place * 7}" for place in range(number))


def dialog(result: Unit) -> Units:
    return numbered(system(), user("Find out why the harbour import stops."), model(prose("import", 60)), result)


def result_of(unit: Unit) -> str:
    return next(message.text for message in unit.messages if message.role is Role.TOOL)


def test_a_result_that_leaves_room_stays_as_it_is() -> None:
    units = dialog(tool(lines(20)))
    assert cut_fresh_results(units, AIM, toolbox()) == units


def test_a_result_that_leaves_none_keeps_its_ends_and_failures() -> None:
    middle = "ERROR E77: the lock of row 12 is held"
    units = dialog(tool(f"{lines(200)}\n{middle}\n{lines(200)}"))
    *others, cut = cut_fresh_results(units, AIM, toolbox())
    assert tuple(others) == units[:-1]
    assert is_paired(cut)
    assert cut.est_tokens <= AIM // 2
    text = result_of(cut)
    assert "read_archive show it (turn 4)" in text
    assert "record 0 was copied" in text
    assert text.endswith("record 199 was copied to shelf 1393")
    assert "ERROR E77" in text
    assert "lines left out" in text


def test_what_is_pinned_important_or_said_by_somebody_is_never_cut() -> None:
    for kept in (
        replace(tool(lines(400)), pinned=True),
        replace(tool(lines(400)), priority=1),
        user(lines(400)),
        model(lines(400)),
    ):
        units = dialog(kept)
        assert cut_fresh_results(units, AIM, toolbox()) == units


def test_of_several_results_the_small_ones_stay_whole() -> None:
    large, small = tool(lines(400), id="large"), tool(lines(5), id="small")
    both = replace(large, messages=(*large.messages, *small.messages), est_tokens=large.est_tokens + small.est_tokens)
    cut = cut_fresh_results(dialog(both), AIM, toolbox())[-1]
    assert cut.messages[-1].text == lines(5)
    assert cut.est_tokens <= AIM // 2


def test_a_long_line_is_cut_between_its_values() -> None:
    line = ", ".join(f"shelf-{place:06}" for place in range(900))
    whole = set(line.split(", "))
    _, *kept = result_of(cut_fresh_results(dialog(tool(line)), AIM, toolbox())[-1]).splitlines()
    values = [value for part in kept if not part.startswith("[…") for value in part.replace(",", "").split()]
    assert len(values) > 9
    assert whole.issuperset(values)


def test_a_megabyte_takes_under_a_second_however_its_lines_are_cut() -> None:
    for text in ("x" * 1_000_000, "ab cd\n" * 170_000):
        units, begun = dialog(tool(text)), process_time()
        cut_fresh_results(units, AIM, toolbox())
        assert process_time() - begun < 2.5
