"""Agents that are proxies, over HTTP: what arrives at strict model servers is what a program asked for,
and its context stays healthy."""

import itertools
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import anthropic
import httpx2
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI
from pydantic import BaseModel

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog, Generation
from dialogs.queries.sent_requests import sent_request
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.local_servers import LMStudioDouble, OllamaDouble, VLLMDouble
from tests.doubles.messages import MessagesDouble
from tests.doubles.responses import ResponsesDouble
from tests.doubles.serving import Double
from tests.harness.live import with_agents
from tests.harness.stack import Stack, eventually
from tests.pixels import coded, picture

WINDOW = 6_000
NOWHERE = "http://127.0.0.1:9/v1"
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "strict": True, "parameters": {"type": "object", "properties": {}}},
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
SAMPLING = {
    "temperature": 0.3,
    "top_p": 0.9,
    "seed": 2**40,
    "stop": ["END"],
    "frequency_penalty": 0.5,
    "user": "ada",
    "parallel_tool_calls": False,
    "logit_bias": {"5": 1},
    "reasoning_effort": "low",
}


class City(BaseModel):
    name: str


CITED = {"type": "url_citation", "url_citation": {"url": "https://a.example", "start_index": 0, "end_index": 4}}
USED = (40, 7)  # tokens of each of these answers
ENDS = {
    "Say it.": Reply("Done.", usage=USED),
    "Say it at length.": Reply("word " * 99, usage=USED),
    "Say it slowly.": Reply("One word, " * 9, chunk_chars=10, chunk_seconds=0.2, usage=USED),
    "Call another.": Reply(calls=(Call("get_moon", {}),), usage=USED),
    "Say what you may not.": Reply("I may not.", is_refusal=True, usage=USED),
    "Say it by the book.": Reply("Done.", annotations=(CITED,), usage=USED),
    "Look it up.": Reply(calls=(Call("get_time", {}),), usage=USED),
    "Say and look.": Reply("I look.", (Call("get_time", {}), Call("get_time", {"of": "day"})), usage=USED),
    "content_filter": Reply("No", finish="content_filter", usage=USED),
    "refusal": Reply("No", finish="refusal", usage=USED),
    "stop_sequence": Reply("No", finish="stop_sequence", usage=USED),
}


REFUSED = {
    400: "This is wrong.",
    402: "Insufficient Balance",
    404: "The model is gone.",
    422: "This cannot be read.",
    429: "You exceeded your current quota",
}


def brain(prompt: Prompt) -> Reply:
    if prompt.last.text.startswith("Refuse with "):
        status = int(prompt.last.text[-3:])
        return Reply(error=(status, {"error": {"message": REFUSED[status], "type": "invalid_request_error"}}))
    if prompt.last.text in ENDS:
        return ENDS[prompt.last.text]
    if prompt.required_tools:
        return Reply(calls=(Call("get_time"),))
    if any(prompt.body.get(name) for name in ("response_format", "text", "output_config")):
        return Reply('{"name": "Rome"}')
    if "refuse" in prompt.last.text:
        return Reply(
            error=(400, {"error": {"message": "stop: at most 4 are allowed", "type": "invalid_request_error"}})
        )
    finish = "stop_sequence" if "stop here" in prompt.last.text else ""
    return Reply(f"You said: {prompt.last.text[:40]}", reasoning="Let me see.", finish=finish)


@pytest.fixture(scope="module")
def doubles() -> Iterator[dict[str, Double]]:
    with (
        VLLMDouble(brain, model="local", window=WINDOW) as local,
        ResponsesDouble("openai-5.6", brain) as gpt,
        MessagesDouble("anthropic-5.5", brain) as claude,
        VLLMDouble(brain, model="takes") as takes,
        LMStudioDouble(brain, model="words", window=WINDOW) as words,
        OllamaDouble(brain, model="deaf", window=WINDOW) as deaf,
    ):
        servers: dict[str, Double] = {"takes": takes, "words": words, "deaf": deaf}
        yield {"local": local, "openai": gpt, "anthropic": claude, **servers}


