"""When an agent runs in circles (C10)."""

import pytest

from remediation.loops import loop_detected

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
    found = loop_detected(calls, over_hits)
    assert reason in found
    assert bool(found) == bool(reason)


def test_arguments_are_compared_by_value() -> None:
    calls = [("f", '{"a": 1, "b": 2}'), ("f", '{"b":2,"a":1}'), ("f", ' {"a":1,"b":2} '), ("f", '{"a": 1,  "b": 2}')]
    assert loop_detected(calls, 0)


def test_malformed_arguments_stand_for_themselves() -> None:
    assert loop_detected([("f", '{"a":')] * 4, 0)
    assert not loop_detected([("f", "[" * 100_000), ("f", "{"), ("f", "}"), ("f", "")], 0)
