"""``/v1/messages`` and ``/v1/responses`` with the official clients, against Daphne, a worker, PostgreSQL and Redis."""

import gzip
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User
from openai import OpenAI

from dialogs.accounts.api_keys import create_key
from dialogs.context.spending import spent_this_month
from dialogs.models import Client, Dialog, EmbeddingUse, PersonSettings, Turn
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.images import images_in
from tests.doubles.local_servers import VLLMDouble
from tests.doubles.rules import Refusal, RequestRefused
from tests.doubles.serving import Answer, Double, Exchange
from tests.harness.live import with_agents
from tests.harness.stack import Stack
from tests.pixels import coded, picture

FIXED = {"prompt_tokens": 50, "completion_tokens": 5}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [{"name": "get_weather", "arguments": {"city": "Rome"}}]
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"text": "You said: {{last_user}}", "usage": FIXED}],
    "quiet": [{"text": "Hello.", "usage": "none"}],
    "weather": [
        {"match": "weather", "reasoning": "I must look.", "text": "Let me look.", "tool_calls": CALLS, "usage": FIXED},
        {"match": "degrees", "text": "It is warm.", "usage": FIXED},
        {"text": "Nice.", "usage": FIXED},
    ],
    "patches": [
        {
            "match": "patch",
            "tool_calls": [
                {"name": "apply_patch", "arguments": {"input": "*** Begin Patch"}},
                {"name": "mcp__files__read", "arguments": {"path": "a.txt"}},
            ],
            "usage": FIXED,
        },
        {"text": "Done.", "usage": FIXED},
    ],
    "failing": [{"error": "auth"}],
    "breaks": [
        {
            "match": "Hi",
            "text": "Let me see.",
            "tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}],
            "usage": FIXED,
        },
        {"error": "auth"},
    ],
    "slow": [{"text": "one two three four five six seven eight nine ten " * 20, "chunk_delay_ms": 100, "usage": FIXED}],
}


