"""``/v1beta``: Gemini's requests become conversations, and answers its parts."""

from typing import Any, cast

import orjson
import pytest
from django.test import Client

from dialogs.accounts import api_keys
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.gemini.answer import ContentWriter, error_body
from dialogs.extras.v1.gemini.request import plain_schema, read
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.pieces import Ended, Reasoning, Text
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory

WEATHER = {
    "name": "weather",
    "description": "Tells it.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING", "maxLength": "9"}, "type": {"type": "STRING"}},
        "required": ["city"],
        "propertyOrdering": ["city"],
    },
}


def request_of(contents: Any, **fields: Any) -> ChatRequest:
    body = {"contents": contents, **fields}
    return read(Sent(body, "", "", cast(ApiKey, None)), "demo", stream=False).request


def said(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def called(city: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "weather", "args": {"city": city}, **more}}


def responded(text: str, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "weather", "response": {"output": text}, **more}}


@pytest.mark.unit
def test_a_result_that_is_told_twice_is_one() -> None:
    """As Gemini CLI does in a session that it has resumed. Another call may have the same id."""
    again = [said("model", called("Oslo", id="a")), said("user", responded("snow", id="a"))]
    told = [said("model", called("Rome", id="a")), said("user", responded("sun", id="a"), responded("sun", id="a"))]
    messages = request_of([said("user", "Hi"), *told, *again, said("user", "And?")]).messages
    assert [message.text for message in messages if message.role == "tool"] == ["sun", "snow"]


@pytest.mark.unit
@pytest.mark.parametrize("ids", [({}, {}), ({"id": "a"}, {"id": "b"})], ids=["by order", "by id"])
def test_contents_become_messages(ids: Any) -> None:
    result = request_of(
        [
            said("user", "Hi"),
            said(
                "model", {"text": "Hm.", "thought": True}, "I look.", called("Rome", **ids[0]), called("Oslo", **ids[1])
            ),
            said("user", responded("warm", **ids[0]), responded("cold", **ids[1]), "And now?"),
        ],
        system_instruction={"parts": [{"text": "Be brief."}]},
        tools=[{"function_declarations": [WEATHER]}],
    )
    assert result.instructions == "Be brief."
    assert [(one.role, one.text) for one in result.messages] == [
        ("user", "Hi"),
        ("assistant", "I look."),
        ("tool", "warm"),
        ("tool", "cold"),
        ("user", "And now?"),
    ]
    assert [call.id for call in result.messages[1].calls] == [one.call_id for one in result.messages[2:4]]
    (tool,) = result.tools
    assert tool["parameters"] == {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}, "type": {"type": "string"}},
        "required": ["city"],
    }


