"""``/v1/responses`` with the official client, and with what Codex sends."""

import json
import time
from typing import Any
from uuid import UUID

import httpx2
import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from dialogs.accounts.api_keys import create_key
from dialogs.models import Client, Dialog, Turn
from tests.dialogs.extras.v1.protocols.conftest import LONG, PICTURES, SCHEMA, dialog_of, seen
from tests.dialogs.factories import UserFactory
from tests.doubles.serving import Double
from tests.harness.stack import Stack

LOOK_UP: Any = {"type": "function", "name": "get_weather", "description": "", "parameters": SCHEMA, "strict": False}


def responded(gpt: OpenAI, model: str, given: Any, *, stream: bool = False, **options: Any) -> Any:
    if not stream:
        return gpt.responses.create(model=model, input=given, **options)
    with gpt.responses.stream(model=model, input=given, **options) as events:
        return events.get_final_response()


def outputs_of(response: Any) -> list[dict[str, Any]]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": "30 degrees"} for call in calls]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_ten_turns_of_responses_are_one_dialog(gpt: OpenAI, stored: bool, stream: bool) -> None:
    """Stored ones by the id of the last, others by all items, with their reasoning."""
    options: Any = {"tools": [LOOK_UP], "reasoning": {"summary": "auto"}, "stream": stream, "store": stored}
    if not stored:
        options["include"] = ["reasoning.encrypted_content"]
    items: list[Any] = []
    ids: set[UUID] = set()

    def send(new: list[Any]) -> Any:
        items.extend(new)
        previous = {"previous_response_id": answer.id} if stored and ids else {}
        response = responded(gpt, "weather", new if stored else items, **options, **previous)
        items.extend(item.model_dump(exclude_none=True) for item in response.output)
        ids.add(dialog_of(response.id).pk)
        return response

    answer: Any = None
    for number in range(5):
        answer = send([{"role": "user", "content": f"How is the weather on day {number}?"}])
        assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]
        assert (answer.output[0].summary[0].text, answer.output_text) == ("I must look.", "Let me look.")
        assert (answer.output[2].name, json.loads(answer.output[2].arguments)) == ("get_weather", {"city": "Rome"})
        assert (answer.output[0].encrypted_content is None) == stored
        answer = send(outputs_of(answer))
        assert (answer.status, answer.output_text) == ("completed", "It is warm.")
        assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (50, 5, 55)
    assert len(ids) == 1
    assert [turn.role for turn in Turn.objects.filter(dialog__in=ids).order_by("position")] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ] * 5


def test_a_response_streams_numbered_events_in_the_protocols_order(gpt: OpenAI) -> None:
    events = list(
        gpt.responses.create(
            model="weather", input="How is the weather?", tools=[LOOK_UP], stream=True, reasoning={"summary": "auto"}
        )
    )
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    text = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    summary = [f"reasoning_summary_{name}" for name in ("part.added", "text.delta", "text.done", "part.done")]
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before] == [
        "created",
        "in_progress",
        "output_item.added",
        *summary,
        "output_item.done",
        *text,
        "output_item.done",
        *call,
        "completed",
    ]


def test_an_older_response_forks_and_hides_nothing(gpt: OpenAI) -> None:
    first = responded(gpt, "plain", "One", instructions="Speak Latin.")
    second = responded(gpt, "plain", "Two", previous_response_id=first.id)
    assert dialog_of(second.id).pk == dialog_of(first.id).pk
    assert Client.objects.get(dialog=dialog_of(first.id)).instructions == "Speak Latin."
    fork = responded(gpt, "plain", "Another two", previous_response_id=first.id)
    assert dialog_of(fork.id).pk != dialog_of(first.id).pk
    assert list(dialog_of(fork.id).turns.order_by("position").values_list("text", flat=True)) == [
        "One",
        "You said: One",
        "Another two",
        "You said: Another two",
    ]
    assert dialog_of(first.id).turns.count() == 4


