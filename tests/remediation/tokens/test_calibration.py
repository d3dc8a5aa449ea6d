"""Estimates follow what providers report, within bounds."""

import json
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolSpec
from remediation.tokens.calibration import Calibration, Counted, calibrate, estimate_request, margin_of
from remediation.tokens.counting import counter_for

reported_tokens = st.integers(-10, 3_000_000)
counts = st.builds(Counted, st.integers(-10, 3_000_000), st.integers(0, 60_000))
calibrations = st.builds(Calibration, st.floats(0.5, 2.0), st.floats(0.0, 3.0), st.floats(-200, 200))


@pytest.mark.parametrize(
    ("previous", "counted", "reported", "expected"),
    [
        # The first report is nearly believed: 150² of 150² + 5² + 2² + 30²,
        # the rest is taken for chance or fixed words.
        (None, Counted(1_000), 1_200, 1_199.8),
        (None, Counted(1_000), 1_000, 1_000),
        (None, Counted(100), 120, 119.8),  # a short one as much, as words that stand in every request
        (None, Counted(10_000), 90_000, 17_185),  # not more than five deviations of what it may be
        (None, Counted(10_000), 10, 4_994),  # and no text is worth less than half of its count
        (Calibration.of_factor(1.3), Counted(1_000, 500), 0, 1_950),  # no report teaches nothing
        (None, Counted(0, 500), 500, 500),
        (None, Counted(41, 970), 43, 43.5),  # SmolLM2's template, which leaves the tools out
    ],
)
def test_a_report_corrects_what_is_expected(
    previous: Calibration | None, counted: Counted, reported: int, expected: float
) -> None:
    assert calibrate(previous, counted, reported).expected(counted) == pytest.approx(expected, abs=1)


def calibrated(reports: Iterable[tuple[Counted, int]]) -> Calibration:
    """What these reports teach, in their order."""
    calibration: Calibration | None = None
    for counted, reported in reports:
        calibration = calibrate(calibration, counted, reported)
    assert calibration is not None
    return calibration


@given(st.none() | calibrations, counts, reported_tokens)
def test_slope_and_share_keep_their_bounds_and_the_spread_is_one(
    previous: Calibration | None, counted: Counted, reported: int
) -> None:
    learnt = calibrate(previous, counted, reported)
    assert 0.5 <= learnt.slope <= 2.0 and 0.0 <= learnt.tools_share <= 3.0
    a, _, _, d, _, f = learnt.spread
    assert min(a, d, f) >= 0, "variances"


@given(st.floats(0.75, 1.4), st.integers(1_000, 100_000), st.integers(0, 20_000))
def test_a_steady_provider_is_estimated_within_one_percent(truth: float, text: int, tools: int) -> None:
    counted = Counted(text, tools)
    calibration = calibrated((counted, round(counted.total * truth)) for _ in range(4))
    assert calibration.expected(counted) == pytest.approx(counted.total * truth, rel=0.01)


@given(
    slope=st.floats(0.9, 1.1),
    tools=st.integers(0, 8_000),
    fixed=st.integers(0, 40),
    texts=st.lists(st.integers(40, 30_000), min_size=3, max_size=12),
)
def test_two_reports_show_that_a_template_leaves_tools_out(
    slope: float, tools: int, fixed: int, texts: list[int]
) -> None:
    """Whatever the texts' lengths: a long one, a short one after a rewrite, a paste that makes three of one."""
    assume(abs(texts[0] - texts[1]) > 0.3 * max(texts[:2]))
    calibration: Calibration | None = None
    for number, text in enumerate(texts):
        reported = round(slope * text) + fixed
        if calibration and number >= 2 and min(texts[:number]) <= text <= 3 * max(texts[:number]):
            assert calibration.expected(Counted(text, tools)) == pytest.approx(reported, rel=0.05, abs=16)
        calibration = calibrate(calibration, Counted(text, tools), reported)


def test_a_share_that_cannot_be_negative_gives_to_the_slope() -> None:
    """Kept at 0 by itself, the share left a slope of 1.09 behind: a fifth too much for a paste of 28,630."""
    calibration = calibrated((Counted(text, 7_523), round(0.9157 * text) + 6) for text in (929, 558, 144))
    assert calibration.tools_share == pytest.approx(0, abs=0.01) and calibration.slope == pytest.approx(
        0.9157, abs=0.01
    )


