import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.providers import anthropic_reader, chat_reader, responses_reader
from dominds.llm.usage import Usage, UsageUnavailable, usage_from

counts = st.integers(1, 1_000_000_000)
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())


@given(prompt=counts, completion=st.integers(0, 1_000_000_000))
def test_true_counts_are_kept(prompt: int, completion: int) -> None:
    assert usage_from(prompt, completion) == Usage(prompt, completion)


@given(prompt=anything, completion=anything, total=anything)
def test_whatever_is_reported_usage_is_sound_or_unavailable(prompt: object, completion: object, total: object) -> None:
    usage = usage_from(prompt, completion, total)
    if isinstance(usage, Usage):
        assert 0 < usage.prompt_tokens == prompt
        assert 0 <= usage.completion_tokens == completion
        assert usage.total_tokens > 0


@pytest.mark.parametrize("prompt", [0, -1, None, True, "12", 12.5, math.nan, 1_000_000_001])
def test_a_count_that_cannot_be_true_is_unavailable(prompt: object) -> None:
    assert isinstance(usage_from(prompt, 5), UsageUnavailable)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, Usage(9, 3, 12)),
        # cached tokens are among the 9, not beside them
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(9, 3, None, 8),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(9, 3, None, 4, 2, None, 1),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}, Usage(9, 3, None, 8)),  # DeepSeek
        # shares that cannot be true are left out
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": "8"}}, Usage(9, 3)),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(9, 3),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(9, 3)),
    ],
)
def test_chat_usage_is_taken_as_it_is(reported: dict[str, Any], usage: Usage) -> None:
    assert chat_reader.usage_of(reported) == usage


@pytest.mark.parametrize(
    "reported",
    [
        None,
        "9",
        [],
        {},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": None, "completion_tokens": 3},
        {"prompt_tokens": 9, "completion_tokens": None},
        {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 10}},
    ],
)
def test_chat_usage_that_cannot_be_true_is_unavailable(reported: object) -> None:
    assert isinstance(chat_reader.usage_of(reported), UsageUnavailable)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"input_tokens": 9, "output_tokens": 3}, Usage(9, 3)),
        # 900 + 180,000 + 4,000 = 184,900
        (
            {
                "input_tokens": 900,
                "cache_read_input_tokens": 180_000,
                "cache_creation_input_tokens": 4_000,
                "output_tokens": 3,
            },
            Usage(184_900, 3, None, 180_000, 4_000),
        ),
        # two kinds of writes, of which the second is kept for an hour
        (
            {
                "input_tokens": 10,
                "cache_creation_input_tokens": 70,
                "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 20},
                "output_tokens": 3,
                "output_tokens_details": {"thinking_tokens": 2},
            },
            Usage(80, 3, None, None, 50, 20, 2),
        ),
        # everything was in the cache: 0 + 500
        ({"input_tokens": 0, "cache_read_input_tokens": 500, "output_tokens": 3}, Usage(500, 3, None, 500)),
    ],
)
def test_anthropic_usage_adds_what_the_cache_served(reported: dict[str, Any], usage: Usage) -> None:
    assert anthropic_reader.usage_of(reported) == usage


@pytest.mark.parametrize(
    "reported",
    [
        {},
        {"output_tokens": 3},
        {"cache_read_input_tokens": 500, "output_tokens": 3},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 9, "cache_read_input_tokens": "many", "output_tokens": 3},
        {"input_tokens": 9, "cache_read_input_tokens": -3, "output_tokens": 3},
        {"input_tokens": 9},
    ],
)
def test_anthropic_usage_that_cannot_be_true_is_unavailable(reported: dict[str, Any]) -> None:
    assert isinstance(anthropic_reader.usage_of(reported), UsageUnavailable)


def test_responses_usage_includes_cached_tokens() -> None:
    reported = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3, "total_tokens": 12}
    assert responses_reader.usage_of(reported) == Usage(9, 3, 12, 8)
    assert isinstance(responses_reader.usage_of(None), UsageUnavailable)
