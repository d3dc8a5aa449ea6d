"""The summaries of a model pass a gate."""

import pytest

from remediation.text.summaries import summary_problem
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
