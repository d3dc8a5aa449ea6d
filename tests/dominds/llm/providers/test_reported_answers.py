"""Answers of servers that other people's clients failed on, each with the report that shows it, sent over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.messages import ToolCall, ToolSpec
from dominds.llm.provider import ContextOverflow, ImagesRefused, MalformedStream, ProviderError, RequestRefused
from tests.dominds.llm.asking import HELLO, ask
from tests.dominds.llm.model_server import ModelServer, data, stream_of
from tests.dominds.llm.providers.chat_chunks import DONE, USAGE, call, chat, delta

WEATHER = replace(HELLO, tools=(ToolSpec("get_weather", "", {"type": "object"}),))
OVERFLOW = "This model's maximum context length is 163840 tokens. However, you requested 200000 tokens."


def pieces(*texts: Any) -> list[dict[str, Any]]:
    return [delta(content=text) for text in texts]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (  # ggml-org/llama.cpp#16109
            b'error: {"code":400,"message":"the request exceeds the available context size"}\n\n' + data(DONE),
            ContextOverflow,
            "available context size",
        ),
        (  # NousResearch/hermes-agent#65631, DeepInfra
            data({"choices": None, "error_type": "BadRequestError", "error_message": OVERFLOW, "usage": None}),
            ContextOverflow,
            "maximum context length",
        ),
        (data({"choices": [], "error_type": "BadRequestError", "error_message": "No."}, DONE), RequestRefused, "No"),
        (  # BerriAI/litellm#32237, vLLM
            data({"error": {"message": "The model is not multimodal. Please remove image inputs.", "code": 400}}, DONE),
            ImagesRefused,
            "not multimodal",
        ),
        (data({"code": "DataInspectionFailed", "message": "Inappropriate."}), RequestRefused, "Inappropriate"),
    ],
    ids=["llama.cpp", "DeepInfra", "no choices", "vLLM", "DashScope"],
)
def test_errors_in_odd_places_keep_their_kind(
    server: ModelServer, body: bytes, kind: type[ProviderError], words: str
) -> None:
    server.will(stream_of(body))
    with pytest.raises(kind, match=words) as caught:
        ask(chat(server))
    assert type(caught.value) is kind


def test_words_that_come_as_numbers_are_kept(server: ModelServer) -> None:
    """cloudflare/ai#651: "1" is sent as 1."""
    server.will(stream_of(data(delta(reasoning=2), *pieces("[", 1, "] $", 0.005, 0, True), delta("stop"), DONE)))
    outcome = ask(chat(server))
    assert (outcome.reasoning, outcome.text) == ("2", "[1] $0.0050true")


@pytest.mark.parametrize(
    ("texts", "thought", "text"),
    [
        (["analysis", "Two and", " two.", "assistant", "final", "four"], "Two and two.", "four"),
        (["analysis用户问。assistantfinal四"], "用户问。", "四"),
        (["analysis", " is hard."], "", "analysis is hard."),
        (["analysisassistantfinal"], "", "analysisassistantfinal"),
    ],
)
def test_harmony_without_its_marks_is_parted(server: ModelServer, texts: list[str], thought: str, text: str) -> None:
    """Augustas11/macprovider#743: gpt-oss on a server that drops the marks and does not part the answer."""
    for split in (texts, list("".join(texts))):
        server.will(stream_of(data(*pieces(*split), delta("stop"), DONE)))
        outcome = ask(chat(server))
        assert (outcome.reasoning, outcome.text) == (thought, text)


@pytest.mark.parametrize("before", ["", "analysisI look.", "I look."])
def test_a_harmony_call_without_its_marks_is_no_answer(server: ModelServer, before: str) -> None:
    """raullenchai/Rapid-MLX#444."""
    written = before + 'assistantcommentary to=functions.get_weather json{"city":"Tokyo"}'
    server.will(stream_of(data(*pieces(*written), delta("stop"), DONE)))
    with pytest.raises(MalformedStream, match="get_weather came as text"):
        ask(chat(server), WEATHER)


def test_arguments_that_are_repeated_with_other_spaces_are_one_call(server: ModelServer) -> None:
    """vllm-project/vllm#36410, GLM."""
    parts = ('{"city":"', 'Oslo"', "}", '{"city": "Oslo"}')
    server.will(stream_of(data(call(0, "a", "get_weather"), *[call(0, arguments=part) for part in parts], DONE)))
    assert ask(chat(server)).finished.tool_calls == (ToolCall("a", "get_weather", '{"city":"Oslo"}'),)


def test_arguments_of_null_are_none(server: ModelServer) -> None:
    server.will(stream_of(data(call(0, "a", "stop", "null"), delta("tool_calls"), DONE)))
    assert ask(chat(server)).finished.tool_calls == (ToolCall("a", "stop", "{}"),)


@pytest.mark.parametrize(
    ("most", "arguments", "finish"),
    [(3, '{"city":"Os', "length"), (4, '{"city":"Os', "tool_calls"), (3, '{"city":"Oslo"}', "tool_calls")],
)
def test_a_call_that_used_up_the_output_was_cut(server: ModelServer, most: int, arguments: str, finish: str) -> None:
    """vllm-project/vllm#53269: its stream ends with ``tool_calls`` after any call."""
    server.will(stream_of(data(call(0, "a", "get_weather", arguments), delta("tool_calls"), USAGE, DONE)))
    assert ask(chat(server), replace(HELLO, max_output_tokens=most)).finished.finish_reason == finish


def test_counts_behind_an_answer_end_it(server: ModelServer) -> None:
    """earendil-works/pi#7441: a gateway that sends neither a reason for the end nor ``[DONE]``."""
    server.will(stream_of(data(*pieces("All ", "of it."), USAGE)))
    assert ask(chat(server)).text == "All of it."
    for broken in ((*pieces("All "), USAGE, *pieces("of")), (USAGE,), (*pieces("All "), {"choices": []})):
        server.will(stream_of(data(*broken)))
        with pytest.raises(MalformedStream):
            ask(chat(server))


def test_an_end_in_every_chunk_ends_nothing(server: ModelServer) -> None:
    """su-kaka/gcli2api#403."""
    chunks = [delta("stop", reasoning_content="Hm."), delta("stop", content="All "), delta("stop", content="of it.")]
    server.will(stream_of(data(*chunks, DONE)))
    assert ask(chat(server)).text == "All of it."