class Embedder(Double):
    """A server of embeddings that refuses an empty input."""

    def __init__(self, *, model: str) -> None:
        super().__init__(model=model)
        self.routes = {("POST", "/v1/embeddings"): self.embed}

    def embed(self, record: Exchange) -> Answer:
        if not record.body["input"]:
            raise RequestRefused(Refusal("input", 400, "The input is empty."))
        assert record.body["model"] == self.model
        data = [{"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}]
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        return Answer({"object": "list", "model": self.model, "data": data, "usage": usage})


def seer_brain(prompt: Prompt) -> Reply:
    return Reply("", (Call("get_weather", {"city": "Rome"}),)) if "weather" in prompt.last.text else Reply("I see.")


@pytest.fixture(scope="module")
def seer() -> Iterator[Double]:
    """A model that sees, on a server that refuses damaged and misplaced images."""
    with VLLMDouble(seer_brain, model="seer") as double:
        yield double


@pytest.fixture(scope="module")
def stack(shared_stack: Stack, django_db_blocker: Any, seer: Double) -> Iterator[Stack]:
    with Embedder(model="embedder") as embedder:
        models = {name: {"name": name, "script": f"{name}.yaml", "context_length": 128_000} for name in SCRIPTS}
        members = {
            name: {"name": name, "provider": "play", "model": name, "instructions": "Be brief."} for name in SCRIPTS
        }
        members["embedder"] = {"name": "embedder", "provider": "vectors", "model": "embedder"}
        members |= {name: {"name": name, "provider": "eyes", "model": name} for name in ("seer", "blind")}
        sight: Any = {
            "seer": {"modalities": ["text", "image"], "output_length": 1_000},
            "blind": {"modalities": ["text"]},
        }
        prices = [{"in": 1_000, "out": 0}]
        vectors = {"embedder": {"name": "embedder", "context_length": 8_000, "prices": prices}}
        providers = {
            "eyes": {"name": "Eyes", "apiType": "vllm", "baseUrl": f"{seer.url}/v1", "models": sight},
            "play": {"name": "Play", "apiType": "scripted", "models": models},
            "vectors": {
                "name": "Vectors", "apiType": "openai-compatible", "baseUrl": f"{embedder.url}/v1", "models": vectors,
            },
        }  # fmt: skip
        minds = {"llm": {"providers": providers}, "team": {"members": members}}
        scripts = {name: {"steps": steps} for name, steps in SCRIPTS.items()}
        with with_agents(shared_stack, django_db_blocker, **minds, **scripts) as stack:
            yield stack


@pytest.fixture
def person(stack: Stack) -> User:
    return UserFactory.create(username=f"protocols-{time.time_ns()}")


@pytest.fixture
def key(person: User) -> str:
    return create_key(person)


def dialog_of(answer_id: str) -> Dialog:
    return Dialog.objects.get(pk=answer_id.split("_")[1])


# -- messages ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def claude(stack: Stack, key: str) -> Anthropic:
    return Anthropic(base_url=stack.base_url, api_key=key)


WEATHER: Any = {"name": "get_weather", "description": "The weather in a city.", "input_schema": SCHEMA}


def asked(claude: Anthropic, model: str, messages: list[Any], *, stream: bool = False, **options: Any) -> Any:
    options = {"model": model, "max_tokens": 1000, "messages": messages, **options}
    if not stream:
        return claude.messages.create(**options)
    with claude.messages.stream(**options) as events:
        return events.get_final_message()


def result_of(message: Any) -> list[dict[str, Any]]:
    calls = [block for block in message.content if block.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": call.id, "content": "30 degrees"} for call in calls]


@pytest.mark.parametrize("stream", [False, True])
def test_ten_turns_with_tools_and_thinking_are_one_dialog(claude: Anthropic, stream: bool) -> None:
    options: Any = {"tools": [WEATHER], "thinking": {"type": "adaptive"}, "stream": stream}
    messages: list[Any] = []
    ids = set()
    for number in range(5):
        messages.append({"role": "user", "content": f"How is the weather on day {number}?"})
        called = asked(claude, "weather", messages, **options)
        assert [block.type for block in called.content] == ["thinking", "text", "tool_use"]
        assert (called.content[0].thinking, called.content[1].text) == ("I must look.", "Let me look.")
        assert (called.content[2].name, called.content[2].input) == ("get_weather", {"city": "Rome"})
        assert (called.stop_reason, called.usage.input_tokens, called.usage.output_tokens) == ("tool_use", 50, 5)
        messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": result_of(called)}]
        answer = asked(claude, "weather", messages, **options)
        assert [(block.type, block.text) for block in answer.content] == [("text", "It is warm.")]
        assert answer.stop_reason == "end_turn"
        messages.append({"role": "assistant", "content": answer.content})
        ids |= {dialog_of(called.id).pk, dialog_of(answer.id).pk}
    assert len(ids) == 1
    assert [turn.role for turn in Turn.objects.filter(dialog__in=ids).order_by("position")] == [
        "user", "assistant", "tool", "assistant",
    ] * 5  # fmt: skip


def test_a_message_streams_its_events_in_the_protocols_order(stack: Stack, key: str) -> None:
    body = {"model": "weather", "max_tokens": 100, "stream": True, "tools": [WEATHER], "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [{"role": "user", "content": "How is the weather?"}]}  # fmt: skip
    answer = httpx2.post(f"{stack.base_url}/v1/messages?beta=true", json=body, headers={"x-api-key": key}, timeout=30)
    lines = [line for line in answer.text.splitlines() if line]
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [line[7:] for line in lines if line.startswith("event: ")] == [event["type"] for event in events]
    kinds = [event["type"].removeprefix("content_block_") for event in events]
    assert [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before] == [
        "message_start", "ping", "start", "delta", "stop", "start", "delta", "stop", "start", "delta", "stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"] == [
        "thinking", "text", "tool_use",
    ]  # fmt: skip
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_what_claude_code_sends_is_understood(stack: Stack, key: str) -> None:
    """Reminders beside a result are no message of a person's, and its changing first block no instruction."""
    ours = Anthropic(base_url=stack.base_url, auth_token=key, api_key=None)
    cached = {"cache_control": {"type": "ephemeral"}}
    options: Any = {
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.37; cc_entrypoint=cli; cch=fa690;"},
            {"type": "text", "text": "You are a coding agent.", **cached},
        ],
        "tools": [{**WEATHER, **cached}],
        "metadata": {"user_id": "user_1_account__session_2"},
        "betas": ["claude-code-20250219", "interleaved-thinking-2025-05-14"],
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "model": "weather", "max_tokens": 32_000, "extra_body": {"temperature": 1},
    }  # fmt: skip
    reminder = {"type": "text", "text": "<system-reminder>The list is empty.</system-reminder>"}
    messages: list[Any] = [
        {"role": "user", "content": [reminder, {"type": "text", "text": "How is the weather?", **cached}]}
    ]

    def streamed() -> Any:
        with ours.beta.messages.stream(messages=messages, **options) as events:
            return events.get_final_message()

    called = streamed()
    dialog = dialog_of(called.id)
    assert Client.objects.get(dialog=dialog).instructions == "You are a coding agent."
    messages += [{"role": "assistant", "content": called.content}]
    messages += [{"role": "user", "content": [*result_of(called), reminder]}]
    answer = streamed()
    assert dialog_of(answer.id).pk == dialog.pk
    assert dialog.turns.get(role="tool").text == f"30 degrees\n{reminder['text']}"
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "Thanks"}]
    assert dialog_of(streamed().id).pk == dialog.pk


def test_a_result_with_a_new_message_beside_it_goes_on_with_both(claude: Anthropic) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    called = asked(claude, "weather", messages, tools=[WEATHER])
    text = {"type": "text", "text": "Never mind, thank you."}
    messages += [
        {"role": "assistant", "content": called.content},
        {"role": "user", "content": [*result_of(called), text]},
    ]
    answer = asked(claude, "weather", messages, tools=[WEATHER])
    dialog = dialog_of(called.id)
    assert list(dialog.turns.order_by("position").values_list("role", "text")) == [
        ("user", "How is the weather?"), ("assistant", "Let me look."), ("tool", "30 degrees"),
        ("user", "Never mind, thank you."), ("assistant", "It is warm."),
    ]  # fmt: skip
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "Bye"}]
    assert dialog_of(asked(claude, "weather", messages, tools=[WEATHER]).id).pk == dialog.pk


