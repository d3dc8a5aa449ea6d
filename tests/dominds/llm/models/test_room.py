"""Prompt and output that is asked for fit the window together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.models.room import LEAST_OUTPUT_TOKENS, output_room
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from tests.dominds.llm.asking import info

MODEL = info(OPENAI_COMPATIBLE, context_length=32_768, output_length=8_192)


@pytest.mark.parametrize(
    ("est_prompt", "room"),
    [
        (None, 8_192),
        (0, 8_192),
        (20_000, 8_192),
        (26_000, 5_468),  # 32,768 - 26,000 - 5 % of 26,000
        (31_200, 16),  # 32,768 - 31,200 - 1,560 = 8
        (50_000, 16),
    ],
)
def test_less_is_asked_for_as_the_prompt_grows(est_prompt: int | None, room: int) -> None:
    assert output_room(MODEL, est_prompt) == room


def test_the_present_window_and_wanted_output_beat_the_catalog() -> None:
    assert output_room(MODEL, 1_000, window=4_096) == 3_032  # the margin is 64 at least
    assert output_room(MODEL, 1_000, wanted=4_000) == 4_000
    assert output_room(MODEL, 1_000, wanted=3) == LEAST_OUTPUT_TOKENS


def test_what_nobody_knows_is_not_asked_for() -> None:
    unknown = replace(MODEL, context_length=None, output_length=None)
    assert output_room(unknown, 1_000) is None
    assert output_room(replace(unknown, output_length=500), 10**6) == 500
    assert output_room(replace(unknown, context_length=2_000), 1_000) == 936


@given(st.integers(0, 100_000), st.integers(1, 100_000), st.integers(1, 100_000))
def test_it_fits_wherever_there_is_room_at_all(est_prompt: int, window: int, output: int) -> None:
    room = output_room(replace(MODEL, context_length=window, output_length=output), est_prompt)
    assert room is not None and room >= LEAST_OUTPUT_TOKENS
    assert room == LEAST_OUTPUT_TOKENS or (room <= output and est_prompt + room <= window)


@pytest.mark.parametrize(
    ("est_prompt", "margin", "room"),
    [
        (20_000, 200, 8_192),
        (26_000, 200, 6_568),  # 32,768 - 26,000 - 200
        (26_000, 1_500, 5_268),
        (26_000, 6_000, 2_048),  # a short answer is asked for before text of another kind is feared
        (30_000, 6_000, 2_048),
        (31_200, 6_000, 1_256),  # and what surely fits where that is less
        (32_700, 6_000, 16),
    ],
)
def test_a_calibrated_estimate_keeps_its_own_margin_free(est_prompt: int, margin: int, room: int) -> None:
    assert output_room(MODEL, est_prompt, margin=margin) == room