def test_stored_responses_and_their_items_are_found_again(gpt: OpenAI, stack: Stack) -> None:
    called = responded(gpt, "weather", "How is the weather?", tools=[LOOK_UP])
    again = gpt.responses.retrieve(called.id)
    assert [item.type for item in again.output] == ["message", "function_call"]
    assert (again.output_text, again.status) == ("Let me look.", "completed")
    assert again.usage and again.usage.total_tokens == 55
    references = [{"type": "item_reference", "id": item.id} for item in called.output]
    items: list[Any] = [{"role": "user", "content": "How is the weather?"}, *references, *outputs_of(called)]
    answer = responded(gpt, "weather", items, tools=[LOOK_UP])
    assert (answer.output_text, dialog_of(answer.id).pk) == ("It is warm.", dialog_of(called.id).pk)
    assert gpt.responses.retrieve(called.id).output_text == "Let me look.", "not what came later"
    stranger = OpenAI(base_url=gpt.base_url, api_key=create_key(UserFactory.create(username=f"s{time.time_ns()}")))
    for wrong in (called.id, "resp_7", f"resp_{'0' * 32}_1_0"):
        with pytest.raises(openai.NotFoundError):
            stranger.responses.retrieve(wrong)
        with pytest.raises(openai.BadRequestError, match="Previous response"):
            responded(stranger, "plain", "Hi", previous_response_id=wrong)


def test_a_response_in_the_background_outlives_its_client(gpt: OpenAI) -> None:
    """Read until it has ended, or cancelled; a stream of one may be left."""

    def ended(response_id: str) -> Any:
        until = time.monotonic() + 30
        while (response := gpt.responses.retrieve(response_id)).status in ("queued", "in_progress"):
            assert time.monotonic() < until
            time.sleep(0.1)
        return response

    begun = gpt.responses.create(model="plain", input="One", background=True)
    assert (begun.status, begun.background, begun.output) == ("in_progress", True, [])
    answer = ended(begun.id)
    assert (answer.status, answer.output_text, answer.usage.total_tokens) == ("completed", "You said: One", 55)
    failed = ended(gpt.responses.create(model="failing", input="One", background=True).id)
    assert (failed.status, failed.error.code) == ("failed", "provider_authentication")
    stream = gpt.responses.create(model="slow", input="One", background=True, stream=True)
    response_id = next(iter(stream)).response.id  # type: ignore[union-attr]
    stream.close()
    with pytest.raises(openai.BadRequestError) as refused:
        gpt.responses.retrieve(response_id, stream=True, starting_after=1)
    assert refused.value.param == "stream"
    time.sleep(1)  # in which a run without a client would be stopped
    assert gpt.responses.retrieve(response_id).status == "in_progress"
    assert gpt.responses.cancel(response_id).status == "cancelled"
    assert ended(response_id).status == "cancelled"
    assert gpt.responses.cancel(begun.id).status == "completed"


