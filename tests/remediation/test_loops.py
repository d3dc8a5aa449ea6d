"""When an agent runs in circles."""

import pytest

from remediation.loops import LoopAction, judge_loop, loop_detected, nudge

A, B, C = ("read", '{"path": "a"}'), ("read", '{"path": "b"}'), ("shell", '{"cmd": "ls"}')


@pytest.mark.parametrize(
    ("calls", "over_hits", "reason"),
    [
        ([], 0, ""),
        ([A, A, A], 0, ""),  # polling thrice is normal
        ([A, A, A, A], 0, "repeated 4 times: read"),
        ([A, A, A], 1, "repeated 3 times: read"),  # an over-hit makes it likelier
        ([A, B, A, B, A, B, A, B], 0, "repeated 4 times: read, read"),
        ([A, B, C] * 4, 0, "repeated 4 times: read, read, shell"),
        ([A, A, A, A, B], 0, ""),  # it went on
        ([B, C, A, A, A, A], 0, "repeated 4 times"),
        ([A, B, A, A], 0, ""),
        ([A, B], 2, ""),
        ([], 3, "over its limit 3 times"),  # more than 2 in an hour
    ],
)
def test_circles(calls: list[tuple[str, str]], over_hits: int, reason: str) -> None:
    result = loop_detected(calls, over_hits)
    assert reason in result
    assert bool(result) == bool(reason)


def test_arguments_are_compared_by_value() -> None:
    calls = [("f", '{"a": 1, "b": 2}'), ("f", '{"b":2,"a":1}'), ("f", ' {"a":1,"b":2} '), ("f", '{"a": 1,  "b": 2}')]
    assert loop_detected(calls, 0)


def test_malformed_arguments_stand_for_themselves() -> None:
    assert loop_detected([("f", '{"a":')] * 4, 0)
    assert not loop_detected([("f", "[" * 100_000), ("f", "{"), ("f", "}"), ("f", "")], 0)


READ = ("read_file", '{"path": "a.py"}', "No such file")


def polled(*results: str) -> list[tuple[str, ...]]:
    return [("status", "{}", result) for result in results]


def test_a_changing_result_is_polling() -> None:
    assert judge_loop(polled("10 %", "20 %", "30 %", "40 %", "50 %"), 0, nudged=True).action is LoopAction.NONE
    assert not loop_detected(polled("10 %", "20 %", "30 %", "40 %", "50 %"), 0)
    assert loop_detected(polled(*["10 %"] * 4), 0)


def test_the_agent_is_told_before_anything_is_recovered() -> None:
    message = judge_loop([READ] * 3, 0, nudged=False)
    assert message.action is LoopAction.NUDGE
    assert judge_loop([READ] * 5, 0, nudged=False).action is LoopAction.NUDGE
    assert judge_loop([READ] * 3, 0, nudged=True).action is LoopAction.NUDGE
    assert judge_loop([READ] * 4, 0, nudged=True).action is LoopAction.RECOVER
    assert judge_loop([READ] * 2, 0, nudged=True).action is LoopAction.NONE


def test_the_nudge_says_what_was_repeated_and_what_came_back() -> None:
    text = nudge(judge_loop([("ls", "{}", "x"), READ, READ, READ], 0, nudged=False))
    assert 'read_file({"path": "a.py"})' in text
    assert "No such file" in text
    assert "3 times" in text


@pytest.mark.parametrize(
    ("calls", "is_endless"),
    [([READ] * 14, False), ([READ] * 15, True), ([A, B] * 7, False), ([A, B] * 8, True), ([A, B, C] * 5, True)],
)
def test_a_message_of_fifteen_calls_in_a_circle_is_endless(calls: list[tuple[str, ...]], is_endless: bool) -> None:
    loop = judge_loop(calls, 0, nudged=True)
    assert loop.is_endless == is_endless
    assert f"{loop.times} times" in loop.failure and "read" in loop.failure


def test_overflowing_again_and_again_is_recovered_at_once() -> None:
    assert judge_loop([], 3, nudged=False).action is LoopAction.RECOVER
