"""What a socket may be sent before its page has acknowledged it."""

from hypothesis import given
from hypothesis import strategies as st

from dialogs.live.flow_control import (
    DEAD_SECONDS,
    PING_BYTES,
    PING_SECONDS,
    SILENT_BYTES_PER_SECOND,
    SLOW_SECONDS,
    UNREAD_BYTES,
    UNREAD_PING_SECONDS,
    FlowControl,
)


def test_a_page_that_acknowledges_is_slow_by_bytes_or_by_time() -> None:
    flow = FlowControl(0)
    flow.count(100, 0)
    flow.acknowledge(50, 1)
    assert not flow.is_slow(1 + SLOW_SECONDS)
    assert flow.is_slow(1 + SLOW_SECONDS + 0.1)
    assert (flow.is_dead(1 + DEAD_SECONDS), flow.is_dead(1 + DEAD_SECONDS + 0.1)) == (False, True)
    flow.acknowledge(100, 70)
    assert not flow.is_slow(10_000)
    flow.count(UNREAD_BYTES + 1, 10_000)
    assert flow.is_slow(10_000)
    assert not flow.is_dead(10_001)


def test_a_program_that_never_acknowledges_is_paced_by_the_clock() -> None:
    flow = FlowControl(0)
    flow.count(UNREAD_BYTES + 10 * SILENT_BYTES_PER_SECOND, 0)
    assert flow.is_slow(9.9)
    assert not flow.is_slow(10)
    assert not flow.is_dead(10_000)


def test_pings_follow_bytes_and_come_more_often_while_something_is_unread() -> None:
    flow = FlowControl(0)
    assert (flow.ping_is_due(PING_SECONDS - 1), flow.ping_is_due(PING_SECONDS)) == (False, True)
    flow.count(PING_BYTES, 0)
    assert flow.ping_is_due(0)
    flow.note_ping(0)
    assert not flow.ping_is_due(UNREAD_PING_SECONDS)  # it may be a program that never answers
    flow.acknowledge(1, 0)
    assert flow.ping_is_due(UNREAD_PING_SECONDS)


@given(st.lists(st.tuples(st.booleans(), st.integers(-10, 10**7))))
def test_no_acknowledgement_goes_back_or_beyond_what_was_sent(steps: list[tuple[bool, int]]) -> None:
    flow, acked = FlowControl(0), 0
    flow.acknowledge(0, 0)
    for is_ack, number in steps:
        if is_ack:
            acked = max(acked, min(number, flow.sent))
            flow.acknowledge(number, 0)
        else:
            flow.count(abs(number), 0)
        assert flow.is_slow(0) == (flow.sent - acked > UNREAD_BYTES)
