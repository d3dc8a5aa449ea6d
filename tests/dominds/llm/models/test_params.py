"""Parameters of models: what each takes, in which words it is sent, and what is refused before anything is sent."""

from pathlib import Path
from typing import Any

import pytest

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.models.model import ModelInfo
from dominds.llm.models.params import faults_of_asked, faults_of_settings, in_body, most_output, tune
from dominds.llm.providers.kinds import KINDS

CATALOG = load_catalog(Path("/nonexistent"))
DIALECTS = {name: kind.params for name, kind in KINDS.items()}
OPUS, HAIKU, OLD = "anthropic/claude-opus-5-5", "anthropic/claude-haiku-5-5", "anthropic/claude-haiku-4-5"
OPUS_5, GPT, SOL = "anthropic/claude-opus-5", "openai/gpt-5.6-terra", "openai/gpt-6.1-sol"
GPT_5_5 = "openai/gpt-5.5"
QWEN, GEMINI, LOCAL = "alibaba/qwen3.8-max", "google/gemini-4-argon", "lmstudio/qwen3-14b"


def shipped(name: str) -> ModelInfo:
    return CATALOG.model(*name.split("/"))


def sent(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    return in_body(tune(shipped(name), settings).model_params)


def test_nothing_shipped_is_refused() -> None:
    assert CATALOG.problems == ()


@pytest.mark.parametrize(
    ("name", "effort", "params"),
    [
        (GPT, "low", {"reasoning": {"summary": "auto", "effort": "low"}}),
        (GPT, "none", {"reasoning": {"summary": "auto", "effort": "none"}}),
        (OPUS, "max", {"output_config": {"effort": "max"}}),
        (HAIKU, "none", {"thinking": {"type": "disabled"}}),
        (OPUS_5, "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (OPUS_5, "none", {}),
        (OLD, "medium", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        (QWEN, "low", {"reasoning_effort": "low"}),
        (QWEN, "none", {"enable_thinking": False}),
        (GEMINI, "high", {"reasoning_effort": "high"}),
        (GEMINI, "max", {"reasoning_effort": "high"}),
        (GPT, "max", {"reasoning": {"summary": "auto", "effort": "max"}}),
        (GPT_5_5, "max", {"reasoning": {"summary": "auto", "effort": "xhigh"}}),
        (GPT_5_5, "low", {"reasoning": {"summary": "auto", "effort": "low"}}),
        (LOCAL, "medium", {"reasoning_effort": "medium"}),
    ],
)
def test_an_effort_is_sent_in_the_words_of_the_models_format(name: str, effort: str, params: dict[str, Any]) -> None:
    settings = {"general": {"effort": effort}}
    assert faults_of_settings(shipped(name), settings, DIALECTS) == []
    assert sent(name, settings) == params


def test_the_section_of_the_models_kind_goes_before_the_general_one() -> None:
    settings = {
        "general": {"effort": "low", "temperature": 0.2, "max_tokens": 900},
        "openai-compatible": {"temperature": 0.4, "extra": {"prefill": 1}},
        "anthropic": {"output_config": {"effort": "high"}},
    }
    assert faults_of_settings(shipped(QWEN), settings, DIALECTS) == []
    assert sent(QWEN, settings) == {"reasoning_effort": "low", "temperature": 0.4, "prefill": 1}
    assert sent(OPUS, settings) == {"output_config": {"effort": "high"}}, "which takes no temperature"
    assert most_output(settings) == 900


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (QWEN, {"general": {"effort": "hard"}}, "effort: expected one of none, minimal"),
        (QWEN, {"general": {"heat": 1}}, "heat means nothing here; known are effort, temperature, top_p, max_tokens"),
        (QWEN, {"general": {"temperature": 3}}, "expected a number from 0 to 2, found 3"),
        (QWEN, {"general": {"max_tokens": 0}}, "expected a whole number from 16"),
        (QWEN, {"general": [1]}, "expected a mapping"),
        (QWEN, {"codex": {"effort": "low"}}, "there is no such section; known are general, openai"),
        (QWEN, {"openai-compatible": {"temprature": 1}}, "temprature means nothing here"),
        (QWEN, {"anthropic": {"temprature": 1}}, "temprature means nothing here"),
        (QWEN, {"openai-compatible": {"max_tokens": 5}}, "general.max_tokens"),
        (QWEN, {"openai-compatible": {"extra": {"messages": []}}}, "messages is written by Dominds itself"),
        (OPUS, {"general": {"effort": "none"}}, "claude-opus-5-5 always thinks"),
        (OPUS, {"general": {"effort": "minimal"}}, "expected one of low"),
        (OPUS, {"general": {"temperature": 0.5}}, "claude-opus-5-5 does not take temperature"),
        (OPUS, {"anthropic": {"thinking": {"type": "enabled"}}}, "does not think as enabled"),
        (
            HAIKU,
            {"anthropic": {"thinking": {"type": "disabled"}, "output_config": {"effort": "xhigh"}}},
            "takes the effort xhigh only while it thinks",
        ),
        (OLD, {"general": {"effort": "low", "temperature": 0.5}}, "takes no temperature but 1 while it thinks"),
        (OLD, {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 5}}}, "budget_tokens: expected a whole"),
        (SOL, {"general": {"effort": "none"}}, "gpt-6.1-sol always thinks"),
        (SOL, {"general": {"top_p": 0.5}}, "gpt-6.1-sol does not take top_p"),
        (GPT_5_5, {"openai": {"reasoning": {"effort": "max"}}}, "does not know the effort max; its greatest is xhigh"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(name: str, settings: dict[str, Any], words: str) -> None:
    faults = faults_of_settings(shipped(name), settings, DIALECTS)
    assert words in "; ".join(reason for _, reason in faults)
    kept = set(sent(name, settings)) - {"reasoning"}
    assert not kept & {"heat", "temprature", "temperature", "top_p", "max_tokens", "messages"} or name == QWEN
    assert "messages" not in kept and "temprature" not in kept and "max_tokens" not in kept


def test_parameters_of_llm_yaml_are_judged_by_their_providers_kind(tmp_path: Path) -> None:
    (tmp_path / "llm.yaml").write_text(
        """
providers:
  mine:
    apiType: vllm
    baseUrl: http://127.0.0.1:1/v1
    models:
      m: {model_params: {reasoning_effort: low, output_config: {effort: low}, top_k: 5, extra: {my_switch: true}}}
  anthropic:
    models:
      claude-opus-5-5: {model_params: {output_config: {effort: low}, temperature: 0.5}}
"""
    )
    catalog = load_catalog(tmp_path)
    first, second = sorted(str(problem) for problem in catalog.problems)
    assert "providers.anthropic.models.claude-opus-5-5.model_params.temperature: claude-opus-5-5 does not take" in first
    assert "providers.mine.models.m.model_params.output_config: output_config means nothing here" in second
    assert in_body(catalog.model("mine", "m").model_params) == {
        "reasoning_effort": "low",
        "top_k": 5,
        "my_switch": True,
    }
    assert catalog.model("anthropic", "claude-opus-5-5").model_params == {"output_config": {"effort": "low"}}


SCHEMA = {"name": "city", "schema": {"type": "object", "properties": {}}, "strict": True}
JSON_SCHEMA = {"type": "json_schema", "json_schema": SCHEMA}


@pytest.mark.parametrize(
    ("name", "asked", "params"),
    [
        (QWEN, {"stop": ["END"], "seed": 2**40, "top_p": 0.5}, {"stop": ["END"], "seed": 2**40, "top_p": 0.5}),
        (QWEN, {"reasoning_effort": "none"}, {"enable_thinking": False}),
        (QWEN, {"response_format": JSON_SCHEMA}, {"response_format": JSON_SCHEMA}),
        (QWEN, {"response_format": {"type": "text"}, "max_tokens": 1}, {}),
        (GPT, {"response_format": JSON_SCHEMA}, {"text": {"format": {"type": "json_schema", **SCHEMA}}}),
        (
            GPT,
            {"reasoning_effort": "low", "verbosity": "low"},
            {"reasoning": {"summary": "auto", "effort": "low"}, "text": {"verbosity": "low"}},
        ),
        (GPT, {"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        (OLD, {"stop": "END"}, {"stop_sequences": ["END"]}),
        (OPUS, {"reasoning_effort": "max"}, {"output_config": {"effort": "max"}}),
        (
            OPUS,
            {"response_format": JSON_SCHEMA},
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA["schema"]}}},
        ),
        (OPUS, {"parallel_tool_calls": True, "user": "ada"}, {"metadata": {"user_id": "ada"}}),
        (OPUS, {"parallel_tool_calls": False}, {"disable_parallel_tool_use": True}),
        (QWEN, {"stop": "\n"}, {"stop": "\n"}),
        (QWEN, {"stop": ["\n\n", "Observation:"]}, {"stop": ["\n\n", "Observation:"]}),
    ],
)
def test_requested_parameters_are_sent_in_the_models_own_words(
    name: str, asked: dict[str, Any], params: dict[str, Any]
) -> None:
    model = shipped(name)
    stated = dict(model.model_params)
    assert faults_of_asked(model, {}, asked) == []
    assert in_body(tune(model, {}, asked).model_params) == stated | params


@pytest.mark.parametrize(
    ("name", "asked", "field"),
    [
        (GPT, {"stop": "END"}, "stop"),
        (GPT, {"seed": 1}, "seed"),
        (GPT, {"temperature": 0.3}, "temperature"),
        (GPT, {"max_tokens": 15}, "max_tokens"),
        (OPUS, {"seed": 1}, "seed"),
        (OPUS, {"temperature": 0.3}, "temperature"),
        (OPUS, {"parallel_tool_calls": 0}, "parallel_tool_calls"),
        (QWEN, {"stop": ["END", ""]}, "stop"),
        (OPUS, {"response_format": {"type": "json_object"}}, "response_format"),
        (OLD, {"stop": [1]}, "stop"),
        (QWEN, {"temperature": 3}, "temperature"),
        (QWEN, {"max_completion_tokens": 0}, "max_completion_tokens"),
        (QWEN, {"response_format": {"type": "json_schema"}}, "response_format"),
        (QWEN, {"reasoning_effort": "much"}, "reasoning_effort"),
    ],
)
def test_what_a_model_cannot_honour_is_named_as_asked(name: str, asked: dict[str, Any], field: str) -> None:
    assert [fault for fault, _ in faults_of_asked(shipped(name), {}, asked)] == [field]


def test_a_request_goes_before_the_agents_settings_and_only_shortens() -> None:
    settings = {"general": {"temperature": 0.2, "max_tokens": 900}}
    assert in_body(tune(shipped(QWEN), settings, {"temperature": 1.5}).model_params)["temperature"] == 1.5
    assert most_output(settings, {"max_tokens": 50}) == 50
    assert most_output(settings, {"max_completion_tokens": 5_000}) == 900
    assert most_output({}, {"max_tokens": 3}) == 3
