"""The summaries of a model pass a gate."""

import pytest

from remediation.text.summaries import summary_problem, without_reasoning
from remediation.tokens.counting import characters_per_four
from tests.remediation.building import MORNING

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
        (MORNING, "no smaller"),
        (MORNING.rpartition(". ")[0] + ".", "longer than asked"),
        (MORNING[:-60], "cut off"),
    ],
)
def test_the_gate_names_the_cause(summary: str, cause: str) -> None:
    problem = summary_problem(summary, MORNING, characters_per_four, 60)
    assert cause in problem
    assert bool(problem) == bool(cause)


@pytest.mark.parametrize(
    ("written", "summary"),
    [
        (GOOD, GOOD),
        (f"<think>What matters here?</think>\n{GOOD}", GOOD),
        (f"What matters here?</think>{GOOD}", GOOD),
        (f"<|channel|>analysis<|message|>We need it short.<|end|><|channel|>final<|message|>{GOOD}", GOOD),
        (
            "The port is 8443.\n<thinking>And the host?</thinking>\nThe host is db-07.",
            "The port is 8443.\n\nThe host is db-07.",
        ),
        ("A is 1. [THINK]b?[/THINK]B is 2. [THINK]c?[/THINK]C is 3.", "A is 1. B is 2. C is 3."),
        ("Hm.</think>A is 1. <think>b <think>again?</think> really?</think> B is 2.", "B is 2."),
        ("The port is 8443. <think>And the host", "The port is 8443. <think>And the host"),
        ("<think>What matters", "<think>What matters"),
    ],
)
def test_thoughts_go_and_what_stands_around_them_stays(written: str, summary: str) -> None:
    assert without_reasoning(written) == summary