def test_the_story_of_the_paste_that_was_a_third_too_low() -> None:
    """SmolLM2: 1,011 tokens counted, 970 of them tools, and 43 reported; then a paste of 1,500."""
    calibration = calibrate(None, Counted(41, 970), 43)
    assert calibration.expected(Counted(1_541, 970)) == pytest.approx(1_543, rel=0.05)
    calibration = calibrate(calibration, Counted(1_541, 970), 1_543)
    assert calibration.tools_share == pytest.approx(0, abs=0.02) and calibration.slope == pytest.approx(1, abs=0.02)


# 48 turns of ``tests.benchmarks.weights`` (prose, logs, code and JSON in turn, a dozen rewrites): the text as
# o200k_base counts it, by how much more if each digit is a token, and the prompt that llama.cpp made of it with
# SmolLM2's template and vocabulary. 896 tokens of tools beside it, which the template leaves out.
SMOLLM = [
    (69, 21, 99),
    (203, 54, 274),
    (308, 61, 396),
    (446, 69, 550),
    (527, 79, 654),
    (658, 116, 830),
    (763, 123, 952),
    (901, 133, 1108),
    (984, 150, 1217),
    (1015, 224, 1301),
    (1034, 174, 1284),
    (767, 90, 907),
    (884, 139, 1082),
    (1001, 221, 1283),
    (1027, 144, 1247),
    (1090, 148, 1312),
    (903, 148, 1106),
    (1055, 267, 1385),
    (836, 144, 1047),
    (997, 150, 1210),
    (1091, 178, 1338),
    (1069, 243, 1383),
    (875, 160, 1103),
    (1036, 168, 1268),
    (1078, 198, 1350),
    (878, 228, 1156),
    (987, 172, 1239),
    (1062, 165, 1290),
    (1094, 220, 1390),
    (877, 241, 1168),
    (972, 179, 1224),
    (1058, 177, 1298),
    (1086, 222, 1392),
    (906, 241, 1203),
    (1001, 178, 1257),
    (1053, 174, 1295),
    (775, 161, 1004),
    (898, 214, 1176),
    (1006, 155, 1255),
    (1049, 146, 1272),
    (943, 209, 1233),
    (997, 258, 1333),
    (883, 128, 1098),
    (1045, 135, 1262),
    (1100, 231, 1434),
    (854, 205, 1129),
    (948, 142, 1183),
    (1046, 147, 1281),
]


def test_single_digits_bring_estimates_within_5_percent_after_two_reports() -> None:
    """By one slope for digits and words alike, estimates swung with the kind of the text: 7.5 % at most."""

    def errors(single_digits: int) -> list[float]:
        calibration: Calibration | None = None
        result: list[float] = []
        for (text, digits, reported), (after, digits_after, reported_after) in pairwise(SMOLLM):
            calibration = calibrate(calibration, Counted(text + single_digits * digits, 896), reported)
            expected = calibration.expected(Counted(after + single_digits * digits_after, 896))
            result.append(abs(expected - reported_after) / reported_after)
        return result[1:]

    assert max(errors(0)) > 0.07
    assert max(errors(1)) < 0.025 and median(errors(1)) < 0.012


def test_other_tools_are_expected_at_the_learnt_share() -> None:
    # Printed in half the tokens.
    calibration = calibrated((Counted(text, 4_000), text + 2_000) for text in (60, 2_000, 5_000))
    assert calibration.expected(Counted(5_100, 400)) == pytest.approx(5_300, rel=0.01)


@given(
    st.lists(st.floats(-0.02, 0.02), min_size=12, max_size=12), st.floats(0.8, 1.2), st.sampled_from([0.0, 0.5, 1.0])
)
def test_reports_that_vary_by_2_percent_are_estimated_within_5(noise: list[float], slope: float, share: float) -> None:
    calibration: Calibration | None = None
    for number, error in enumerate(noise):
        counted = Counted(400 + 700 * number, 1_200)
        truth = slope * counted.text + share * counted.tools
        if calibration and number >= 3:
            assert calibration.expected(counted) == pytest.approx(truth, rel=0.05)
        calibration = calibrate(calibration, counted, round(truth * (1 + error)))