@pytest.fixture(scope="module")
def stack(shared_stack: Stack, doubles: dict[str, Double], django_db_blocker: Any) -> Iterator[Stack]:
    local, gpt, claude = doubles["local"], doubles["openai"], doubles["anthropic"]
    kinds: dict[str, tuple[str, str, dict[str, Any]]] = {
        "local": ("vllm", f"{local.url}/v1", {"local": {}}),
        "openai": ("openai", f"{gpt.url}/v1", {gpt.model: {"context_length": 100_000}}),
        "anthropic": ("anthropic", claude.url, {claude.model: {"context_length": 100_000, "output_length": 4_000}}),
        "away": ("openai-compatible", NOWHERE, {"away": {"context_length": 8_000}}),
    }
    kinds["ollama"] = ("ollama", f"{doubles['deaf'].url}/v1", {"deaf": {}})
    for name in ("takes", "words", "deaf"):
        kinds[name] = ("openai-compatible", f"{doubles[name].url}/v1", {name: {"context_length": WINDOW}})
    providers = {
        name: {"name": name, "apiType": kind, "baseUrl": url, "apiKeyEnvVar": "SOME_KEY", "models": models}
        for name, (kind, url, models) in kinds.items()
    }
    members = {
        name: {"provider": name, "model": next(iter(models)), "proxy": True} for name, (_, _, models) in kinds.items()
    }
    members["worker"] = {"provider": "local", "model": "local", "instructions": "Be brief."}
    minds = {"llm": {"providers": providers}, "team": {"members": members}}
    with with_agents(shared_stack, django_db_blocker, **minds) as stack:
        yield stack


@pytest.fixture
def client(stack: Stack) -> OpenAI:
    return OpenAI(base_url=f"{stack.base_url}/v1", api_key=create_key(UserFactory.create()), max_retries=0)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.fixture
def claude(stack: Stack) -> Anthropic:
    return Anthropic(base_url=stack.base_url, api_key=create_key(UserFactory.create()), max_retries=0)


def ask(client: OpenAI, model: str, *messages: Any, **options: Any) -> Any:
    return client.chat.completions.create(model=model, messages=list(messages), **options)


def dialog_of(answer: Any) -> Dialog:
    return Dialog.objects.get(pk=answer.metadata["dialog_id"])


# -- what arrives ------------------------------------------------------------------------------------------------------


def test_a_proxy_sends_on_what_it_was_sent_and_nothing_else(client: OpenAI, doubles: dict[str, Double]) -> None:
    messages = [{"role": "system", "content": "Speak Latin."}, user("Hi"), user("Are you there?")]
    answer = ask(client, "local", *messages, max_tokens=50, metadata={"chat": "7"}, **SAMPLING)
    body = dict(doubles["local"].bodies[-1])
    assert body.pop("messages") == messages
    assert {name: body.pop(name) for name in ("stream", "model", "max_tokens")} == {
        "stream": True,
        "model": "local",
        "max_tokens": 50,
    }
    assert body.pop("stream_options") == {"include_usage": True}
    assert body == SAMPLING
    assert answer.choices[0].message.content == "You said: Are you there?"
    reported = Generation.objects.get(dialog=dialog_of(answer))
    assert answer.usage.prompt_tokens == reported.prompt_tokens
    assert answer.usage.total_tokens == reported.total_tokens
    assert answer.metadata["chat"] == "7"
    assert doubles["local"].refusals == []


def test_several_system_messages_in_the_beginning_stay_apart(client: OpenAI, doubles: dict[str, Double]) -> None:
    """Turn by turn, also by the dialog's id, and where the second one changes."""
    system = [{"role": "system", "content": text} for text in ("Speak Latin.", "Be brief.")]
    answer = ask(client, "local", *system, user("Hi"))
    assert doubles["local"].bodies[-1]["messages"] == [*system, user("Hi")]
    texts = [user("Hi"), {"role": "assistant", "content": answer.choices[0].message.content}]
    system[1] = {"role": "system", "content": "Be exact."}
    again = ask(client, "local", *system, *texts, user("Why?"))
    assert dialog_of(again) == dialog_of(answer)
    assert doubles["local"].bodies[-1]["messages"] == [*system, *texts, user("Why?")]
    texts += [user("Why?"), {"role": "assistant", "content": again.choices[0].message.content}]
    for _ in range(2):
        named = ask(client, "local", *system, user("So?"), metadata={"dialog_id": str(dialog_of(answer).pk)})
        assert doubles["local"].bodies[-1]["messages"] == [*system, *texts, user("So?")]
        texts += [user("So?"), {"role": "assistant", "content": named.choices[0].message.content}]
    newest = dialog_of(answer).generations.latest("pk")
    assert sent_request(newest).differs == "", "and it can be made again"
    assert doubles["local"].refusals == []


def test_only_the_clients_tools_are_offered_and_any_may_be_required(client: OpenAI, doubles: dict[str, Double]) -> None:
    answer = ask(client, "local", user("When?"), tools=[WEATHER, TIME], tool_choice="required")
    body = doubles["local"].bodies[-1]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["get_weather", "get_time"]
    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
    assert body["tool_choice"] == "required"
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.tool_calls[0].function.name == "get_time"
    assert (
        ask(client, "openai", user("When?"), tools=[WEATHER, TIME], tool_choice="required")
        .choices[0]
        .message.tool_calls
    )
    assert doubles["openai"].bodies[-1]["tool_choice"] == "required"
    ask(client, "anthropic", user("When?"), tools=[WEATHER, TIME], tool_choice="required")
    body = doubles["anthropic"].bodies[-1]  # this model cannot be made to: it is asked to
    assert "expects a call of a tool" in json.dumps(body["messages"][-1])
    assert all(double.refusals == [] for double in doubles.values())