PICTURES = [coded(picture("PNG", (40 + number, 30))) for number in range(3)]


def block(number: int) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURES[number]}}


def seen(seer: Double) -> list[str]:
    """The images of the newest request, in order."""
    return [PICTURES[PICTURES.index(image.data)] for image in images_in(seer.bodies[-1])]


def test_images_of_messages_and_of_tool_results_reach_the_model(claude: Anthropic, seer: Double) -> None:
    def counted(content: Any) -> int:
        return claude.messages.count_tokens(model="seer", messages=[{"role": "user", "content": content}]).input_tokens

    assert counted([block(0), {"type": "text", "text": "What is it?"}]) > counted("What is it?")
    messages: list[Any] = [{"role": "user", "content": [block(0), {"type": "text", "text": "The weather here?"}]}]
    called = asked(claude, "seer", messages, tools=[WEATHER])
    assert seen(seer) == PICTURES[:1]
    result = {**result_of(called)[0], "content": [block(1)]}
    messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
    answer = asked(claude, "seer", messages, tools=[WEATHER])
    assert (answer.content[-1].text, seen(seer)) == ("I see.", PICTURES[:2])
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [block(2)]}]
    last = asked(claude, "seer", messages, tools=[WEATHER], stream=True)
    assert seen(seer) == PICTURES
    assert {dialog_of(message.id).pk for message in (called, answer, last)} == {dialog_of(called.id).pk}
    with pytest.raises(anthropic.BadRequestError, match="damaged"):
        source = {"type": "base64", "media_type": "image/png", "data": PICTURES[0][:60]}
        asked(claude, "seer", [{"role": "user", "content": [{"type": "image", "source": source}]}])
    with pytest.raises(anthropic.BadRequestError, match="takes no image"):
        asked(claude, "blind", messages[:1])
    assert seer.refusals == []


def test_models_are_the_agents(claude: Anthropic) -> None:
    result = {model.id: model.display_name for model in claude.models.list()}
    assert {name: result[name] for name in SCRIPTS} == {name: name for name in SCRIPTS}
    assert claude.models.retrieve("plain").type == "model"


PATHS = (
    "models",
    "models/nobody",
    "chat/completions",
    "messages",
    "messages/count_tokens",
    "responses",
    "responses/x",
    "embeddings",
    "nothing",
)


@pytest.mark.parametrize("path", PATHS)
def test_pages_of_other_origins_may_call(stack: Stack, path: str) -> None:
    """As Open WebUI's direct connections and NextChat do: the browser asks first, and shows errors only where it may."""
    address, origin = f"{stack.base_url}/v1/{path}", {"Origin": "https://chat.example.org"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    before = httpx2.options(address, headers={**origin, **asked})
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, "*")
    assert before.headers["access-control-allow-headers"] == "authorization, content-type"
    assert {"POST", "GET"} & set(before.headers["access-control-allow-methods"].split(", "))
    call = httpx2.post(address, headers=origin, json={})
    assert call.status_code in (401, 404, 405) and call.headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in call.headers and "access-control-allow-credentials" not in call.headers
    assert ("allow" in call.headers) == (call.status_code == 405)
    assert "access-control-allow-origin" not in httpx2.post(address, json={}).headers