@pytest.mark.parametrize("wild", [1, 100_000])
def test_one_wild_report_moves_an_estimate_by_a_quarter_at_most(wild: int) -> None:
    calibration: Calibration | None = None
    for number in range(6):
        calibration = calibrate(calibration, Counted(1_000 + 500 * number, 1_000), 2_000 + 500 * number)
    counted = Counted(4_000, 1_000)
    shaken = calibrate(calibration, counted, wild)
    assert shaken.expected(counted) == pytest.approx(5_000, rel=0.25)
    for _ in range(2):
        shaken = calibrate(shaken, counted, 5_000)
    assert shaken.expected(counted) == pytest.approx(5_000, rel=0.05)


@example(Calibration(0.5, 0.0, 0.0, (0.0225, 0.0, 0.0, 0.49, 0.0, 900.0)), Counted(248_265, 3), 22)
@given(st.none() | calibrations, counts, reported_tokens)
def test_what_a_row_keeps_is_read_as_it_was(previous: Calibration | None, counted: Counted, reported: int) -> None:
    learnt = calibrate(previous, counted, reported)
    read = Calibration.of_numbers(json.loads(json.dumps(learnt.numbers)))
    assert read.expected(counted) == pytest.approx(learnt.expected(counted), rel=1e-5, abs=0.01)
    assert read.numbers == learnt.numbers


@given(st.floats(0.5, 2.0), counts, counts)
def test_one_factor_of_before_counts_as_it_did(factor: float, counted: Counted, another: Counted) -> None:
    calibration = Calibration.of_factor(factor)
    assert calibration.expected(counted) == pytest.approx(factor * counted.total)
    assert Calibration.of_numbers(calibration.numbers).expected(another) == pytest.approx(
        factor * another.total, rel=1e-5
    )


def test_a_request_is_the_sum_of_its_parts() -> None:
    counter = counter_for("gpt-4o")
    messages = [Message(Role.USER, "Deploy it."), Message(Role.ASSISTANT, "Done.")]
    tools = [ToolSpec("deploy", "Deploy.", {"type": "object", "properties": {}})]
    request = estimate_request("Be brief.", messages, tools, counter)
    parts = counter.count("Be brief.") + 4 + counter.count_messages(messages) + counter.count_tools(tools) + 3
    assert request.counted.total == request.input_tokens == parts
    assert request.counted.tools == counter.count_tools(tools)
    assert request.source == "tokenizer"


def test_calibration_corrects_the_prompt() -> None:
    counter = counter_for("any", "characters")
    messages = [Message(Role.USER, "x" * 400)]
    plain = estimate_request("", messages, (), counter)
    assert (plain.counted.total, plain.source) == (107, "characters")  # 100 + 4 a message + 3 a request
    doubled = estimate_request("", messages, (), counter, Calibration.of_factor(2.0))
    assert (doubled.input_tokens, doubled.source) == (214, "calibrated")
    assert doubled.counted == plain.counted


@pytest.mark.parametrize(
    ("expected", "reported", "slope", "margin"),
    [
        (20_000, 20_000, 1.0, 200),  # a hundredth of what was reported
        (24_000, 20_000, 1.0, 1_200),  # and a quarter of what is new
        (24_000, 20_000, 0.5, 6_200),  # counted at half: new text may be worth its whole count, and a quarter more
        (24_000, 20_000, 2.0, 1_200),
        (18_000, 20_000, 1.0, 580),  # made of what was reported: the 2,000 that went may be 1,600
        (18_000, 20_000, 1.25, 900),  # or 1,280, where the factor was measured on denser text
        (5_000, 20_000, 1.0, 1_300),  # what is left is the densest at most
        (4_000, None, 1.0, 1_000),
    ],
)
def test_new_text_may_be_denser_than_what_was_reported(
    expected: int, reported: int | None, slope: float, margin: int
) -> None:
    assert margin_of(expected, reported, slope) == margin