NAMED: Any = {"type": "function", "function": {"name": "get_time"}}


@pytest.mark.parametrize(
    ("server", "choices"),
    [("takes", [NAMED, NAMED]), ("words", [NAMED, "required", "required"]), ("deaf", [NAMED, None])],
)
def test_a_server_of_which_nothing_is_known_is_made_to_call(
    client: OpenAI, doubles: dict[str, Double], server: str, choices: list[Any]
) -> None:
    """One that takes the tool's name, one that refuses it, and one that passes it over and is asked in words then."""
    asked: Any = {"tools": [WEATHER, TIME], "tool_choice": NAMED}
    answers = [ask(client, server, user(f"When, for the {time} time?"), **asked) for time in ("first", "second")]
    bodies = doubles[server].bodies[-len(choices) :]
    assert [body.get("tool_choice") for body in bodies] == choices
    called = [bool(answer.choices[0].message.tool_calls) for answer in answers]
    assert called == ([False, False] if server == "deaf" else [True, True])
    in_words = ["expects a call of the tool get_time" in json.dumps(body["messages"]) for body in bodies]
    assert in_words == [choice in ("required", None) for choice in choices]


@pytest.mark.parametrize(
    ("server", "choice"),
    [
        ("takes", "none"),
        ("openai", "none"),
        ("anthropic", {"type": "none"}),
        ("words", "none"),
        ("worker", None),
        ("ollama", None),
    ],
)
def test_a_call_that_is_not_wanted_leaves_the_tools_in_sight(
    client: OpenAI, doubles: dict[str, Double], server: str, choice: Any
) -> None:
    """An agent with tools of its own goes on with these alone, and a server that does not read it gets no tools."""
    texts = [user("Look it up.")]
    first = ask(client, server, *texts, tools=[TIME])
    (call,) = first.choices[0].message.tool_calls
    texts += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "Noon"}]
    last = ask(client, server, *texts, tools=[TIME], tool_choice="none")
    assert last.choices[0].message.content == "You said: Noon"
    before, body = doubles[{"worker": "local", "ollama": "deaf"}.get(server, server)].bodies[-2:]
    assert body.get("tool_choice") == choice
    assert (body.get("tools") == before["tools"]) == (choice is not None)
    assert ("get_time" in json.dumps(body.get("tools"))) == (choice is not None)
    assert dialog_of(last).pk == dialog_of(first).pk
    for generation in dialog_of(last).generations.all():
        assert sent_request(generation).differs == "", "and each can be made again"


@pytest.mark.parametrize("name", ["local", "openai", "anthropic"])
def test_a_program_answers_calls_of_tools_that_it_did_not_offer(
    client: OpenAI, doubles: dict[str, Double], name: str
) -> None:
    texts: list[Any] = [user("Call another.")]
    first = ask(client, name, *texts, tools=[TIME])
    (call,) = first.choices[0].message.tool_calls
    assert (call.function.name, first.choices[0].finish_reason) == ("get_moon", "tool_calls")
    texts += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "Unknown tool."}]
    last = ask(client, name, *texts, tools=[TIME])
    assert last.choices[0].message.content == "You said: Unknown tool."
    assert dialog_of(last).pk == dialog_of(first).pk


@pytest.mark.parametrize("name", ["local", "openai", "anthropic"])
def test_a_schema_is_honoured_by_every_kind_of_provider(client: OpenAI, doubles: dict[str, Double], name: str) -> None:
    asked: Any = [user("Where?")]
    parsed = client.chat.completions.parse(model=name, messages=asked, response_format=City)
    body = doubles[name].bodies[-1]
    sent = body.get("response_format") or body.get("text") or body.get("output_config")
    assert "name" in json.dumps(sent)
    assert parsed.choices[0].message.parsed == City(name="Rome")
    assert doubles[name].refusals == []


def test_any_agent_honours_what_a_program_asks_for(client: OpenAI, doubles: dict[str, Double]) -> None:
    ask(client, "worker", user("Hi"), temperature=0.1, stop="END", max_completion_tokens=77)
    body = doubles["local"].bodies[-1]
    assert (body["temperature"], body["stop"], body["max_tokens"]) == (0.1, "END", 77)
    assert "clear_mind" in [tool["function"]["name"] for tool in body["tools"]]


