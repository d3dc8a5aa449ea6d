"""``/v1`` with the official clients, against Daphne, a worker, PostgreSQL and Redis."""

import json
import socket
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any
from uuid import UUID

import httpx2
import openai
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from openai import OpenAI

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog, Generation, Question, Turn
from dialogs.store.wakeups import live_text_key
from tests.dialogs.factories import UserFactory
from tests.harness.live import with_agents
from tests.harness.stack import Stack, eventually

COMPACTING, COMPACTED = "Compacting conversation history...", "Context compacted, continuing..."
FIXED = {"prompt_tokens": 50, "completion_tokens": 5}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
THOUGHTS = ("They want it noted: déjà vu. I note it first, then answer.", "Two and two, so what is it?")
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"text": "You said: {{last_user}}", "usage": FIXED}],
    "thinks": [
        {
            "match": "Please add",
            "reasoning": THOUGHTS[0],
            "tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}],
            "usage": FIXED,
            "chunk_delay_ms": 30,
        },
        {"reasoning": THOUGHTS[1], "text": "So it is four.", "usage": FIXED, "chunk_delay_ms": 30},
    ],
    "quiet": [{"text": "Hello.", "usage": "none"}],
    "slow": [{"text": "one two three four five six seven eight nine ten " * 20, "chunk_delay_ms": 100, "usage": FIXED}],
    "weather": [
        {
            "match": "weather",
            "text": "Let me look.",
            "tool_calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}],
            "usage": FIXED,
        },
        {"match": "degrees", "text": "It is warm.", "usage": FIXED},
        {"text": "Nice.", "usage": FIXED},
    ],
    "asks": [
        {
            "match": "hotel",
            "text": "One thing first.",
            "tool_calls": [{"name": "ask_human", "arguments": {"question": "Which currency?"}}],
            "usage": FIXED,
        },
        {"match": "Euro", "text": "Booked.", "usage": FIXED},
        {"text": "Nice.", "usage": FIXED},
    ],
    "guarded": [
        {"match": "List", "text": "I look.", "tool_calls": [{"name": "list_files", "arguments": {}}], "usage": FIXED},
        {"match": "a person refused", "text": "Then not.", "usage": FIXED},
        {"text": "Seen.", "usage": FIXED},
    ],
    "endless": [
        {"match": "cut off to compact", "text": "and so it ends.", "usage": "estimate"},
        {"match": "Tell", "text": "word " * 9_000, "usage": "estimate"},
        {"text": "Fine. " * 220, "usage": "estimate"},
    ],
    "long": [{"text": "Understood. " * 40, "usage": "estimate"}],
    "failing": [{"error": "auth"}],
    "stubborn": [{"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}}],
}


@pytest.fixture(scope="module")
def stack(shared_stack: Stack, django_db_blocker: Any) -> Iterator[Stack]:
    models: dict[str, Any] = {
        name: {"name": name, "script": f"{name}.yaml", "context_length": 128_000} for name in SCRIPTS
    }
    models["endless"] |= {"context_length": 12_000, "kind": "lmstudio"}
    models["long"] |= {"context_length": 8_000, "kind": "lmstudio"}
    models["unloaded"] = {"name": "unloaded", "script": "plain.yaml", "kind": "lmstudio"}
    members: dict[str, Any] = {
        name: {"name": name, "provider": "play", "model": name, "instructions": "Be brief."} for name in models
    }
    members["guarded"] |= {"tools": ["list_files"], "tool_approval": "always"}
    providers = {"play": {"name": "Play", "apiType": "scripted", "models": models}}
    minds = {"llm": {"providers": providers}, "team": {"members": members}}
    scripts = {name: {"steps": steps} for name, steps in SCRIPTS.items()}
    with with_agents(shared_stack, django_db_blocker, **minds, **scripts) as stack:
        yield stack


@pytest.fixture
def person(stack: Stack) -> User:
    return UserFactory.create(username=f"v1-{time.time_ns()}")


@pytest.fixture
def client(stack: Stack, person: User) -> OpenAI:
    return OpenAI(base_url=f"{stack.base_url}/v1", api_key=create_key(person))


def ask(client: OpenAI, model: str, *texts: str, **options: Any) -> Any:
    """User and assistant take turns; the user begins."""
    messages: Any = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
    return client.chat.completions.create(model=model, messages=messages, **options)


def dialog_of(answer: Any) -> Dialog:
    return Dialog.objects.get(pk=answer.metadata["dialog_id"])


def turns_in(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.order_by("position").values_list("role", "text"))


# -- answers -----------------------------------------------------------------------------------------------------------


def test_models_are_the_agents_and_an_unusable_one_says_why(client: OpenAI) -> None:
    result = {model.id: model for model in client.models.list()}
    assert {"plain", "slow", "unloaded"} <= set(result)
    assert (result["plain"].object, result["plain"].usable) == ("model", True)  # type: ignore[attr-defined]
    assert "context_length" in result["unloaded"].reason  # type: ignore[attr-defined]
    assert client.models.retrieve("plain").id == "plain"


def test_an_answer_comes_whole_with_its_usage(client: OpenAI) -> None:
    answer = ask(client, "plain", "Hi")
    choice = answer.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "You said: Hi", "stop")
    assert (answer.object, answer.model, answer.usage.prompt_tokens, answer.usage.total_tokens) == (
        "chat.completion",
        "plain",
        50,
        55,
    )
    assert answer.dominds["est_prompt_tokens"] > 0, "also where no policy counts"
    assert turns_in(dialog_of(answer)) == [("user", "Hi"), ("assistant", "You said: Hi")]