def test_a_compressed_body_is_refused_by_name(stack: Stack, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Encoding": "gzip"}
    answer = httpx2.post(f"{stack.base_url}/v1/messages", headers=headers, content=gzip.compress(b"{}"))
    assert (answer.status_code, answer.json()["type"]) == (415, "error")
    assert "compressed ('gzip')" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("path", "kind"), [("messages", "request_too_large"), ("responses", "invalid_request_error")])
def test_a_body_that_is_too_large_is_refused_in_the_protocols_shape(stack: Stack, path: str, kind: str) -> None:
    answer = httpx2.post(f"{stack.base_url}/v1/{path}", content=b" " * (32 * 1024 * 1024 + 1))
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (413, kind, "request_too_large")


def test_who_looks_before_asking_gets_the_head_alone(stack: Stack, key: str) -> None:
    answer = httpx2.head(f"{stack.base_url}/v1/models", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.content) == (200, b"")


def test_errors_beside_messages_speak_anthropics_words_to_its_client(claude: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        claude.models.retrieve("nobody")
    assert missing.value.body["type"] == "error"  # type: ignore[index,call-overload]
    with pytest.raises(anthropic.NotFoundError) as batches:
        claude.messages.batches.list()
    assert batches.value.body["error"]["type"] == "not_found_error"  # type: ignore[index,call-overload]


def test_tokens_are_counted_and_nothing_is_kept(claude: Anthropic, person: User) -> None:
    def counted(text: str, **options: Any) -> int:
        messages: Any = [{"role": "user", "content": text}]
        return claude.messages.count_tokens(model="plain", messages=messages, **options).input_tokens

    short = counted("Hi")
    assert counted("Hi " * 1_000) - short == pytest.approx(1_000, rel=0.2)
    assert counted("Hi", tools=[WEATHER]) > short
    assert not Dialog.objects.filter(owner=person).exists()


def test_unknown_usage_of_a_message_is_null(claude: Anthropic) -> None:
    for stream in (False, True):
        assert asked(claude, "quiet", [{"role": "user", "content": "Hi"}], stream=stream).usage.output_tokens is None


def test_errors_of_messages_have_that_protocols_shape(stack: Stack, claude: Anthropic, person: User) -> None:
    hi = [{"role": "user", "content": "Hi"}]
    with pytest.raises(anthropic.AuthenticationError) as unauthorized:
        asked(Anthropic(base_url=stack.base_url, api_key="dmk_wrong"), "plain", hi)
    assert unauthorized.value.body["error"]["type"] == "authentication_error"  # type: ignore[index,call-overload]
    with pytest.raises(anthropic.NotFoundError, match="not_found_error"):
        asked(claude, "nobody", hi)
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.role: role must be"):
        asked(claude, "plain", [{"role": "robot", "content": "Hi"}])
    with pytest.raises(anthropic.BadRequestError, match=r"tools\.0\.type: 'web_search_20250305'"):
        asked(claude, "plain", hi, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with pytest.raises(anthropic.RequestTooLargeError, match="request_too_large"):
        asked(claude, "plain", [{"role": "user", "content": "a" * 1_000_001}])
    assert not Dialog.objects.filter(owner=person).exists()
    for stream in (False, True):
        with pytest.raises(anthropic.APIStatusError, match="api_error"):
            asked(claude, "failing", [{"role": "user", "content": f"Hi {stream}"}], stream=stream)
    assert Turn.objects.filter(dialog__owner=person).count() == 2, "no client asked twice"
    with (
        pytest.raises(anthropic.APIStatusError, match="api_error"),
        claude.messages.stream(model="breaks", max_tokens=100, messages=hi) as events,  # type: ignore[arg-type]
    ):
        frame = ""
        for event in events:
            frame += event.text if event.type == "text" else ""
    assert frame == "Let me see."


# -- responses -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def gpt(stack: Stack, key: str) -> OpenAI:
    return OpenAI(base_url=f"{stack.base_url}/v1", api_key=key)


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
    ids = set()

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
        "user", "assistant", "tool", "assistant",
    ] * 5  # fmt: skip


def test_a_response_streams_numbered_events_in_the_protocols_order(gpt: OpenAI) -> None:
    events = list(gpt.responses.create(model="weather", input="How is the weather?", tools=[LOOK_UP], stream=True,
                                       reasoning={"summary": "auto"}))  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    text = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    summary = [f"reasoning_summary_{name}" for name in ("part.added", "text.delta", "text.done", "part.done")]
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before] == [
        "created", "in_progress", "output_item.added", *summary, "output_item.done", *text, "output_item.done", *call,
        "completed",
    ]  # fmt: skip