def test_an_answer_without_a_bound_is_asked_for_like_one_of_which_nothing_is_said(
    client: OpenAI, doubles: dict[str, Double]
) -> None:
    ask(client, "worker", user("As long as it takes"), max_tokens=-1)
    ask(client, "worker", user("As long as you like"))
    unbounded, plain = doubles["local"].bodies[-2:]
    assert unbounded.get("max_tokens") == plain.get("max_tokens") != -1


@pytest.mark.parametrize("stream", [False, True])
def test_messages_end_as_the_models_own_server_ends_them(
    claude: Anthropic, doubles: dict[str, Double], stream: bool
) -> None:
    texts: list[Any] = [{"role": "user", "content": f"Mind this, {stream}: " + "a long text. " * 400}]
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    options: Any = {"tools": [tool], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}

    def send() -> Any:
        if not stream:
            return claude.messages.create(model="anthropic", max_tokens=100, messages=texts, **options)
        with claude.messages.stream(model="anthropic", max_tokens=100, messages=texts, **options) as events:
            ends: list[Any] = [event for event in events if event.type == "message_delta"]
            assert ends[0].dominds["level"] == "healthy"
            return events.get_final_message()

    first = send()
    assert doubles["anthropic"].bodies[-1]["tool_choice"] == options["tool_choice"]
    assert (first.stop_reason, first.stop_sequence) == ("end_turn", None)
    texts += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "And stop here"}]
    options["stop_sequences"] = ["END"]
    second = send()
    assert (second.stop_reason, second.stop_sequence) == ("stop_sequence", "END")
    reported = Generation.objects.latest("pk")
    usage = second.usage
    assert reported.cache_read_tokens is not None
    assert usage.cache_read_input_tokens == reported.cache_read_tokens > 0
    assert (
        usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens == reported.prompt_tokens
    )
    assert stream or second.dominds["prompt_tokens"] == reported.prompt_tokens
    assert doubles["anthropic"].refusals == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_says_how_full_its_context_is(client: OpenAI, stream: bool) -> None:
    answer: Any = client.responses.create(model="openai", input="Hi", stream=stream)
    if stream:
        answer = list(answer)[-1].response
    assert answer.dominds["level"] == "healthy"
    assert answer.dominds["prompt_tokens"] == answer.usage.input_tokens


def test_what_one_server_alone_understands_reaches_it_as_it_came(client: OpenAI, doubles: dict[str, Double]) -> None:
    asked = {"guided_json": {"type": "object"}, "min_tokens": 3, "dry_multiplier": 0.8, "provider": {"order": ["a"]}}
    ask(client, "local", user("Hi"), extra_body=asked)
    assert {name: doubles["local"].bodies[-1].get(name) for name in asked} == asked


@pytest.mark.parametrize("name", ["local", "openai"])
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_message_without_words_reaches_the_model(
    client: OpenAI, doubles: dict[str, Double], name: str, text: str
) -> None:
    """As the first message, and behind an answer."""
    texts: list[Any] = [user(text)]
    first = ask(client, name, *texts)
    texts += [{"role": "assistant", "content": first.choices[0].message.content}, user(text)]
    second = ask(client, name, *texts)
    assert dialog_of(second) == dialog_of(first)
    arrived = doubles[name].bodies[-1]["messages" if name == "local" else "input"]
    assert [one["content"] for one in arrived if one.get("role") == "user"] == [text, text]
    texts += [{"role": "assistant", "content": second.choices[0].message.content}, user("Go on")]
    assert dialog_of(ask(client, name, *texts)) == dialog_of(first)