def test_unknown_usage_is_null(client: OpenAI) -> None:
    assert ask(client, "quiet", "Hi").usage is None
    *_, last = ask(client, "quiet", "Hi", stream=True, stream_options={"include_usage": True})
    assert (last.choices, last.usage) == ([], None)


def test_an_answer_streams_with_role_deltas_finish_and_usage(client: OpenAI) -> None:
    chunks = list(ask(client, "plain", "Hi", stream=True, stream_options={"include_usage": True}))
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == ("assistant", "")
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "You said: Hi"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-3:-1]] == [None, "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 55)
    without = list(ask(client, "plain", "Hi", stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in without)


@pytest.mark.parametrize("wanted", [True, False])
def test_reasoning_comes_apart_from_the_text_where_it_was_asked_for(client: OpenAI, *, wanted: bool) -> None:
    options = {"extra_body": {"include_reasoning": True}} if wanted else {}
    expected = "\n\n".join(THOUGHTS) if wanted else ""
    deltas = [chunk.choices[0].delta for chunk in ask(client, "thinks", "Please add", stream=True, **options)]
    thought = [index for index, delta in enumerate(deltas) if getattr(delta, "reasoning_content", None)]
    assert "".join(deltas[index].reasoning_content for index in thought) == expected
    assert "".join(delta.content or "" for delta in deltas) == "So it is four."
    assert bool(thought) == (len(thought) > 2) == wanted, "in pieces, as it was thought"
    assert not thought or max(thought) < min(index for index, delta in enumerate(deltas) if delta.content)
    answer = ask(client, "thinks", "Please add", **options).choices[0].message
    assert (getattr(answer, "reasoning_content", ""), answer.content) == (expected, "So it is four.")


def test_the_stream_is_live_and_ends_with_done(stack: Stack, client: OpenAI) -> None:
    body = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"Authorization": f"Bearer {client.api_key}"}
    with httpx2.stream(
        "POST", f"{stack.base_url}/v1/chat/completions", json=body, headers=headers, timeout=30
    ) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        lines = answer.iter_lines()
        events = [json.loads(next(lines)[6:]), next(lines), json.loads(next(lines)[6:])]
        dialog_id = answer.headers["x-dominds-dialog"]
        running_now = Generation.objects.filter(dialog=UUID(dialog_id), outcome="running").exists()
        rest = list(lines)
    assert events[2]["choices"][0]["delta"]["content"]
    assert running_now
    assert rest[-2:] == ["data: [DONE]", ""]


def test_a_clients_system_message_follows_the_agents(client: OpenAI) -> None:
    messages: Any = [{"role": "system", "content": "Speak Latin."}, {"role": "user", "content": "Hi"}]
    answer = client.chat.completions.create(model="plain", messages=messages)
    from dialogs.context.client import instructions_of

    assert instructions_of(dialog_of(answer)) == "Be brief.\n\nSpeak Latin."


# -- conversations -----------------------------------------------------------------------------------------------------


def test_an_exact_history_goes_on_and_grows_by_what_is_new(client: OpenAI) -> None:
    text, dialogs = ["Hi"], set()
    for number in range(4):
        answer = ask(client, "plain", *text, stream=False)
        dialogs.add(dialog_of(answer).pk)
        text += [answer.choices[0].message.content, f"more {number}"]
    assert len(dialogs) == 1
    assert dialog_of(answer).turns.count() == 8


def test_anything_else_forks_and_hides_nothing(client: OpenAI, person: User) -> None:
    first = dialog_of(ask(client, "plain", "Hi"))
    before = turns_in(first)
    fork = dialog_of(ask(client, "plain", "Hi", "Summary: nothing was said.", "Go on"))
    assert fork.pk != first.pk
    assert turns_in(first) == before
    assert turns_in(fork) == [
        ("user", "Hi"),
        ("assistant", "Summary: nothing was said."),
        ("user", "Go on"),
        ("assistant", "You said: Go on"),
    ]
    assert dialog_of(ask(client, "plain", "Hi", "You said: Hi", "Go on")).pk == first.pk
    assert dialog_of(ask(client, "plain", "Hi", "You said: Hi", "Go on")).pk not in (first.pk, fork.pk)  # not its head


def test_without_an_answer_in_it_a_request_opens_a_dialog(client: OpenAI) -> None:
    assert dialog_of(ask(client, "plain", "Hi")).pk != dialog_of(ask(client, "plain", "Hi")).pk


def test_another_key_or_agent_forks(stack: Stack, client: OpenAI, person: User) -> None:
    first = dialog_of(ask(client, "plain", "Hi"))
    other = OpenAI(base_url=f"{stack.base_url}/v1", api_key=create_key(person))
    assert dialog_of(ask(other, "plain", "Hi", "You said: Hi", "Go on")).pk != first.pk
    assert dialog_of(ask(client, "quiet", "Hi", "You said: Hi", "Go on")).pk != first.pk


def test_a_dialog_that_is_named_wins(client: OpenAI, stack: Stack) -> None:
    first = dialog_of(ask(client, "plain", "Hi"))
    message = {"metadata": {"dialog_id": str(first.pk)}}
    assert dialog_of(ask(client, "plain", "Only this", **message)).pk == first.pk
    headers = {"X-Dominds-Dialog": str(first.pk)}
    assert dialog_of(ask(client, "plain", "And this", extra_headers=headers)).pk == first.pk
    assert turns_in(first)[-2:] == [("user", "And this"), ("assistant", "You said: And this")]
    stranger = OpenAI(
        base_url=f"{stack.base_url}/v1", api_key=create_key(UserFactory.create(username=f"s{time.time_ns()}"))
    )
    for wrong in (str(first.pk), "7", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(openai.NotFoundError):
            ask(stranger, "plain", "Hi", metadata={"dialog_id": wrong})


# -- tools -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_clients_tool_is_called_back_and_its_result_goes_on(client: OpenAI, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    message, reason = _message(client, messages, stream)
    assert reason == "tool_calls"
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", {"city": "Rome"})
    dialog = Dialog.objects.latest("created_at")
    assert (dialog.state, dialog.turns.get(role="user").status) == ("idle", "answered")
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "30 degrees"}]
    message, reason = _message(client, messages, stream)
    assert (message["content"], reason) == ("It is warm.", "stop")
    messages += [message, {"role": "user", "content": "Thanks"}]
    assert _message(client, messages, stream)[0]["content"] == "Nice."
    assert [role for role, _ in turns_in(dialog)] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def _message(client: OpenAI, messages: list[Any], stream: bool) -> tuple[dict[str, Any], str]:
    options: Any = {"model": "weather", "messages": messages, "tools": [WEATHER]}
    if not stream:
        choice = client.chat.completions.create(**options).choices[0]
        return choice.message.model_dump(exclude_none=True), choice.finish_reason
    text, calls, reason = "", [], ""
    for chunk in client.chat.completions.create(**options, stream=True):
        delta = chunk.choices[0].delta
        text += delta.content or ""
        calls += [call.model_dump(exclude={"index"}) for call in delta.tool_calls or ()]
        reason = chunk.choices[0].finish_reason or reason
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}, reason


