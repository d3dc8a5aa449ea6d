"""Estimates follow what providers report, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolSpec
from remediation.tokens import Calibration, calibrate, counter_for, estimate_request, output_buffer

counts = st.integers(-10, 3_000_000)


@pytest.mark.parametrize(
    ("previous", "estimated", "reported", "factor"),
    [
        (None, 1_000, 1_200, 1.2),  # the first report is believed whole
        (Calibration(1.0), 1_000, 1_200, 1.16),  # 1 + 0.8 x 0.2
        (Calibration(1.2), 1_000, 1_000, 1.04),  # 1.2 - 0.8 x 0.2
        (None, 100, 120, 1.1),  # half the weight at half of 200 tokens
        (None, 1_000, 9_000, 2.0),
        (None, 1_000, 10, 0.5),
        (Calibration(1.3), 1_000, 0, 1.3),  # no report teaches nothing
        (None, 0, 500, 1.0),
    ],
)
def test_a_report_corrects_the_factor(previous, estimated, reported, factor):
    assert calibrate(previous, estimated, reported).factor == pytest.approx(factor)


@given(st.none() | st.floats(0.5, 2.0).map(Calibration), counts, counts)
def test_the_factor_stays_within_its_bounds(previous, estimated, reported):
    assert 0.5 <= calibrate(previous, estimated, reported).factor <= 2.0


@given(st.floats(0.55, 1.9), st.integers(1_000, 100_000))
def test_a_steady_provider_is_estimated_within_one_percent(truth, estimated):
    calibration = Calibration(1.0)
    for _ in range(4):
        calibration = calibrate(calibration, estimated, round(estimated * truth))
    assert calibration.factor == pytest.approx(truth, rel=0.01)


def test_a_request_is_the_sum_of_its_parts():
    counter = counter_for("gpt-4o")
    messages = [Message(Role.USER, "Deploy it."), Message(Role.ASSISTANT, "Done.")]
    tools = [ToolSpec("deploy", "Deploy.", {"type": "object", "properties": {}})]
    request = estimate_request("Be brief.", messages, tools, counter, None, 1_024)
    parts = counter.count("Be brief.") + 4 + counter.count_messages(messages) + counter.count_tools(tools) + 3
    assert request.raw_input_tokens == request.input_tokens == parts
    assert request.estimate.tokens == request.total_tokens == parts + 1_024
    assert request.estimate.source == "tokenizer"


def test_calibration_corrects_the_prompt_and_not_the_buffer():
    counter = counter_for("any", "characters")
    messages = [Message(Role.USER, "x" * 400)]
    plain = estimate_request("", messages, (), counter, None, 100)
    assert (plain.raw_input_tokens, plain.estimate.source) == (107, "characters")  # 100 + 4 a message + 3 a request
    doubled = estimate_request("", messages, (), counter, Calibration(2.0), 100)
    assert (doubled.total_tokens, doubled.estimate.source) == (314, "calibrated")
    assert doubled.raw_input_tokens == plain.raw_input_tokens


@pytest.mark.parametrize(
    ("output_length", "limit", "tokens"),
    [(2_000, 32_000, 2_000), (16_000, 32_000, 8_000), (None, 32_000, 1_024), (None, None, 1_024), (None, 2_000, 500)],
)
def test_the_output_buffer_is_at_most_a_quarter_of_the_limit(output_length, limit, tokens):
    assert output_buffer(output_length, limit) == tokens