@pytest.mark.parametrize("before", [[], [user("Hi"), {"role": "assistant", "content": "Hello"}]])
def test_a_message_without_words_is_refused_where_the_models_api_takes_none(client: OpenAI, before: list[Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="The message is empty"):
        ask(client, "anthropic", *before, user(" "))


def test_a_stop_of_white_space_reaches_the_model(client: OpenAI, doubles: dict[str, Double]) -> None:
    ask(client, "local", user("Hi"), stop=["\n\n", "END"])
    assert doubles["local"].bodies[-1]["stop"] == ["\n\n", "END"]


def test_an_answer_that_its_client_left_is_no_beginning_of_the_next(client: OpenAI, doubles: dict[str, Double]) -> None:
    asked, claude = user("Say it slowly."), doubles["anthropic"]
    with ask(client, "anthropic", asked, stream=True) as left:
        begun = next(chunk for chunk in left if chunk.choices[0].delta.content)
    stopped = dialog_of(begun).turns.filter(status="stopped", role="assistant")
    eventually(stopped.exists)
    again = ask(client, "anthropic", asked)
    said = again.choices[0].message.content
    assert said == ENDS["Say it slowly."].text
    more = ask(client, "anthropic", asked, {"role": "assistant", "content": said}, user("Say it."))
    assert dialog_of(more) == dialog_of(again) == dialog_of(begun)
    assert [len(message["content"]) for message in claude.bodies[-1]["messages"]] == [1, 1, 1]
    for generation in dialog_of(more).generations.filter(outcome="kept"):
        assert sent_request(generation).differs == "", "and each can be made again"
    assert claude.refusals == []


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "param"),
    [
        ("local", {"n": 2}, "n"),
        ("local", {"extra_body": {"best_of": 3}}, "best_of"),
        ("local", {"temperature": 9}, "temperature"),
        ("local", {"modalities": ["text", "audio"]}, "modalities"),
        ("local", {"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ("openai", {"stop": "END"}, "stop"),
        ("openai", {"seed": 7}, "seed"),
        ("openai", {"extra_body": {"guided_json": {}}}, "guided_json"),
        ("anthropic", {"seed": 7}, "seed"),
        ("anthropic", {"temperature": 0.2}, "temperature"),
        ("anthropic", {"logprobs": True}, "logprobs"),
        ("local", {"logprobs": True, "top_logprobs": 50}, "top_logprobs"),
        ("worker", {"extra_body": {"best_of": 3}}, "best_of"),
        ("local", {"extra_headers": {"X-Dominds-Policy": "magic"}}, "X-Dominds-Policy"),
        ("local", {"extra_headers": {"X-Dominds-Policy": "autocompaction"}}, "X-Dominds-Policy"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name_and_leaves_nothing(
    client: OpenAI, model: str, options: dict[str, Any], param: str
) -> None:
    before = Dialog.objects.count()
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, user("Hi"), **options)
    assert refused.value.param == param
    assert param in refused.value.message
    assert Dialog.objects.count() == before


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"max_output_tokens": 5}, "max_output_tokens"),
        ({"reasoning": {"effort": "immense"}}, "reasoning.effort"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"input": []}, "input"),
    ],
)
def test_a_field_of_a_response_is_refused_by_its_own_name(client: OpenAI, asked: Any, name: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**{"model": "openai", "input": "Hi", **asked})
    assert refused.value.param == name
    assert name in refused.value.message


@pytest.mark.parametrize(
    ("model", "asked", "words"),
    [
        ("openai", {"stop_sequences": ["END"]}, "stop_sequences: "),
        ("anthropic", {"output_config": {"effort": "immense"}}, "output_config.effort: "),
    ],
)
def test_a_field_of_a_message_is_refused_by_its_own_name(claude: Anthropic, model: str, asked: Any, words: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        claude.messages.create(model=model, max_tokens=100, messages=[{"role": "user", "content": "Hi"}], **asked)
    message = refused.value.body["error"]["message"]  # type: ignore[index]
    assert message.startswith(words)
    assert message.count(words) == 1


def test_shapes_that_no_dialog_has_are_refused_with_what_to_do(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="the last message must be"):
        ask(client, "local", user("Hi"), {"role": "assistant", "content": "Well,"})
    with pytest.raises(openai.BadRequestError, match="System messages alone"):
        ask(client, "local", {"role": "system", "content": "Hi"})


@pytest.mark.parametrize("stream", [False, True])
def test_the_providers_own_refusal_is_the_programs_to_mend(client: OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="at most 4") as refused:
        ask(client, "local", user("refuse this"), stream=stream)
    assert refused.value.code == "refused_by_provider"
    headers = refused.value.response.headers
    assert headers["x-request-id"]
    assert int(headers["x-ratelimit-remaining-requests"]) < int(headers["x-ratelimit-limit-requests"])


@pytest.mark.parametrize("stream", [False, True])
def test_an_absent_backend_is_503_with_a_time_to_return(client: OpenAI, stream: bool) -> None:
    with pytest.raises(openai.InternalServerError) as away:
        ask(client, "away", user("Hi"), stream=stream)
    assert (away.value.status_code, away.value.code) == (503, "provider_unavailable")
    assert int(away.value.response.headers["retry-after"]) > 0
    assert "x-should-retry" not in away.value.response.headers, "to ask again stores nothing twice"


def test_a_message_that_fits_nowhere_is_refused_as_too_long(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, "local", user("word " * WINDOW))
    assert refused.value.code == "context_length_exceeded"


# -- health ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_long_conversation_stays_in_the_window_and_says_how(
    stack: Stack, client: OpenAI, doubles: dict[str, Double], stream: bool
) -> None:
    texts: list[dict[str, Any]] = []
    dialogs, done, levels = set(), [], set()
    headers = {"Authorization": f"Bearer {client.api_key}"}
    with httpx2.Client(base_url=stack.base_url, headers=headers, timeout=60) as http:
        for number in range(12):
            texts.append(
                user(f"Note {number}{'s' * stream}: " + f"the harbour of town {number} has boats and cranes. " * 50)
            )
            body = {"model": "local", "messages": texts, "stream": stream}
            answer = http.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
            message = chunks[-1] if stream else answer.json()
            text = (
                "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
                if stream
                else message["choices"][0]["message"]["content"]
            )
            texts.append({"role": "assistant", "content": text})
            dialogs.add(answer.headers["x-dominds-dialog"])
            levels.add(answer.headers["x-dominds-level"])
            assert text.startswith(f"You said: Note {number}{'s' * stream}:")
            assert int(answer.headers["x-dominds-est-prompt-tokens"]) == message["dominds"]["est_prompt_tokens"] > 0
            calls, summaries = message["dominds"]["calls"], len(message["dominds"]["done"])
            assert calls["count"] == 1 + summaries
            assert stream or (message["usage"]["prompt_tokens"] < calls["prompt_tokens"]) == bool(summaries), (
                "its own alone"
            )
            if message["dominds"]["done"]:
                done += message["dominds"]["done"]
                assert answer.headers["x-dominds-done"] == message["dominds"]["done"][-1]["address"]
    (dialog_id,) = dialogs
    assert not Generation.objects.filter(dialog=UUID(dialog_id)).exclude(error="").exists()
    assert {step["kind"] for step in done} == {"rewrite"}
    assert all(step["est_after"] < step["est_before"] for step in done)
    runs = Dialog.objects.get(pk=dialog_id).remediations.values_list("pk", flat=True)
    assert [step["address"] for step in done] == [f"/d/{dialog_id}/archive/{pk}/" for pk in runs]
    assert "critical" not in levels
    bodies = [body for body in doubles["local"].bodies if body["messages"][-1] == texts[-2]]
    assert len(bodies) == 1, "the program's own message stands last"


