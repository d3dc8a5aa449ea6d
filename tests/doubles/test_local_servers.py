"""The doubles of servers on one's own machine: their windows, their refusals, and what they do without one."""

from collections.abc import Callable
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.doubles.asking import TOOL_SCHEMA, events_of, get, post
from tests.doubles.brains import Call, Reply, Scripted
from tests.doubles.chat_templates import count_text
from tests.doubles.local_servers import (
    RUBBISH,
    LlamaCppDouble,
    LMStudioDouble,
    LocalDouble,
    OllamaDouble,
    SGLangDouble,
    VLLMDouble,
)

pytestmark = pytest.mark.server

Body = dict[str, Any]
PATH = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
NAMED = {"type": "function", "function": {"name": "weather"}}
DOUBLES = [LMStudioDouble, LlamaCppDouble, VLLMDouble, SGLangDouble, OllamaDouble]


def base(double: LocalDouble, *texts: str, **fields: Any) -> Body:
    """The texts of user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts or ("hello",))]
    return {"model": double.model, "messages": messages, **fields}


def long(tokens: int) -> str:
    return "x" * 4 * tokens


@pytest.mark.parametrize("kind", DOUBLES)
def test_the_real_window_is_told(kind: type[LocalDouble]) -> None:
    with kind(window=7_777) as double:
        windows: dict[type[LocalDouble], Callable[[], tuple[int, ...]]] = {
            LMStudioDouble: lambda: (
                get(double, "/api/v0/models")["data"][0]["loaded_context_length"],
                get(double, "/api/v1/models")["models"][0]["loaded_instances"][0]["config"]["context_length"],
            ),
            LlamaCppDouble: lambda: (get(double, "/props")["default_generation_settings"]["n_ctx"],),
            VLLMDouble: lambda: (get(double, "/v1/models")["data"][0]["max_model_len"],),
            SGLangDouble: lambda: (
                get(double, "/v1/models")["data"][0]["max_model_len"],
                get(double, "/get_server_info")["context_length"],
            ),
            OllamaDouble: lambda: (get(double, "/api/ps")["models"][0]["context_length"],),
        }
        result = windows[kind]()
    assert set(result) == {7_777}


def test_the_models_own_maximum_is_told_too_and_says_nothing() -> None:
    with OllamaDouble() as ollama, LMStudioDouble(is_loaded=False) as studio:
        shown = post(ollama, "/api/show", {"model": ollama.model}).json()
        assert shown["model_info"]["qwen3.context_length"] == 131_072
        entry = get(studio, "/api/v0/models")["data"][0]
        assert (entry["state"], entry["max_context_length"]) == ("not-loaded", 131_072)
        assert "loaded_context_length" not in entry
        assert get(studio, "/api/v1/models")["models"][0]["loaded_instances"] == []


def test_a_studio_may_keep_its_window_to_itself() -> None:
    with LMStudioDouble(tells_window=False) as double:
        assert "loaded_context_length" not in get(double, "/api/v0/models")["data"][0]
        assert get(double, "/api/v1/models")["models"][0]["loaded_instances"][0]["config"] == {}
        assert get(double, "/api/v0/models")["data"][0]["state"] == "loaded"


def test_another_window_is_told_and_holds_once_it_is_loaded() -> None:
    with LMStudioDouble(window=4_096) as double:
        double.load(8_192)
        assert get(double, "/api/v0/models")["data"][0]["loaded_context_length"] == 8_192
        assert post(double, PATH, base(double, long(5_000))).status_code == 200


# -- counts


def test_a_prompt_and_its_answer_count_as_the_model_counts() -> None:
    model, text = "llama-2-7b-chat", "Grüße aus Ulm"
    with LlamaCppDouble(Scripted(Reply(text), Reply(text * 90)), model=model, by_template=True, window=40) as double:
        usage = post(double, PATH, base(double, text)).json()["usage"]
        cut = post(double, PATH, base(double, text)).json()
        refused = post(double, PATH, base(double, text * 9)).json()["error"]
    tokens = count_text(model, text)
    assert usage["completion_tokens"] == tokens > len(text) / 4
    assert usage["prompt_tokens"] == 1 + count_text(model, f"[INST] {text} [/INST]")
    assert cut["choices"][0]["finish_reason"] == "length"
    assert 35 <= cut["usage"]["total_tokens"] <= 40
    assert [(request.is_full, request.is_sent) for request in double.requests[:2]] == [(False, True), (True, True)]
    assert refused["n_prompt_tokens"] == 1 + count_text(model, f"[INST] {text * 9} [/INST]")


def test_usage_comes_without_details_or_is_left_out_of_one_answer() -> None:
    with LlamaCppDouble(Scripted(Reply("a"), Reply("b", is_reported=False)), usage="sums") as double:
        bodies = [post(double, PATH, base(double)).json() for _ in range(2)]
    assert bodies[0]["usage"].keys() == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert "usage" not in bodies[1]


# -- refusals

N_KEEP = (
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 1107>= "
    "n_ctx: 1000). Try to load the model with a larger context length, or provide a shorter input."
)
KEEP_FIRST = (
    "Trying to keep the first 1107 tokens when context the overflows. However, the model is loaded with "
    "context length of only 1000 tokens, which is not enough. Try to load the model with a larger context length, or "
    "provide a shorter input."
)


@pytest.mark.parametrize(
    ("overflow", "words"),
    [
        ("n_keep", N_KEEP),
        ("truncate", "Cannot truncate prompt with n_keep (1107) >= n_ctx (1000)"),
        ("keep_first", KEEP_FIRST),
    ],
)
def test_lmstudio_refuses_with_a_string(overflow: Any, words: str) -> None:
    with LMStudioDouble(window=1_000, overflow=overflow) as double:
        assert post(double, PATH, base(double, long(900))).status_code == 200
        refused = post(double, PATH, base(double, long(1_100)))
    assert (refused.status_code, refused.json()) == (400, {"error": words})


def test_lmstudio_takes_no_object_as_tool_choice() -> None:
    with LMStudioDouble() as double:
        assert post(double, PATH, base(double, tools=TOOLS, tool_choice="required")).status_code == 200
        refused = post(double, PATH, base(double, tools=TOOLS, tool_choice=NAMED))
    words = "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
    assert (refused.status_code, refused.json()) == (400, {"error": words})


def test_lmstudio_may_answer_rubbish_to_what_is_too_long() -> None:
    with LMStudioDouble(window=1_000, overflow="rubbish") as double:
        answered = post(double, PATH, base(double, "first", long(2_000), "last")).json()
        shown = [answer.text for answer in double.requests[0].prompt.messages]  # type: ignore[union-attr]
    assert answered["choices"][0]["message"]["content"] == RUBBISH
    assert answered["usage"]["prompt_tokens"] == 500
    assert shown == ["first", "last"]


EXCEEDED = {
    "message": "request (1107 tokens) exceeds the available context size (1000 tokens), try increasing it",
    "type": "exceed_context_size_error",
    "param": None,
    "n_prompt_tokens": 1_107,
    "n_ctx": 1_000,
}


@pytest.mark.parametrize("status", [400, 500, 200])
def test_llamacpp_refuses_by_its_own_type_whatever_the_status(status: Any) -> None:
    with LlamaCppDouble(window=1_000, overflow_status=status) as double:
        assert post(double, PATH, base(double, long(900))).status_code == 200
        refused = post(double, PATH, base(double, long(1_100)))
        error = {**EXCEEDED, "code": 500 if status == 500 else 400}
        assert (refused.status_code, refused.json()) == (status, {"error": error})
        streamed = post(double, PATH, base(double, long(1_100), stream=True))
        assert streamed.status_code == status
        if status == 200:
            assert events_of(streamed) == [{"error": error}]


def test_vllm_wants_room_for_prompt_and_output() -> None:
    with VLLMDouble(window=1_000) as double:
        assert post(double, PATH, base(double, long(600), max_tokens=300)).status_code == 200
        refused = post(double, PATH, base(double, long(600), max_tokens=400))
        assert refused.status_code == 400
        assert refused.json()["error"] == {
            "message": "This model's maximum context length is 1000 tokens. However, you requested 400 output tokens "
            "and your prompt contains at least 607 input tokens, for a total of at least 1007 tokens. Please reduce "
            "the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, "
            "value=607)",
            "type": "BadRequestError",
            "param": "input_tokens",
            "code": 400,
        }


def test_vllm_gives_what_is_left_and_refuses_when_nothing_is() -> None:
    with VLLMDouble(Scripted(Reply("y" * 8_000)), window=1_000) as double:
        answered = post(double, PATH, base(double, long(900))).json()
        assert answered["usage"]["total_tokens"] == 1_000
        assert answered["choices"][0]["finish_reason"] == "length"
        refused = post(double, PATH, base(double, long(1_100)))
        assert refused.json()["error"]["message"] == "max_tokens must be at least 1, got -107."


def test_sglang_wants_room_for_prompt_and_output() -> None:
    with SGLangDouble(window=1_000) as double:
        assert post(double, PATH, base(double, long(600), max_tokens=300)).status_code == 200
        refused = post(double, PATH, base(double, long(600), max_tokens=400))
        assert (refused.status_code, refused.json()["object"]) == (400, "error")
        assert refused.json()["message"] == (
            "Requested token count exceeds the model's maximum context length of 1000 tokens. You requested a total of "
            "1007 tokens: 607 tokens from the input messages and 400 tokens for the completion. Please reduce the "
            "number of tokens in the input messages or the completion to fit within the limit."
        )
        refused = post(double, PATH, base(double, long(1_100)))
        assert (
            refused.json()["message"]
            == "The input (1107 tokens) is longer than the model's context length (1000 tokens)."
        )


def test_ollama_cuts_the_start_and_reports_about_half_the_window() -> None:
    with OllamaDouble(window=1_000) as double:
        whole = post(double, PATH, base(double, long(300), long(300), "last")).json()
        cut = post(double, PATH, base(double, long(600), long(300), long(300), "well", "last", num_ctx=32_000)).json()
        shown = [answer.text for answer in double.requests[-1].prompt.messages]  # type: ignore[union-attr]
    assert whole["usage"]["prompt_tokens"] > 600
    assert cut["choices"][0]["message"]["content"] == "You said: last"
    assert cut["usage"]["prompt_tokens"] < 500
    assert shown == [long(300), "well", "last"]


def test_ollamas_cloud_refuses() -> None:
    with OllamaDouble(window=1_000, is_cloud=True) as double:
        assert post(double, PATH, base(double, long(900))).status_code == 200
        refused = post(double, PATH, base(double, long(1_100)))
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "prompt too long; exceeded max context length by 107 tokens"


@pytest.mark.parametrize("kind", DOUBLES)
def test_a_template_may_want_turns(kind: type[LocalDouble]) -> None:
    with kind(alternates=True) as double:
        body = base(double, "a", "b", "c")
        assert post(double, PATH, body).status_code == 200
        del body["messages"][1]
        refused = post(double, PATH, body)
    assert refused.status_code == 400
    assert "Conversation roles must alternate user/assistant/user/assistant/..." in refused.text


# -- answers


THINKS = Reply("It is sunny.", (Call("weather", {"city": "Ulm"}),), "Let me think of Ulm.")
FIELDS = {
    LMStudioDouble: "reasoning_content",
    LlamaCppDouble: "reasoning_content",
    VLLMDouble: "reasoning",
    SGLangDouble: "reasoning_content",
    OllamaDouble: "reasoning",
}


@pytest.mark.parametrize("kind", DOUBLES)
def test_reasoning_is_a_field_or_stands_in_the_text(kind: type[LocalDouble]) -> None:
    with kind(Scripted(THINKS)) as double:
        message = post(double, PATH, base(double)).json()["choices"][0]["message"]
        assert (message[FIELDS[kind]], message["content"]) == (THINKS.reasoning, THINKS.text)
        assert message["tool_calls"][0]["function"]["name"] == "weather"
    with kind(Scripted(THINKS), reasoning="think", calls_as_text=True) as double:
        message = post(double, PATH, base(double)).json()["choices"][0]["message"]
    assert message["content"] == (
        f"<think>\n{THINKS.reasoning}\n</think>\n\n{THINKS.text}"
        '<tool_call>\n{"arguments":{"city":"Ulm"},"name":"weather"}\n</tool_call>'
    )
    assert "tool_calls" not in message


@pytest.mark.parametrize("kind", DOUBLES)
def test_the_sdk_reads_answers_and_refusals(kind: type[LocalDouble]) -> None:
    with kind() as double:
        client = OpenAI(base_url=f"{double.url}/v1", api_key="none", max_retries=0)
        sent = base(double)
        assert client.chat.completions.create(**sent).choices[0].message.content == "You said: hello"
        sent["messages"].append({"role": "tool", "tool_call_id": "call_1", "content": "sunny"})
        with pytest.raises(BadRequestError) as caught:
            client.chat.completions.create(**sent)
        words = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
        assert words in caught.value.response.text