def test_what_codex_sends_is_understood(stack: Stack, key: str) -> None:
    """Free text for patches, tools in namespaces, and OpenAI's own among them."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}
    read = {"type": "function", "name": "read", "description": "", "parameters": SCHEMA, "strict": False}
    items: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandboxed."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Send a patch."}]},
    ]
    body = {
        "model": "patches",
        "instructions": "You are a coding agent.",
        "input": items,
        "tool_choice": "auto",
        "tools": [
            {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": grammar},
            {"type": "namespace", "name": "mcp__files", "description": "", "tools": [read]},
            {"type": "web_search", "external_web_access": False},
        ],
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "01998a",
        "text": {"verbosity": "low"},
    }

    def completed() -> Any:
        answer = httpx2.post(
            f"{stack.base_url}/v1/responses", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert events[-1]["type"] == "response.completed"
        assert events[-1]["response"]["output"] == done
        return events[-1]["response"]

    called = completed()
    patch, read = called["output"]
    assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "apply_patch", "*** Begin Patch")
    assert (read["type"], read["namespace"], read["name"]) == ("function_call", "mcp__files", "read")
    client = Client.objects.get(dialog=dialog_of(called["id"]))
    assert (client.instructions, client.system_messages) == ("You are a coding agent.", [[0, "Sandboxed."]])
    items += [
        patch,
        read,
        {"type": "custom_tool_call_output", "call_id": patch["call_id"], "output": "Applied."},
        {"type": "function_call_output", "call_id": read["call_id"], "output": [{"type": "input_text", "text": "A"}]},
    ]
    answer = completed()
    assert answer["output"][0]["content"][0]["text"] == "Done."
    assert dialog_of(answer["id"]).pk == dialog_of(called["id"]).pk


def test_errors_of_responses_name_the_field(gpt: OpenAI, person: User) -> None:
    for options, field in (
        ({"background": True, "store": False}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, "input[0].role"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            gpt.responses.create(**{"model": "plain", "input": "Hi", **options})  # type: ignore[call-overload]
        assert refused.value.param == field
    assert not Dialog.objects.filter(owner=person).exists()
    with pytest.raises(openai.AuthenticationError):
        responded(gpt, "failing", "Hi")
    *_, last = gpt.responses.create(model="breaks", input="Hi", stream=True)
    assert last.type == "response.failed" and last.response.error is not None
    assert (last.response.status, last.response.error.code) == ("failed", "provider_authentication")


def test_images_of_inputs_and_outputs_reach_the_model(gpt: OpenAI, seer: Double) -> None:
    def image(number: int) -> Any:
        detail = ("auto", "low", "high")[number]
        return {"type": "input_image", "detail": detail, "image_url": f"data:image/png;base64,{PICTURES[number]}"}

    words = {"type": "input_text", "text": "The weather here?"}
    first = responded(gpt, "seer", [{"role": "user", "content": [words, image(0)]}], tools=[LOOK_UP])
    assert seen(seer) == PICTURES[:1]
    output = [{**outputs_of(first)[0], "output": [image(1)]}]
    second = responded(gpt, "seer", output, previous_response_id=first.id, tools=[LOOK_UP])
    assert (second.output_text, seen(seer)) == ("I see.", PICTURES[:2])
    for again in ([image(2)], [image(1), image(2)]):  # the second forks from a place that is not the end
        third = responded(
            gpt,
            "seer",
            [{"role": "user", "content": again}],
            previous_response_id=second.id,
            stream=True,
            tools=[LOOK_UP],
        )
        assert third.output_text == "I see."
    assert seen(seer) == [*PICTURES[:2], *PICTURES[1:]]
    parts = [
        part
        for message in seer.bodies[-1]["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    images = [part["image_url"] for part in parts if part["type"] == "image_url"]
    assert [shown.get("detail") for shown in images] == [None, "low", "low", "high"]
    with pytest.raises(openai.BadRequestError, match="nothing is fetched"):
        responded(gpt, "seer", [{"role": "user", "content": [{**image(0), "image_url": "https://example.org/a.png"}]}])
    with pytest.raises(openai.BadRequestError, match="takes no image"):
        responded(gpt, "blind", [{"role": "user", "content": [image(0)]}])
    assert seer.refusals == []


def test_a_compacted_conversation_goes_on_in_its_dialog(gpt: OpenAI) -> None:
    before = gpt.responses.input_tokens.count(model="plain", input=LONG).input_tokens
    compacted = gpt.responses.compact(model="plain", input=LONG)
    assert [item.type for item in compacted.output] == ["message"] * 8 + ["compaction"]
    assert compacted.object == "response.compaction" and compacted.usage.total_tokens % 55 == 0
    items: list[Any] = [item.model_dump(exclude_none=True) for item in compacted.output]
    assert gpt.responses.input_tokens.count(model="plain", input=items).input_tokens < before * 0.8
    answer = responded(gpt, "plain", [*items, {"role": "user", "content": "And now?"}])
    dialog = dialog_of(answer.id)
    assert answer.output_text == "You said: And now?"
    assert dialog.remediations.get().policy == "summarize"
    assert dialog.turns.filter(role="user").count() == 9, "all of it is in the dialog"


def test_a_threshold_puts_a_compaction_before_the_answer(gpt: OpenAI) -> None:
    items: list[Any] = [*LONG, {"role": "user", "content": "And now?"}]
    management: Any = [{"type": "compaction", "compact_threshold": 1_000}]
    answer = responded(gpt, "plain", items, stream=True, context_management=management)
    assert [item.type for item in answer.output] == ["compaction", "message"]
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    items.append({"role": "user", "content": "And then?"})
    last = responded(gpt, "plain", items, store=False)
    assert (last.output_text, dialog_of(last.id).pk) == ("You said: And then?", dialog_of(answer.id).pk)
    alone = responded(gpt, "plain", [*items[:-1], {"type": "compaction_trigger"}])
    assert [item.type for item in alone.output] == ["compaction"]
