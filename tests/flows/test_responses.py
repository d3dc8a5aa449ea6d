"""The Responses API through the driver: usage, and reasoning items that come back with the tool calls they led to."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dialogs.models import Dialog
from tests.dialogs.factories import make_dialog
from tests.dominds.llm.model_server import Connection, ModelServer, named, plain, stream_of
from tests.dominds.llm.model_server import running_server as server_of_bytes
from tests.flows.conftest import Minds, say

pytestmark = pytest.mark.django_db(transaction=True)

Item = dict[str, Any]


def reasoning(number: int) -> Item:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"sealed-{number}"}


def call(number: int, name: str, arguments: Item) -> Item:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"theirs_{number}",
        "name": name,
        "arguments": json.dumps(arguments),
    }


def message_item(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def response(*items: Item, prompt: int = 100, status: str = "completed") -> Callable[[Connection], None]:
    usage = {"input_tokens": prompt, "output_tokens": 7, "total_tokens": prompt + 7}
    whole = {"status": status, "output": list(items), "usage": usage}
    if status == "incomplete":
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    events = [{"type": "response.created", "response": {}}]
    events += [{"type": "response.output_text.delta", "delta": text} for text in texts]
    return stream_of(named([*events, {"type": f"response.{status}", "response": whole}]))


@pytest.fixture
def server(minds: Minds) -> Iterator[ModelServer]:
    with server_of_bytes() as server:
        entry = {"apiType": "openai", "baseUrl": f"{server.url}/v1", "models": {"gpt-5": {"context_length": 128_000}}}
        minds.providers["double"] = entry
        minds.write()
        yield server


def dialog() -> Dialog:
    return make_dialog(provider="double", model="gpt-5")


def inputs(server: ModelServer) -> list[list[Item]]:
    return [asked.body["input"] for asked in server.asked]


def test_reasoning_is_carried_across_tool_calls_and_later_messages(server: ModelServer) -> None:
    remind = call(1, "add_reminder", {"content": "keep"})
    server.will(
        response(reasoning(1), remind, prompt=100),
        response(reasoning(2), message_item("Noted."), prompt=150),
        response(message_item("Bye."), prompt=200),
    )
    talk = dialog()
    say(talk, "remember")
    say(talk, "and now?")
    first, second, third = inputs(server)
    assert [item.get("type") or item["role"] for item in second[: len(first) + 3]] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert second[1] == reasoning(1)
    assert second[2]["call_id"] == second[3]["call_id"] != "theirs_1"  # ids of our own
    assert third[: len(second)] == second  # reminders stand where they became due
    assert [item.get("type") or item["role"] for item in third[5:]] == ["reasoning", "assistant", "user"]
    assert (third[5], third[6]["content"]) == (reasoning(2), "Noted.")
    assert all(asked.body["store"] is False for asked in server.asked)
    assert list(talk.generations.order_by("id").values_list("prompt_tokens", "total_tokens")) == [
        (100, 107),
        (150, 157),
        (200, 207),
    ]


def test_parallel_calls_each_keep_the_reasoning_before_them(server: ModelServer) -> None:
    calls = [call(number, "add_reminder", {"content": str(number)}) for number in (1, 2)]
    server.will(response(reasoning(1), calls[0], reasoning(2), calls[1]), response(message_item("Both.")))
    talk = dialog()
    say(talk, "remember both")
    kinds = [item.get("type") or item["role"] for item in inputs(server)[1]]
    assert kinds[:7] == [
        "user",
        "reasoning",
        "function_call",
        "reasoning",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert talk.turns.get(text="remember both").status == "answered"


def test_an_incomplete_response_is_kept_with_its_usage(server: ModelServer) -> None:
    server.will(response(message_item("As far as I"), status="incomplete"))
    talk = dialog()
    say(talk, "tell me all")
    generation = talk.generations.get()
    assert (generation.outcome, generation.finish_reason, generation.total_tokens) == ("kept", "length", 107)
    assert talk.turns.filter(role="assistant").get().text == "As far as I"


def test_a_forced_clear_names_its_tool_among_all(server: ModelServer) -> None:
    server.will(
        response(message_item("full"), prompt=120_000),
        response(reasoning(1), call(1, "clear_mind", {"reminder_content": "Goal"}), prompt=120_000),
        response(message_item("fresh"), prompt=90),
    )
    talk = dialog()
    say(talk, "one")
    say(talk, "two")
    forced = server.asked[1].body
    assert forced["tools"] == server.asked[0].body["tools"]
    named = {"type": "function", "name": "clear_mind"}
    assert forced["tool_choice"] == {"type": "allowed_tools", "mode": "required", "tools": [named]}
    assert (talk.state, talk.round_number) == ("idle", 2)
    assert not any(item.get("type") == "reasoning" for item in inputs(server)[2])  # it belongs to the round before


def test_an_overflow_in_the_responses_shape_forces_a_clear(server: ModelServer) -> None:
    error = {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}}
    server.will(plain(400, json.dumps(error)))
    talk = dialog()
    say(talk, "too long")
    assert talk.state == "suspended"
    assert list(talk.generations.order_by("id").values_list("purpose", "outcome")) == [
        ("reply", "failed"),
        ("forced_clear", "failed"),
    ]
