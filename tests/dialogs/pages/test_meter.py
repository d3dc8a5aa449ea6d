"""What the instrument says of a context, from frozen rows."""

from collections import namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.context.sent import Sent
from dialogs.pages.meter import ANSWERS, Meter, meter_of

Row = namedtuple("Row", "prompt_tokens generation__base generation__sent")
SENT = Sent(sizes=(40, 20, 0, 30, 10), output=4_000).stored


def health(level: str = "healthy", *, optimal: int = 100_000, critical: int | None = 115_200) -> dict[str, Any]:
    window = 128_000 if critical else None
    limits = {"model_context_limit": window, "optimal_max_tokens": optimal, "critical_max_tokens": critical}
    return {"level": level, **limits}


def rows_of(*prompts: int | None, base: str = "1:0") -> list[Row]:
    return [Row(prompt, base, SENT) for prompt in prompts]


def of(*prompts: int, level: str = "healthy", **limits: Any) -> Meter:
    return meter_of(health(level, **limits), prompts[-1], rows_of(*prompts))


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        (of(92_000, 93_000, 94_000), "About 7 answers until Caution."),
        (of(96_000, 98_000, 100_000), "About 1 answer until Caution."),
        (of(90_000, 97_000, 104_000, level="caution"), "About 2 answers until Critical."),
        (of(100, 110, 120), "More than 100 answers until Caution."),
        (of(100, 200, 300, optimal=200_000, critical=900), "About 7 answers until Critical."),  # no caution band
        (of(118_000, 119_000, 120_000, level="critical"), ""),
        (of(92_000, 93_000, 94_000, level="unknown"), ""),
        (of(92_000, 93_000, 94_000, critical=None), ""),
        (of(93_000, 94_000), ""),
        (of(94_000, 94_000, 94_000), ""),
    ],
)
def test_the_forecast_names_the_next_level(meter: Meter, words: str) -> None:
    assert (meter.lead if meter.growth else "") == words


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        (of(93_000, 94_000), "There is room: nothing to do."),
        (of(110_000, level="caution"), "The context is getting full: make room soon."),
        (of(118_000, 119_000, 120_000, level="critical"), "The context is full: make room now."),
        (meter_of(health("healthy"), 900, []), "There is room: nothing to do."),
        (of(94_000, level="unknown"), ""),
        (meter_of(health("healthy"), None, []), ""),
    ],
)
def test_it_leads_with_one_sentence_on_what_is_to_be_done(meter: Meter, words: str) -> None:
    assert meter.lead == words


def test_a_forecast_begins_anew_after_a_rewrite_and_a_clear() -> None:
    before, after = rows_of(60_000, 70_000, 80_000), rows_of(81_000, 82_000, base="1:7")
    assert not meter_of(health(), 82_000, before + after).growth
    again = meter_of(health(), 84_000, [*before, *after, *rows_of(84_000, base="1:7")])
    assert (again.lead, again.growth) == ("About 11 answers until Caution.", 1_500)


def test_its_parts_make_up_the_window() -> None:
    parts = of(10_000).parts
    named = {part.name: part.tokens for part in parts}
    assert named["instructions"] == 4_000  # 40 of 100 characters
    assert named["reserve for the answer"] == 4_000
    assert sum(named.values()) == 128_000
    assert sum(part.width for part in parts) == pytest.approx(100, abs=0.1)


def test_parts_that_are_more_than_the_window_end_with_it() -> None:
    parts = of(126_000).parts
    assert parts[-1].name == "reserve for the answer"
    assert parts[-1].x + parts[-1].width == pytest.approx(100, abs=0.1)


def test_without_a_window_the_request_and_its_reserve_are_the_whole() -> None:
    parts = of(6_000, critical=None).parts
    assert "free" not in {part.name for part in parts}
    assert sum(part.width for part in parts) == pytest.approx(100, abs=0.1)


def test_nothing_is_drawn_of_a_number_that_was_not_reported() -> None:
    assert meter_of(health("unknown"), None, rows_of(80_000, None)) == Meter()
    assert [part.name for part in meter_of(health(), 80_000, []).parts] == ["prompt", "free"]


@given(st.lists(st.tuples(st.none() | st.integers(1, 99_000), st.sampled_from(["1:0", "1:7", "2:0"])), max_size=20))
def test_earlier_answers_change_nothing(answers: list[tuple[int | None, str]]) -> None:
    rows = [row for prompt, base in answers for row in rows_of(prompt, base=base)]
    tokens = rows[-1].prompt_tokens if rows else None
    assert meter_of(health(), tokens, rows) == meter_of(health(), tokens, rows[-ANSWERS:])
