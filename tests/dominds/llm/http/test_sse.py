from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.budgets import Budget
from dominds.llm.http.sse import ServerEvent, SseParser
from dominds.llm.provider import AnswerTooLarge


def events_of(*chunks: bytes) -> list[ServerEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + list(parser.close())


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [ServerEvent(b"a"), ServerEvent(b"b")]),
        (b"data:a\n\n", [ServerEvent(b"a")]),
        (b"data:  a\n\n", [ServerEvent(b" a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [ServerEvent(b"a"), ServerEvent(b"b")]),
        (b"data: a\r\rdata: b\r\r", [ServerEvent(b"a"), ServerEvent(b"b")]),
        (b"data: {\ndata: }\n\n", [ServerEvent(b"{\n}")]),
        (b": keep-alive\n\n: again\ndata: a\n\n", [ServerEvent(b"a")]),
        (
            b"data: a\n\n: one\n\n: two\n:\ndata: b\n: three\ndata: c\n\n: four",
            [ServerEvent(b"a"), ServerEvent(b"b\nc")],
        ),
        (b"event: error\ndata: a\n\n", [ServerEvent(b"a", "error")]),
        (b"event: lost\n\ndata: a\n\n", [ServerEvent(b"a")]),
        (b"id: 1\nretry: 5\ndata: a\n\n", [ServerEvent(b"a")]),
        (b"data\n\n", [ServerEvent(b"")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent(b"a")]),
        (b"data: [DONE]", [ServerEvent(b"[DONE]")]),
        (b"data: a\n", [ServerEvent(b"a")]),
        (b"", []),
        (b"\n\n\n", []),
        (b"<html>no stream</html>", []),
    ],
)
def test_the_lines_of_a_stream_become_its_events(stream: bytes, events: list[ServerEvent]) -> None:
    assert events_of(stream) == events


fragments = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"event: x",
        b": note",
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        "äö€😀".encode(),
        b"{}",
        b"\xef\xbb\xbf",
        b"[",
    ]
)


@given(
    stream=st.lists(fragments | st.binary(max_size=4), max_size=25).map(b"".join), cuts=st.lists(st.integers(0, 120))
)
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    assert events_of(*chunks) == events_of(stream)
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == events_of(stream)


def test_a_character_may_be_cut_at_each_byte() -> None:
    stream = 'data: {"text": "Grüße, 世界 😀"}\n\n'.encode()
    for cut in range(len(stream) + 1):
        assert events_of(stream[:cut], stream[cut:]) == [ServerEvent(stream[6:-2])]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 100, b"x" * 100, b"data: xxxxxxxxx\n" * 11])
def test_an_event_beyond_the_cap_is_refused(stream: bytes) -> None:
    parser = SseParser(bound=Budget("THE_SETTING", 64, "bytes in one event"))
    with pytest.raises(AnswerTooLarge, match=r"more than 64 bytes in one event\. THE_SETTING sets"):
        for at in range(0, len(stream), 10):
            list(parser.feed(stream[at : at + 10]))


def test_a_line_of_exactly_the_cap_is_taken() -> None:
    parser = SseParser(bound=Budget("THE_SETTING", 16, "bytes in one event"))
    assert list(parser.feed(b"data: 0123456789\n\n")) == [ServerEvent(b"0123456789")]
