"""Summaries keep what cannot be guessed again, never grow, and those of a model pass a gate."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.text.summaries import extractive_summary, summary_problem
from remediation.tokens.counting import characters_per_four, counter_for

TEXT = (
    "We began to look at the payment service this morning. The weather was mild and everyone was in good spirits. "
    "The service reads /etc/pay/config.toml at start. It was noticed that people like the colour of the page. "
    "Never push to main. There was some talk about lunch, and about where to have it this time. "
    "The run ended with error E1234: connection refused by db-07.internal. Several people nodded at that. "
    "The retry limit is 7. In the end we agreed to meet again."
)


@pytest.mark.parametrize(
    "kept", ["We began to look", "/etc/pay/config.toml", "Never push to main.", "error E1234", "meet again"]
)
def test_what_matters_is_kept(kept: str) -> None:
    assert kept in extractive_summary(TEXT, 75, characters_per_four)


@pytest.mark.parametrize("dropped", ["weather", "lunch", "colour"])
def test_small_talk_goes_first(dropped: str) -> None:
    assert dropped not in extractive_summary(TEXT, 75, characters_per_four)


def test_sentences_keep_their_order() -> None:
    summary = extractive_summary(TEXT, 75, characters_per_four)
    places = [TEXT.index(part) for part in summary.replace(". ", ".\n").split("\n")]
    assert places == sorted(places)


def test_a_text_that_fits_is_left_alone() -> None:
    assert extractive_summary(TEXT, 1_000, characters_per_four) == TEXT


def test_secrets_do_not_pass() -> None:
    assert "hunter22" not in extractive_summary(TEXT + " Also password=hunter22 is needed.", 75, characters_per_four)


@pytest.mark.parametrize("sign", ["=", "─", "\"'", "*", "."])
def test_signs_without_a_word_are_cut_as_well(sign: str) -> None:
    text = "\n".join([sign * 400] * 3)
    assert extractive_summary(text, 20, characters_per_four) in ("", sign * 40)


def test_a_single_long_sentence_is_cut_at_a_word() -> None:
    assert extractive_summary("word " * 100, 5, characters_per_four) == "word word word word"


@given(st.text(max_size=600), st.integers(-1, 150))
def test_a_summary_exceeds_neither_its_limit_nor_its_input(text: str, limit: int) -> None:
    summary = extractive_summary(text, limit, characters_per_four)
    assert characters_per_four(summary) <= max(0, min(limit, characters_per_four(text)))
    assert summary == extractive_summary(text, limit, characters_per_four)


def test_two_thousand_tokens_take_less_than_half_a_second() -> None:
    counter = counter_for("gpt-4o")
    text = "\n".join(f"{n}. {TEXT.replace('7', str(n))}" for n in range(17))
    assert 1_800 < counter.count(text) < 2_600
    started = time.perf_counter()
    summary = extractive_summary(text, 300, counter.count)
    assert time.perf_counter() - started < 0.5
    assert 100 < counter.count(summary) <= 300


GOOD = "The payment service failed with E1234. Never push to main. The error: was a refused connection."


@pytest.mark.parametrize(
    ("summary", "cause"),
    [
        (GOOD, ""),
        ("Error handling was added to the parser in src/errors.py.", ""),
        ("500 users were moved to db-07.internal.", ""),
        ("The agent calls read_file on function calls.", ""),
        ("", "empty"),
        (" \n\t", "empty"),
        ("<think>What matters here?</think>", "reasoning"),
        ("<think>What matters here?</think> The service failed.", "reasoning"),
        ("reasoned at length</think> The service failed.", "reasoning"),
        ("<|channel|>analysis<|message|>We need", "reasoning"),
        ('{"tool_calls": [{"name": "x"}]}', "tool call"),
        ('<tool_call>{"name": "x"}</tool_call>', "tool call"),
        ('{"function_call": {"name": "x", "arguments": "{}"}}', "tool call"),
        ('{"name": "read_file", "arguments": {"path": "a"}}', "tool call"),
        ('read_file({"path": "a"})', "tool call"),
        ("[TOOL_CALLS] read", "tool call"),
        ("Error: rate limit exceeded", "error text"),
        ("429 Too Many Requests", "error text"),
        ('{"error": {"message": "overloaded"}}', "error text"),
        ("Traceback (most recent call last):\n  File", "error text"),
        ("openai.APIError: bad", "error text"),
        ("context_length_exceeded", "error text"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("I cannot summarise this conversation.", "refused"),
        ("As an AI, I have no opinion.", "refused"),
        (TEXT, "no smaller"),
        (TEXT.rpartition(". ")[0] + ".", "longer than asked"),
        (TEXT[:-60], "cut off"),
    ],
)
def test_the_gate_names_the_cause(summary: str, cause: str) -> None:
    problem = summary_problem(summary, TEXT, characters_per_four, 60)
    assert cause in problem
    assert bool(problem) == bool(cause)


@given(st.text(min_size=200, max_size=500))
def test_an_extractive_summary_of_prose_fits_the_size_gate(text: str) -> None:
    summary = extractive_summary(text, 20, characters_per_four)
    problem = summary_problem(summary, text, characters_per_four, 20)
    assert "longer than asked" not in problem
