"""The tools in a request: all of them where there is room, and in small windows what the context needs."""

import json
from typing import Any

import pytest

from dialogs.tools.offer import LEAST_NEEDED, briefly, fit_offer
from dialogs.tools.registry import builtin_tools
from dialogs.tools.tool import Tool, ToolArgumentsInvalid, read_arguments
from dominds.llm.messages import ToolSpec
from remediation.budget import ROOMY
from remediation.tokens.counting import counter_for

COMMON = {name: tool for name, tool in builtin_tools().items() if tool.always}
READER = {"read_file": builtin_tools()["read_file"]}
MODELS = ["llama-3.1-8b-instruct", "llama-2-7b", "mistral-7b-instruct", "gpt-4o", "qwen3-14b"]
COUNTER = counter_for("llama-3.1-8b-instruct")


def tokens(tools: tuple[ToolSpec, ...]) -> int:
    return COUNTER.count_tools(tools)


@pytest.mark.parametrize("limit", [5_000, 8_192, ROOMY - 1])
def test_from_5_000_up_all_tools_are_described_whole(limit: int) -> None:
    offered = fit_offer(COMMON, limit, 20, COUNTER)
    assert offered.tools == tuple(tool.spec for tool in COMMON.values()) and offered.left_out == ()


@pytest.mark.parametrize("model", MODELS)
def test_a_limit_that_is_roomy_holds_them_beside_anything(model: str) -> None:
    counter = counter_for(model)
    assert fit_offer(COMMON | READER, ROOMY, 50_000, counter).tools == tuple(
        tool.spec for tool in (COMMON | READER).values()
    )


def test_at_4_096_tools_are_described_briefly_and_none_left_out() -> None:
    offered = fit_offer(COMMON, 4_096, 20, COUNTER)
    assert (len(offered.tools), offered.left_out) == (len(COMMON), ())
    assert 20 + tokens(offered.tools) <= 819 < 20 + tokens(tuple(tool.spec for tool in COMMON.values()))


@pytest.mark.parametrize("limit", range(1_000, 5_000, 250))
@pytest.mark.parametrize("beside", [0, 100, 700, 3_000])
@pytest.mark.parametrize("tools", [COMMON, COMMON | READER], ids=["common", "reader"])
def test_what_can_be_left_out_takes_its_share_at_most(tools: dict[str, Tool], beside: int, limit: int) -> None:
    offered = fit_offer(tools, limit, beside, COUNTER)
    names = [spec.name for spec in offered.tools]
    own = tokens(tuple(tool.spec for tool in tools.values() if not tool.always))
    assert {"clear_mind", "add_reminder"} <= set(names), "guidance and forced clears ask for them"
    assert set(names) | set(offered.left_out) == set(tools)
    assert ("read_file" in names) is ("read_file" in tools), "what the agent was given is never left out"
    at_least = tokens(tuple(briefly(COMMON[name].spec) for name in ("clear_mind", "add_reminder")))
    assert beside + tokens(offered.tools) <= max(limit // 4, beside + own + max(limit // 8, at_least))


def test_a_larger_limit_never_leaves_out_more() -> None:
    left_out = [len(fit_offer(COMMON | READER, limit, 300, COUNTER).left_out) for limit in range(1_000, ROOMY, 100)]
    assert left_out == sorted(left_out, reverse=True)
    assert left_out[0] == len(LEAST_NEEDED) and left_out[-1] == 0


def test_only_an_agent_with_other_tools_can_read_large_results() -> None:
    assert "read_artifact" in fit_offer(COMMON, 2_048, 20, COUNTER).left_out
    assert "read_artifact" not in fit_offer(COMMON | READER, 2_048, 20, COUNTER).left_out


@pytest.mark.parametrize("tool", COMMON.values(), ids=lambda tool: tool.name)
def test_a_brief_description_names_the_same_arguments(tool: Tool) -> None:
    brief = briefly(tool.spec)
    assert (brief.name, brief.description) == (tool.name, tool.spec.description)
    assert brief.parameters["required"] == tool.spec.parameters["required"]
    assert list(brief.parameters["properties"]) == list(tool.spec.parameters["properties"])
    assert tokens((brief,)) < tokens((tool.spec,))


def test_calls_are_checked_by_the_whole_schema() -> None:
    with pytest.raises(Exception, match="minimum"):
        read_arguments(COMMON["read_archive"], '{"seq": 0}')


TEXTS = [
    ({"type": "array", "items": {"type": "object"}}, '[{"step": "a"}]', [{"step": "a"}]),  # Kimi, GLM, vLLM
    ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ({"type": "integer"}, "5", 5),
    ({"type": "number"}, "5", 5),
    ({"type": "boolean"}, "true", True),
    ({"anyOf": [{"type": "array"}, {"type": "null"}]}, "[1]", [1]),
    ({"type": ["integer", "null"]}, "5", 5),
    ({"type": "string"}, "5", "5"),
    ({"type": ["string", "integer"]}, "5", "5"),
    ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]", "[1]"),
    ({}, "[1]", "[1]"),
    ({"anyOf": [{"type": "array"}, {}]}, "[1]", "[1]"),
]


@pytest.mark.parametrize(("schema", "given", "read"), TEXTS)
def test_an_argument_written_as_text_is_read_by_its_type(schema: Any, given: str, read: Any) -> None:
    inside = {"type": "object", "properties": {"each": {"type": "array", "items": schema}, "one": schema}}
    tool = Tool(ToolSpec("plan", "", inside))
    assert read_arguments(tool, json.dumps({"each": [given], "one": given})) == {"each": [read], "one": read}


def test_a_text_of_no_type_of_its_argument_is_refused() -> None:
    tool = Tool(ToolSpec("plan", "", {"type": "object", "properties": {"steps": {"type": "array"}}}))
    for given in ("not JSON", "5", '{"a": 1}'):
        with pytest.raises(ToolArgumentsInvalid, match="steps"):
            read_arguments(tool, json.dumps({"steps": given}))