def test_a_policy_holds_for_the_requests_that_name_it(client: OpenAI) -> None:
    first = ask(client, "local", user("Hi"), extra_headers={"X-Dominds-Policy": "breaking"})
    assert dialog_of(first).context_policy == "breaking"
    again = ask(
        client, "local", user("Hi"), {"role": "assistant", "content": first.choices[0].message.content}, user("Go on")
    )
    assert dialog_of(again).pk == dialog_of(first).pk
    assert dialog_of(again).context_policy == ""


# -- lifetime ----------------------------------------------------------------------------------------------------------


TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Chat "
    "History:\n<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>"
)
RETRIEVAL = (
    "### Task:\nRespond to the user query using the provided context.\n<context>...</context>\n\nHow tall is it?"
)


@pytest.mark.parametrize(
    ("text", "options", "origin", "expires"),
    [
        ("Hi", {}, "key", False),
        ("Hi", {"store": False}, "key", True),
        (TITLE, {}, "background", True),
        (
            "Provide a concise, 5-word-or-less title for the conversation, using title case.\n\nHi",
            {},
            "background",
            True,
        ),
        ("Generate a title for this conversation:\nHi", {}, "background", True),
        (RETRIEVAL, {}, "key", False),
        ("Which title did the king give the admiral?", {}, "key", False),
    ],
)
def test_dialogs_of_programs_have_an_origin_and_brief_ones_expire(
    client: OpenAI, text: str, options: dict[str, Any], origin: str, expires: bool
) -> None:
    dialog = dialog_of(ask(client, "local", user(text), **options))
    assert (dialog.origin, dialog.expires_at is not None) == (origin, expires)
    answered = {"role": "assistant", "content": dialog.turns.get(role="assistant").text}
    messages: Any = [user(text), answered, user("Go on")]
    answer = client.chat.completions.create(model="local", messages=messages)
    again = dialog_of(answer)
    assert (again.pk, again.origin, again.expires_at) == (dialog.pk, "key", None), "a conversation is kept"


# -- as the model itself -----------------------------------------------------------------------------------------------

GET_TIME: dict[str, Any] = {"name": "get_time", "parameters": {"type": "object", "properties": {}}}
FACES: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...]]] = {
    "chat": (
        "local",
        "chat/completions",
        {"tools": [TIME], "max_tokens": 20},
        ("content_filter", "Say it by the book."),
    ),
    "messages": (
        "anthropic",
        "messages",
        {"tools": [{"name": "get_time", "input_schema": GET_TIME["parameters"]}], "max_tokens": 20},
        ("refusal", "stop_sequence"),
    ),
    "responses": (
        "openai",
        "responses",
        {"tools": [{"type": "function", "strict": False, **GET_TIME}], "max_output_tokens": 20},
        (),
    ),
}
SAID = ("Say what you may not.", "Call another.", "Say it.", "Say it at length.", "Look it up.", "Say and look.")
# How long what it wrote to its cache is kept, a provider tells nobody but its own account.
OF_EACH_SERVER = ("created", "created_at", "model", "call_id", "instructions", "tools", "store", "cache_creation")
HEADERS = {"messages": {"anthropic-version": "2023-06-01"}}


