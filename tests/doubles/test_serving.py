"""What all doubles share: the record of what was asked, streams that end badly, weights, and faults of their own."""

import time
from typing import Any

import httpx2
import pytest

from tests.doubles.asking import CLIENT, events_of, post
from tests.doubles.brains import Prompt, Reply, Scripted
from tests.doubles.local_servers import VLLMDouble
from tests.harness.stack import eventually

pytestmark = pytest.mark.server

PATH = "/v1/chat/completions"


def body(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": "Qwen/Qwen3-14B", "messages": [{"role": "user", "content": text}], **fields}


def test_every_request_is_recorded_with_what_became_of_it() -> None:
    with VLLMDouble(Scripted(Reply("hi"))) as double:
        post(double, PATH, body(), x_trace="one")
        post(double, PATH, body(model="another"))
        CLIENT.get(f"{double.url}/nowhere")
        first, second, third = double.requests
    assert (first.path, first.body, first.headers["x-trace"]) == (PATH, body(), "one")
    assert (first.reply, first.usage["prompt_tokens"], first.refusal) == (Reply("hi"), 8, None)
    assert first.prompt is not None and first.prompt.last.text == "hello"
    assert [refusal.rule for refusal in double.refusals] == ["model", "path"]
    assert (second.prompt, third.refusal) == (None, double.refusals[1])
    assert double.bodies == [body(), body(model="another")]


def test_what_is_no_json_is_refused() -> None:
    with VLLMDouble() as double:
        assert CLIENT.post(double.url + PATH, content=b"{").status_code == 400


def test_a_stream_arrives_in_pieces_in_time() -> None:
    slow = Scripted(Reply("x" * 12, chunk_chars=4, chunk_seconds=0.1))
    with VLLMDouble(slow) as double, CLIENT.stream("POST", double.url + PATH, json=body(stream=True)) as response:
        arrived = [time.monotonic() for line in response.iter_lines() if '"content": "xxxx"' in line]
    assert len(arrived) == 3
    assert arrived[-1] - arrived[0] > 0.15


def test_a_stream_may_break_off() -> None:
    with VLLMDouble(Scripted(Reply("half", breaks_off=True))) as double:
        with pytest.raises(httpx2.RemoteProtocolError):
            post(double, PATH, body(stream=True))
        assert not double.requests[0].is_cut_off


def test_a_stream_may_hold_an_error() -> None:
    with VLLMDouble(Scripted(Reply("half", error_event="overloaded"))) as double:
        events = events_of(post(double, PATH, body(stream=True)))
    assert events[-1]["error"]["message"] == "overloaded"


def test_a_reader_that_leaves_is_noted() -> None:
    with VLLMDouble(Scripted(Reply("x" * 400_000, chunk_seconds=0.02))) as double:
        with httpx2.Client() as client, client.stream("POST", double.url + PATH, json=body(stream=True)) as response:
            next(response.iter_lines())
        eventually(lambda: double.requests[0].is_cut_off, every=0.01)


def test_the_brain_may_refuse_in_its_own_words_and_time() -> None:
    busy = Reply(error=(503, {"error": "busy"}), headers={"retry-after": "2"}, pause_seconds=0.1)
    with VLLMDouble(Scripted(busy)) as double:
        began = time.monotonic()
        refused = post(double, PATH, body())
    assert (refused.status_code, refused.json(), refused.headers["retry-after"]) == (503, {"error": "busy"}, "2")
    assert time.monotonic() - began >= 0.1


def test_a_double_that_is_down_answers_nobody() -> None:
    with httpx2.Client() as client:
        with VLLMDouble() as double:
            client.post(double.url + PATH, json=body())  # the connection stays open
        with pytest.raises(httpx2.TransportError):
            client.post(double.url + PATH, json=body())
    assert len(double.requests) == 1


def test_a_weight_makes_prompts_longer_for_reports_and_refusals_alike() -> None:
    with VLLMDouble(window=10_000, weight=100) as double:
        assert post(double, PATH, body()).json()["usage"]["prompt_tokens"] == 800
        refused = post(double, PATH, body("x" * 400))
    assert refused.json()["error"]["message"] == "max_tokens must be at least 1, got -700."


def test_usage_may_be_said_otherwise() -> None:
    with VLLMDouble(Scripted(Reply("hi", usage=(120_000, 7)))) as double:
        reported = post(double, PATH, body()).json()["usage"]
    assert (reported["prompt_tokens"], reported["completion_tokens"]) == (120_000, 7)


def test_a_fault_of_the_double_is_not_hidden() -> None:
    def broken(prompt: Prompt) -> Reply:
        raise ZeroDivisionError

    double = VLLMDouble(broken)
    with pytest.raises(ZeroDivisionError), double, pytest.raises(httpx2.RemoteProtocolError):
        post(double, PATH, body())
