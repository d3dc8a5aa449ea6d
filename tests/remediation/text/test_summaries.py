"""The summaries of a model pass a gate."""

import pytest

from remediation.text.summaries import summary_problem
from remediation.tokens.counting import characters_per_four

TEXT = (
    "We began to look at the payment service this morning. The weather was mild and everyone was in good spirits. "
    "The service reads /etc/pay/config.toml at start. It was noticed that people like the colour of the page. "
    "Never push to main. There was some talk about lunch, and about where to have it this time. "
    "The run ended with error E1234: connection refused by db-07.internal. Several people nodded at that. "
    "The retry limit is 7. In the end we agreed to meet again."
)
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