def asked_raw(url: str, key: str, face: str, body: dict[str, Any]) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}", "x-api-key": key, **HEADERS.get(face, {})}
    return httpx2.post(f"{url}/v1/{FACES[face][1]}", json=body, headers=headers, timeout=30)


def likeness(value: Any, name: str = "") -> Any:
    """Return what of an answer is the same whoever serves the model: of ids their form."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in OF_EACH_SERVER}
        is_call = kept.get("type") in ("function", "tool_use")
        return {key: likeness(one, "" if is_call and key == "id" else key) for key, one in kept.items()}
    if isinstance(value, list):
        return [likeness(one) for one in value]
    if name == "id":
        return str(value).replace("-", "_").split("_")[0]
    return value


def lacks(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Name what the model's own answer has and ours has not, or has otherwise; ids of calls are left out."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        missing = [f"{path}.{key}" for key in theirs if key not in ours]
        return missing + [
            one for key in theirs if key in ours and key != "" for one in lacks(ours[key], theirs[key], f"{path}.{key}")
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [one for at, pair in enumerate(zip(ours, theirs, strict=True)) for one in lacks(*pair, f"{path}.{at}")]
    is_call_id = path.endswith(".id") and str(theirs).startswith(("call", "toolu", "chatcmpl-tool"))
    return [] if ours == theirs or is_call_id else [f"{path}: {ours!r}, not {theirs!r}"]


def events_of(answer: httpx2.Response) -> list[Any]:
    lines = (line.removeprefix("data:").strip() for line in answer.text.splitlines() if line.startswith("data:"))
    events: list[Any] = [json.loads(line) if line != "[DONE]" else line for line in lines if line]
    return [event for event in events if event == "[DONE]" or event.get("type") != "ping"]


def course(events: list[Any]) -> list[Any]:
    """Return the kinds of events in their order, neighbours of one kind once; of chunks what they hold."""
    kinds: list[Any] = []
    for event in events:
        kind = event if event == "[DONE]" else event.get("type")
        if kind is None:
            choice: dict[str, Any] = next(iter(event["choices"]), {})
            held = sorted(name for name, one in choice.get("delta", {}).items() if one and name != "role")
            kind = (held, choice.get("finish_reason"), event.get("usage"))
        if kinds[-1:] != [kind] and kind != ([], None, None):
            kinds.append(kind)
    return kinds


@pytest.mark.parametrize("face", FACES)
def test_an_answer_is_like_that_of_the_model_itself(stack: Stack, doubles: dict[str, Double], face: str) -> None:
    name, _, fields, own = FACES[face]
    double, key = doubles[name], create_key(UserFactory.create())
    ids: set[str] = set()
    for text in (*SAID, *own):
        told = [{"role": "user", "content": text}]
        body = {**fields, ("input" if face == "responses" else "messages"): told}
        theirs = asked_raw(double.url, "k", face, {**body, "model": double.model})
        ours = asked_raw(stack.base_url, key, face, {**body, "model": name})
        assert (ours.status_code, theirs.status_code) == (200, 200), (text, ours.text, theirs.text)
        assert lacks(likeness(ours.json()), likeness(theirs.json())) == [], text
        assert ours.headers["content-type"] == "application/json" and ours.headers["request-id"]
        if face == "chat":
            body["stream_options"] = {"include_usage": True}
        theirs = asked_raw(double.url, "k", face, {**body, "model": double.model, "stream": True})
        streamed = asked_raw(stack.base_url, key, face, {**body, "model": name, "stream": True})
        events, others = events_of(streamed), events_of(theirs)
        assert course(events) == course(others), text
        ends = [next(event for event in reversed(one) if event != "[DONE]") for one in (events, others)]
        assert lacks(*map(likeness, ends)) == [], text
        assert streamed.headers["content-type"].startswith("text/event-stream")
        ids |= {ours.json()["id"], str(events_of(streamed)[0].get("id") or events_of(streamed)[0])}
    assert len(ids) == 2 * len((*SAID, *own)), "each answer has an id of its own"


PROBABLE: dict[str, dict[str, Any]] = {
    "chat": {"logprobs": True, "top_logprobs": 2},
    "responses": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
}


def probabilities(face: str, answer: httpx2.Response, *, stream: bool) -> list[Any]:
    """Return the tokens of an answer's text or refusal, as official clients put them together."""
    if face == "responses":
        whole = events_of(answer)[-1]["response"] if stream else answer.json()
        return [token for item in whole["output"] for part in item["content"] for token in part["logprobs"]]
    choices = [choice for event in events_of(answer)[:-1] for choice in event["choices"]]
    told = [choice.get("logprobs") or {} for choice in (choices if stream else answer.json()["choices"])]
    return [token for one in told for name in ("content", "refusal") for token in one.get(name) or ()]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("face", PROBABLE)