@pytest.mark.unit
def test_what_a_model_has_to_honour_is_read_by_its_names() -> None:
    config = {
        "temperature": 0.5,
        "topK": 3,
        "max_output_tokens": 99,
        "stopSequences": ["x"],
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT"},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    }
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}}
    tools = [{"functionDeclarations": [WEATHER, {"name": "other"}]}]
    result = request_of([said("user", "Hi")], generationConfig=config, toolConfig=calling, tools=tools)
    assert result.params == {
        "temperature": 0.5,
        "top_k": 3,
        "max_tokens": 99,
        "stop": ["x"],
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
    }
    assert (result.include_reasoning, result.required_tool, len(result.tools)) == (True, "weather", 1)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch"),
        ({"cachedContent": "c"}, "cachedContent"),
        ({"generationConfig": {"speechConfig": {}}}, "generationConfig.speechConfig"),
        ({"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
        ({"generationConfig": {"responseModalities": ["AUDIO"]}}, "generationConfig.responseModalities"),
        ({"contents": [said("user", {"fileData": {"fileUri": "f"}})]}, "contents[0].parts[0]"),
        ({"contents": [{"role": "user", "text": "Hi"}]}, "contents[0].text"),
        ({"systemInstruction": {"text": "Be brief."}}, "systemInstruction.text"),
        ({"contents": [said("user", responded("warm"))]}, "contents[0].parts[0].functionResponse.tool_call_id"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        request_of(**{"contents": [said("user", "Hi")], **fields})
    assert (refused.value.status, refused.value.param) == (400, param)
    told = error_body(refused.value)["error"]
    assert (told["code"], told["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.unit
def test_one_object_stands_for_a_list_of_it() -> None:
    """As Google's own APIs read it, and its examples have it."""
    result = request_of(
        {"parts": {"text": "Hi"}},
        system_instruction={"parts": {"text": "Be brief."}},
        tools={"function_declarations": WEATHER},
        generationConfig={"responseLogprobs": False},
    )
    assert (result.instructions, result.messages[0].text, len(result.tools)) == ("Be brief.", "Hi", 1)


@pytest.mark.unit
def test_a_result_under_another_name_belongs_to_the_call_that_waits() -> None:
    told = {"functionResponse": {"name": "default_api:weather", "response": {"output": "warm"}}}
    messages = request_of([said("user", "Hi"), said("model", called("Rome")), said("user", told)]).messages
    assert (messages[2].text, messages[2].call_id) == ("warm", messages[1].calls[0].id)


@pytest.mark.unit
def test_a_refusal_speaks_of_the_clients_own_fields() -> None:
    with pytest.raises(ApiError) as refused:
        request_of([said("user", "Hi"), said("user", responded("warm"))])
    assert refused.value.message.startswith("contents[1].parts[0].functionResponse.tool_call_id must be")


@pytest.mark.unit
def test_a_schema_keeps_what_it_says() -> None:
    assert plain_schema({"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}]}, "min_items": "2"}) == {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}]},
        "minItems": 2,
    }


@pytest.mark.unit
def test_an_answer_is_the_same_whole_and_in_pieces() -> None:
    from uuid import UUID

    run = Run(UUID(int=1), "demo", 1, 1, queued=False, after_event=0, after_generation=0)
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    ended = Ended("tool_calls", (Call("c", "weather", '{"city":"Rome"}'),), usage, {"level": "healthy"})
    pieces = (Reasoning("Hm."), Text("I "), Text("look."), ended)
    writer = ContentWriter("demo", run)
    events = [event for piece in pieces for event in writer.piece(piece)]
    streamed = [orjson.loads(event.removeprefix(b"data: ")) for event in events]
    (candidate,) = writer.whole()["candidates"]
    assert candidate["content"]["parts"] == [
        {"text": "Hm.", "thought": True},
        {"text": "I look."},
        {"functionCall": {"id": "c", "name": "weather", "args": {"city": "Rome"}}},
    ]
    assert candidate["finishReason"] == streamed[-1]["candidates"][0]["finishReason"] == "STOP"
    assert [one["candidates"][0]["content"]["parts"][0].get("text") for one in streamed] == ["Hm.", "I ", "look.", None]
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 14, "thoughtsTokenCount": 2}
    assert writer.whole()["usageMetadata"] == streamed[-1]["usageMetadata"] == counts
    assert len({one["responseId"] for one in streamed}) == 1


@pytest.mark.django_db(transaction=True)
def test_a_conversation_with_a_tool_is_one_dialog(key: ApiKey, script: Script) -> None:
    script(
        {"match": "warm", "text": "It is warm.", "usage": "estimate"},
        {"tool_calls": [{"name": "weather", "arguments": {"city": "Rome"}}], "usage": "estimate"},
    )
    agent = str(AgentFactory.create().pk)
    contents = [said("user", "How is Rome?")]
    dialogs = []
    for _ in range(2):
        body = {"contents": contents, "tools": [{"functionDeclarations": [WEATHER]}]}
        run = conversations.begin(key, read(Sent(body, "", "", key), agent, stream=False).request)
        drive(run.dialog_id)
        dialogs.append(run.dialog_id)
        answer = Turn.objects.filter(dialog=run.dialog_id, role=Turn.Role.ASSISTANT).latest("seq")
        for call in answer.tool_calls or ():
            contents += [
                said("model", called("Rome", id=call["id"])),
                said("user", responded("warm", id=call["id"])),
            ]
    assert len(set(dialogs)) == Dialog.objects.count() == 1
    assert answer.text == "It is warm."


@pytest.mark.django_db(transaction=True)
def test_its_addresses_answer_in_its_words(key: ApiKey, agent: str) -> None:
    client = Client(headers={"x-goog-api-key": api_keys.create_key(key.owner)})
    (listed,) = client.get("/v1beta/models").json()["models"]
    assert listed["name"] == f"models/{agent}"
    assert client.get(f"/v1beta/models/{agent}").json() == listed
    body = {"contents": [said("user", "Hi")]}
    counted = client.post(f"/v1beta/models/{agent}:countTokens", body, "application/json")
    assert counted.json()["totalTokens"] > 0
    again = client.post(f"/v1/models/{agent}:countTokens", body, "application/json")
    assert again.json() == counted.json(), "its package for Python says v1"
    refused = (
        ("models/none:generateContent", "NOT_FOUND"),
        (f"models/{agent}:embedContent", "NOT_FOUND"),
        (f"models/{agent}:streamGenerateContent", "INVALID_ARGUMENT"),
    )
    for path, status in refused:
        answer = client.post(f"/v1beta/{path}", body, "application/json")
        assert answer.json()["error"]["status"] == status
    anyone = Client().post(f"/v1beta/models/{agent}:generateContent", body, "application/json")
    assert (anyone.status_code, anyone.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
