"""The forecast from reported prompts: what it says, and when it says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.forecast import answers_until, growth_per_answer

tokens = st.integers(1, 2_000_000)
growths = st.integers(1, 50_000)


@pytest.mark.parametrize(
    ("prompts", "growth"),
    [
        ([], None),
        ([1_000], None),
        ([1_000, 2_000], None),  # two answers
        ([1_000, 2_000, 3_000], 1_000),
        ([1_000, 1_200, 5_000], 2_000),  # half of 200 + 3,800
        ([1_000, 1_200, 5_000, 5_300], 300),  # of 200, 300, 3,800
        ([0, 9_000, 9_010, 9_020, 9_030, 9_040, 9_050], 10),  # the jump is more than five answers ago
        ([1_000, 1_000, 1_000], None),  # no growth
        ([1_000, 1_000, 1_000, 4_000], None),  # mostly none
        ([9_000, 1_000, 2_000], None),  # two answers since it fell
        ([9_000, 1_000, 2_000, 3_500], 1_250),
        ([1_000, None, 2_000, 3_000, 4_000], 1_000),
        ([1_000, 2_000, 3_000, None], None),
        ([None, None, None], None),
    ],
)
def test_growth_is_the_median_of_the_last_answers(prompts: list[int | None], growth: float | None) -> None:
    assert growth_per_answer(prompts) == growth


@pytest.mark.parametrize(
    ("threshold", "prompt", "growth", "answers"),
    [
        (100_000, 94_000, 1_000, 7),  # 100,000 itself is still healthy
        (100_000, 94_001, 1_000, 6),
        (100_000, 100_000, 1_000, 1),
        (100_000, 100_001, 1_000, 0),
        (100, 0, 0.5, 201),
    ],
)
def test_answers_until_a_prompt_is_above_the_threshold(
    threshold: int, prompt: int, growth: float, answers: int
) -> None:
    assert answers_until(threshold, prompt, growth) == answers


@given(threshold=tokens, prompt=tokens, growth=growths)
def test_so_many_answers_pass_it_and_one_fewer_does_not(threshold: int, prompt: int, growth: int) -> None:
    answers = answers_until(threshold, prompt, growth)
    assert prompt + answers * growth > threshold
    assert answers == 0 or prompt + (answers - 1) * growth <= threshold


@given(st.lists(st.one_of(st.none(), tokens), max_size=12))
def test_growth_is_positive_and_among_those_there_were(prompts: list[int | None]) -> None:
    growth = growth_per_answer(prompts)
    if growth is not None:
        last = [prompt for prompt in prompts[-6:] if prompt is not None]
        assert 0 < growth <= max(last) - min(last)


@given(first=tokens, growth=growths, before=st.lists(tokens, max_size=5), number=st.integers(6, 20))
def test_even_growth_is_found_whatever_came_before(first: int, growth: int, before: list[int], number: int) -> None:
    assert growth_per_answer([*before, *(first + growth * at for at in range(number))]) == growth


@given(st.lists(tokens, max_size=12), st.integers(0, 100_000))
def test_instructions_that_every_prompt_holds_change_no_growth(prompts: list[int], fixed: int) -> None:
    assert growth_per_answer([prompt + fixed for prompt in prompts]) == growth_per_answer(prompts)