def test_an_older_response_forks_and_hides_nothing(gpt: OpenAI) -> None:
    first = responded(gpt, "plain", "One", instructions="Speak Latin.")
    second = responded(gpt, "plain", "Two", previous_response_id=first.id)
    assert dialog_of(second.id).pk == dialog_of(first.id).pk
    assert Client.objects.get(dialog=dialog_of(first.id)).instructions == "Speak Latin."
    fork = responded(gpt, "plain", "Another two", previous_response_id=first.id)
    assert dialog_of(fork.id).pk != dialog_of(first.id).pk
    assert list(dialog_of(fork.id).turns.order_by("position").values_list("text", flat=True)) == [
        "One", "You said: One", "Another two", "You said: Another two",
    ]  # fmt: skip
    assert dialog_of(first.id).turns.count() == 4


def test_stored_responses_and_their_items_are_found_again(gpt: OpenAI, stack: Stack) -> None:
    called = responded(gpt, "weather", "How is the weather?", tools=[LOOK_UP])
    again = gpt.responses.retrieve(called.id)
    assert [item.type for item in again.output] == ["message", "function_call"]
    assert (again.output_text, again.status, again.usage.total_tokens) == ("Let me look.", "completed", 55)  # type: ignore[union-attr]
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


def test_what_codex_sends_is_understood(stack: Stack, key: str) -> None:
    """Free text for patches, tools in namespaces, and OpenAI's own among them."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}
    read = {"type": "function", "name": "read", "description": "", "parameters": SCHEMA, "strict": False}
    items: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandboxed."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Send a patch."}]},
    ]
    body = {
        "model": "patches", "instructions": "You are a coding agent.", "input": items, "tool_choice": "auto",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": grammar},
                  {"type": "namespace", "name": "mcp__files", "description": "", "tools": [read]},
                  {"type": "web_search", "external_web_access": False}],
        "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "01998a", "text": {"verbosity": "low"},
    }  # fmt: skip

    def completed() -> Any:
        answer = httpx2.post(f"{stack.base_url}/v1/responses", json=body, headers={"Authorization": f"Bearer {key}"},
                             timeout=30)  # fmt: skip
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
    items += [patch, read, {"type": "custom_tool_call_output", "call_id": patch["call_id"], "output": "Applied."},
              {"type": "function_call_output", "call_id": read["call_id"], "output": [{"type": "input_text", "text": "A"}]}]  # fmt: skip
    answer = completed()
    assert answer["output"][0]["content"][0]["text"] == "Done."
    assert dialog_of(answer["id"]).pk == dialog_of(called["id"]).pk


def test_errors_of_responses_name_the_field(gpt: OpenAI, person: User) -> None:
    for options, field in (
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, "input[0].role"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            gpt.responses.create(**{"model": "plain", "input": "Hi", **options})  # type: ignore[call-overload]
        assert refused.value.param == field
    assert not Dialog.objects.filter(owner=person).exists()
    with pytest.raises(openai.InternalServerError):
        responded(gpt, "failing", "Hi")
    *_, last = gpt.responses.create(model="breaks", input="Hi", stream=True)
    assert (last.type, last.response.status, last.response.error.code) == (
        "response.failed", "failed", "generation_failed",
    )  # fmt: skip


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


# -- embeddings ----------------------------------------------------------------------------------------------------------


def test_embeddings_are_the_providers(gpt: OpenAI, person: User) -> None:
    result = gpt.embeddings.create(model="embedder", input="Hi", encoding_format="float")
    assert (result.data[0].embedding, result.usage.total_tokens) == ([0.25, 0.5], 2)
    with pytest.raises(openai.BadRequestError, match="The input is empty"):
        gpt.embeddings.create(model="embedder", input="")
    with pytest.raises(openai.NotFoundError) as unsupported:
        gpt.embeddings.create(model="plain", input="Hi")
    assert unsupported.value.code == "embeddings_unsupported"
    assert not Dialog.objects.filter(owner=person).exists()


def test_embeddings_count_in_costs_and_in_the_budget_of_a_month(gpt: OpenAI, person: User) -> None:
    PersonSettings.objects.create(user=person, monthly_budget_usd="0.004")
    for _ in range(2):  # two tokens each
        gpt.embeddings.create(model="embedder", input="Hi", encoding_format="float")
    use = EmbeddingUse.objects.get(person=person)
    assert (use.model, use.calls, use.prompt_tokens, use.cost_usd, use.unpriced) == (
        "embedder",
        2,
        4,
        Decimal("0.004"),
        0,
    )
    assert spent_this_month(person.pk) == Decimal("0.004")
    with pytest.raises(openai.ConflictError, match="this month, and the budget is"):
        gpt.with_options(max_retries=0).embeddings.create(model="embedder", input="Hi", encoding_format="float")
