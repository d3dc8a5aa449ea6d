"""Trying a tool again, as context breaking's retry policies say."""

from functools import partial
from uuid import uuid4

import pytest

from dialogs.context.tool_calls import Result
from dialogs.tools.retrying import run_with_retries
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from remediation.config import RetryPolicy

CALL = Invocation(uuid4(), "1", {})
POLICY = RetryPolicy(max_attempts=4, backoff_base_seconds=5, max_delay_seconds=12)


class Flaky:
    """Fails ``failures`` times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures, self.runs = failures, 0

    def __call__(self, call: Invocation) -> Result:
        self.runs += 1
        if self.runs <= self.failures:
            raise ConnectionError(f"failure {self.runs}")
        return Result("done")


class Clock:
    """Remembers the pauses, and says stop after ``patience`` of them."""

    def __init__(self, patience: int = 99) -> None:
        self.patience, self.pauses = patience, list[float]()

    def __call__(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return len(self.pauses) <= self.patience


def tried(tool: Tool, clock: Clock) -> Result:
    assert tool.outside is not None
    return run_with_retries(partial(tool.outside, CALL), tool, CALL, lambda name: POLICY, clock)


def tool(flaky: Flaky, *, repeatable: bool = True) -> Tool:
    return Tool(ToolSpec("flaky", "", parameters([])), outside=flaky, repeatable=repeatable)


@pytest.mark.parametrize(
    ("failures", "pauses"),
    [(0, []), (1, [5]), (2, [5, 10]), (3, [5, 10, 12])],  # doubled each time: 5, 10, 20, and at most 12
)
def test_a_tool_that_recovers_answers(failures: int, pauses: list[float]) -> None:
    clock = Clock()
    assert tried(tool(Flaky(failures)), clock) == Result("done")
    assert clock.pauses == pauses


@pytest.mark.parametrize(
    ("repeatable", "patience", "runs"),
    [(True, 99, 4), (False, 99, 1), (True, 1, 2)],
    ids=["all tries", "once", "stopped"],
)
def test_the_last_failure_is_raised(repeatable: bool, patience: int, runs: int) -> None:
    flaky = Flaky(9)
    with pytest.raises(ConnectionError, match=f"failure {runs}"):
        tried(tool(flaky, repeatable=repeatable), Clock(patience=patience))
    assert flaky.runs == runs


def test_a_failed_result_is_an_answer() -> None:
    answer = Result("no such file", failed=True)
    asked = Tool(ToolSpec("t", "", parameters([])), outside=lambda _: answer)
    clock = Clock()
    assert tried(asked, clock) is answer
    assert clock.pauses == []