def test_probabilities_are_those_of_the_model_itself(
    stack: Stack, doubles: dict[str, Double], face: str, stream: bool
) -> None:
    """Also where the model's server speaks the other protocol. Nothing is kept of them."""
    key = create_key(UserFactory.create())
    unthought = {"reasoning": {"effort": "none"}} if face == "responses" else {"reasoning_effort": "none"}
    for text, (name, more) in itertools.product(
        ("Say it at length.", "Hi"),
        (("local", {}), ("openai", unthought)) if face == "chat" else (("openai", unthought), ("local", {})),
    ):
        body = {
            **PROBABLE[face],
            **more,
            "stream": stream,
            ("input" if face == "responses" else "messages"): [user(text)],
        }
        ours = asked_raw(stack.base_url, key, face, {**body, "model": name})
        assert ours.status_code == 200, ours.text
        if name == FACES[face][0]:
            own = asked_raw(doubles[name].url, "k", face, {**body, "model": doubles[name].model})
            theirs = probabilities(face, own, stream=stream)
        assert probabilities(face, ours, stream=stream) == theirs != []
        assert "logprobs" not in (Generation.objects.latest("pk").provider_fields or {})


def test_a_model_that_thinks_refuses_probabilities_itself(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="not supported with reasoning models"):
        ask(client, "openai", user("Hi"), logprobs=True)


PARTS: dict[str, tuple[Any, Any]] = {  # how each protocol writes a text and an image
    "chat": (lambda text: {"type": "text", "text": text}, lambda url: {"type": "image_url", "image_url": {"url": url}}),
    "messages": (
        lambda text: {"type": "text", "text": text},
        lambda url: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url[22:]}},
    ),
    "responses": (
        lambda text: {"type": "input_text", "text": text},
        lambda url: {"type": "input_image", "image_url": url},
    ),
}


@pytest.mark.parametrize("face", FACES)
def test_images_reach_the_model_where_they_stand(stack: Stack, doubles: dict[str, Double], face: str) -> None:
    """In the first request and in the next one, which is made of what was stored."""
    name, _, fields, _ = FACES[face]
    text, image = PARTS[face]
    first, second = (image(f"data:image/png;base64,{coded(picture(colour=colour))}") for colour in ("teal", "navy"))
    parts = [first, text("This is before."), second, text("\n  And after."), text("Which is it?"), first]
    turns: list[Any] = [{"role": "user", "content": parts}]
    refusals = len(doubles[name].refusals)
    field = "input" if face == "responses" else "messages"
    key, said = create_key(UserFactory.create()), [first, parts[1], second, text("\n  And after.\nWhich is it?"), first]
    for more in ("", "Go on."):
        turns += [{"role": "assistant", "content": "You said: it."}, user(more)] if more else []
        answer = asked_raw(stack.base_url, key, face, {**fields, field: turns, "model": name})
        assert answer.status_code == 200, answer.text
        arrived = doubles[name].bodies[-1][field][0]["content"]
        assert [{key: one[key] for key in one if key != "cache_control"} for one in arrived] == said
        turns[1:] = []
    assert len(doubles[name].refusals) == refusals


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("face", FACES)
def test_a_refusal_has_the_status_of_the_model_itself(
    stack: Stack, doubles: dict[str, Double], face: str, stream: bool
) -> None:
    """By it clients choose the exception, and whether they ask again."""
    name, _, fields, _ = FACES[face]
    double, key = doubles[name], create_key(UserFactory.create())
    for status, words in REFUSED.items():
        told = [user(f"Refuse with {status}")]
        body = {**fields, ("input" if face == "responses" else "messages"): told, "stream": stream}
        theirs = asked_raw(double.url, "k", face, {**body, "model": double.model})
        ours = asked_raw(stack.base_url, key, face, {**body, "model": name})
        assert (ours.status_code, theirs.status_code) == (status, status), ours.text
        assert words in ours.text and ours.headers["x-should-retry"] == "false"
        assert ("insufficient_quota" in ours.text) == (status in (402, 429))