def test_a_client_that_forgets_its_tool_is_answered_all_the_same(client: OpenAI) -> None:
    answer = ask(client, "weather", "How is the weather?", tools=[WEATHER])
    again = ask(
        client, "weather", "How is the weather?", answer.choices[0].message.content, "Never mind", tools=[WEATHER]
    )
    assert dialog_of(again).pk == dialog_of(answer).pk
    assert again.choices[0].message.content == "Nice."
    assert dialog_of(again).turns.get(role="tool").status == "error"


def test_results_that_nobody_asked_for_are_refused(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(
            model="weather", messages=[{"role": "tool", "tool_call_id": "x", "content": "30 degrees"}]
        )


def test_a_history_with_tool_calls_can_be_brought_along(client: OpenAI) -> None:
    call = {"id": "mine", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    messages: Any = [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "mine", "content": "30 degrees"},
    ]
    tools: Any = [WEATHER]
    answer = client.chat.completions.create(model="weather", messages=messages, tools=tools)
    assert answer.choices[0].message.content == "It is warm."


def test_a_tool_may_not_take_the_name_of_one_of_ours(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="clear_mind"):
        ask(client, "plain", "Hi", tools=[{"type": "function", "function": {"name": "clear_mind"}}])


def test_a_question_to_a_person_is_text_answered_by_a_message(client: OpenAI) -> None:
    first = ask(client, "asks", "Book a hotel")
    content = first.choices[0].message.content
    assert content == "One thing first.\n\nWhich currency?"
    second = ask(client, "asks", "Book a hotel", content, "Euro")
    assert second.choices[0].message.content == "Booked."
    assert dialog_of(second).pk == dialog_of(first).pk
    assert Question.objects.get(dialog=dialog_of(second)).answer == "Euro"
    third = ask(client, "asks", "Book a hotel", content, "Euro", "Booked.", "Thanks")
    assert dialog_of(third).pk == dialog_of(first).pk


def test_a_clients_next_message_allows_a_call_or_refuses_it(client: OpenAI) -> None:
    for answer, result in (("Allow", "Seen."), ("Not now", "Then not.")):
        begun = f"List my files, {answer}"
        first = ask(client, "guarded", begun)
        content = first.choices[0].message.content
        assert content == "I look.\n\nAllow list_files to run with these arguments? Any other answer refuses.\n\n{}"
        second = ask(client, "guarded", begun, content, answer)
        assert second.choices[0].message.content == result
        assert dialog_of(second).pk == dialog_of(first).pk
        third = ask(client, "guarded", begun, content, answer, result, "Thanks")
        assert dialog_of(third).pk == dialog_of(first).pk
        branch = ask(client, "guarded", begun, content, answer, result, "Or this")
        assert branch.choices[0].message.content == "Seen." and dialog_of(branch).pk != dialog_of(first).pk


# -- notices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_the_two_notices_are_lines_of_a_finished_answer(client: OpenAI, stream: bool) -> None:
    words, dialogs, answers = ["Remember data/orders.csv. " * 40], set(), []
    for number in range(14):
        answer = ask(client, "long", *words, stream=stream)
        if stream:
            chunks = list(answer)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            dialogs.add(chunks[0].metadata["dialog_id"])
        else:
            text = answer.choices[0].message.content
            dialogs.add(answer.metadata["dialog_id"])
        answers.append(text)
        words += [text, f"Message {number}. " + "It never touches invoices. " * 40]
    assert len(dialogs) == 1
    lines = [line for line in "\n".join(answers).splitlines() if line in (COMPACTING, COMPACTED)]
    assert len(lines) >= 2
    assert lines == [COMPACTING, COMPACTED] * (len(lines) // 2)
    assert not Turn.objects.filter(dialog__in=dialogs, role="assistant", text__contains=COMPACTING).exists()


@pytest.mark.parametrize("notices", ["text", "comment", "off"])
def test_an_answer_that_fills_the_window_is_compacted_and_goes_on(stack: Stack, client: OpenAI, notices: str) -> None:
    before = [text for number in range(10) for text in (f"Question {number}", "Fine. " * 220)]
    texts = [*before, "Tell a story."]
    messages: Any = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
    body = {"model": "endless", "stream": True, "metadata": {"notices": notices}, "messages": messages}
    headers = {"Authorization": f"Bearer {client.api_key}"}
    answer = httpx2.post(f"{stack.base_url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    lines = answer.text.splitlines()
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert not [chunk for chunk in data if "error" in chunk], data[-1]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in data)
    notices_seen = [line for line in text.splitlines() if line in (COMPACTING, COMPACTED)]
    comments = [line[2:] for line in lines if line.startswith(": C")]
    assert notices_seen == ([COMPACTING, COMPACTED] if notices == "text" else [])
    assert comments == ([COMPACTING, COMPACTED] if notices == "comment" else [])
    assert text.startswith("word word")
    assert text.endswith("and so it ends.")
    again = ask(client, "endless", *texts, text, "Thanks")
    assert str(dialog_of(again).pk) == answer.headers["x-dominds-dialog"]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors_are_openais(stack: Stack, client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError) as unauthorized:
        ask(OpenAI(base_url=f"{stack.base_url}/v1", api_key="dmk_wrong"), "plain", "Hi")
    assert unauthorized.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(client, "nobody", "Hi")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as unloaded:
        ask(client, "unloaded", "Hi")
    assert "context_length" in unloaded.value.message
    with pytest.raises(openai.APIStatusError) as too_large:
        ask(client, "plain", "a" * 1_000_001)
    assert (too_large.value.status_code, too_large.value.code) == (413, "message_too_large")
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="plain", input="Hi")
    assert not Dialog.objects.filter(owner__api_keys__digest="", agent="unloaded").exists()


def test_a_failed_answer_is_an_error_and_is_not_sent_twice(client: OpenAI, person: User) -> None:
    with pytest.raises(openai.AuthenticationError) as failed:
        ask(client, "failing", "Hi")
    assert failed.value.code == "provider_authentication"
    assert failed.value.request_id
    with pytest.raises(openai.APIError, match="auth"):
        list(ask(client, "failing", "Hi again", stream=True))
    assert Turn.objects.filter(dialog__owner=person).count() == 2


def test_a_suspended_dialog_is_409(client: OpenAI) -> None:
    first = ask(client, "stubborn", "Hi")
    with pytest.raises(openai.ConflictError) as during:
        ask(client, "stubborn", "Hi", "no", "And now?")
    assert during.value.code == "dialog_suspended"
    with pytest.raises(openai.ConflictError) as after:
        ask(client, "stubborn", "And now?", metadata={"dialog_id": first.metadata["dialog_id"]})
    assert after.value.code == "dialog_suspended"
    assert dialog_of(first).generations.count() == 4


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_stops_the_run(stack: Stack, client: OpenAI, person: User, stream: bool) -> None:
    body = json.dumps({"model": "slow", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{stack.port}\r\nContent-Length: {len(body)}\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: Bearer {client.api_key}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", stack.port)) as leaving, stack.redis.client() as redis:
        leaving.sendall((head + body).encode())
        called = eventually(Generation.objects.filter(dialog__owner=person).first)
        eventually(lambda: redis.exists(live_text_key(called.pk)))  # it has said something
    message = Turn.objects.filter(dialog__owner=person, role="user")
    eventually(lambda: message.get().status == "stopped", 5)
    assert Turn.objects.get(dialog__owner=person, role="assistant").status == "stopped"


STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "messages": ("/v1/messages", {"max_tokens": 900, "messages": [{"role": "user", "content": "Hi"}]}),
    "gemini": ("/v1beta/models/slow:streamGenerateContent?alt=sse", {"contents": [{"parts": [{"text": "Hi"}]}]}),
}


@pytest.mark.parametrize(("path", "body"), STREAMS.values(), ids=STREAMS)
def test_what_a_client_left_and_sends_again_is_one_message(
    stack: Stack, client: OpenAI, person: User, path: str, body: dict[str, Any]
) -> None:
    sent = body if "contents" in body else {"model": "slow", "stream": True, **body}
    headers = {"Authorization": f"Bearer {client.api_key}"}
    message = Turn.objects.filter(dialog__owner=person, role="user")
    for _ in range(2):
        with httpx2.stream("POST", f"{stack.base_url}{path}", json=sent, headers=headers, timeout=30) as answer:
            for _, piece in zip(range(4), answer.iter_bytes(), strict=False):
                assert piece
        # Known to be left, its answer need not have ended.
        eventually(lambda: message.filter(Q(status="stopped") | Q(dialog__stop_requested=True)).exists(), 5)
    assert message.count() == 1
    assert Turn.objects.filter(dialog__owner=person, role="assistant").exists()


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_is_revoked_stops_the_answer_under_way(client: OpenAI, person: User, stream: bool) -> None:
    message = Turn.objects.filter(dialog__owner=person, role="user")

    def revoke() -> None:
        eventually(lambda: message.filter(status="answering").exists())
        person.api_keys.update(revoked_at="2026-01-01T00:00Z")
        connection.close()

    revoking = Thread(target=revoke)
    revoking.start()
    with pytest.raises(openai.APIError) as ended:
        for _ in ask(client.with_options(max_retries=0), "slow", "Hi", stream=stream):
            pass
    revoking.join()
    assert ended.value.message.endswith("The API key was revoked or has expired. The answer was stopped.")
    eventually(lambda: message.get().status == "stopped", 5)


def test_two_million_characters_of_history_are_understood(client: OpenAI) -> None:
    texts = [text for number in range(10) for text in (f"{number} " + "a" * 200_000, "b" * 1_000)]
    assert ask(client, "quiet", *texts, "Go on").choices[0].message.content == "Hello."


def test_a_message_behind_another_gets_its_own_answer_only(stack: Stack, client: OpenAI) -> None:
    slow = ask(client, "slow", "first", stream=True)
    dialog_id = next(iter(slow)).metadata["dialog_id"]
    second = ask(client, "slow", "second", stream=True, metadata={"dialog_id": dialog_id})
    texts = ["".join(chunk.choices[0].delta.content or "" for chunk in answer) for answer in (slow, second)]
    assert texts == [SCRIPTS["slow"][0]["text"]] * 2
    assert [role for role, _ in turns_in(Dialog.objects.get(pk=dialog_id))] == ["user", "assistant"] * 2


def test_a_lost_worker_costs_time_and_no_character(stack: Stack, client: OpenAI) -> None:
    answer = iter(ask(client, "slow", "Hi", stream=True))
    event = "".join(next(answer).choices[0].delta.content or "" for _ in range(5))
    for worker in stack.workers:
        worker.kill()
    stack.start_worker()
    event += "".join(chunk.choices[0].delta.content or "" for chunk in answer)
    assert event == SCRIPTS["slow"][0]["text"]


# -- langchain ---------------------------------------------------------------------------------------------------------


def test_langchain_chats_streams_and_calls_tools(stack: Stack, person: User) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    def chat(model: str) -> Any:
        key: Any = create_key(person)
        return ChatOpenAI(model=model, base_url=f"{stack.base_url}/v1", api_key=key)

    answer = chat("plain").invoke("Hi")
    assert (answer.content, answer.usage_metadata["total_tokens"]) == ("You said: Hi", 55)
    assert "".join(chunk.content for chunk in chat("plain").stream("Hi")) == "You said: Hi"
    with_tools = chat("weather").bind_tools([WEATHER])
    messages: list[Any] = [HumanMessage("How is the weather?")]
    called = with_tools.invoke(messages)
    assert called.tool_calls[0]["name"] == "get_weather"
    messages += [called, ToolMessage("30 degrees", tool_call_id=called.tool_calls[0]["id"])]
    assert with_tools.invoke(messages).content == "It is warm."
