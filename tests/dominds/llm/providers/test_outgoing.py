"""What goes out is in the form that providers take, whatever names, ids, schemas and histories come in."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dominds.llm.messages import Message, Request, Role, ToolCall, ToolSpec, are_plain
from dominds.llm.models.model import Echo, Form, ModelInfo
from dominds.llm.providers import anthropic_messages, openai_chat, openai_responses
from dominds.llm.providers.kinds import kind_named
from dominds.llm.providers.outgoing import NINE, fit, fit_history, fit_tools, restore_calls, wire_id, wire_name
from dominds.llm.providers.schemas import Unfit, fit_schema
from tests.dominds.llm.asking import HELLO, info, owner
from tests.doubles import chat_rules, messages_content, messages_family, messages_rules, responses_rules
from tests.doubles.rules import RequestRefused, check

NAMES = [
    "read file",
    "browser.tabs.open",
    "",
    "get_weather<|channel|>commentary",
    "x" * 80,
    "查询天气",
    "ok\n",
    "\ud800",
]
KEY = {"authorization": "Bearer k", "x-api-key": "k"}


def bodies(request: Request) -> Iterator[Any]:
    """The request in each dialect, as its double reads it."""
    chat = json.loads(openai_chat.request_body(request, owner(), info(kind_named("openai-compatible"))))
    yield chat_rules.ChatRequest(chat, KEY, chat_rules.Family("any", "a-model"), "k", "a-model")
    sent = openai_responses.request_body(request, owner(), info(kind_named("openai")))
    yield responses_rules.ResponsesRequest(sent, KEY, responses_rules.FAMILIES["openai-5.6"], "k", sent["input"])
    sent = anthropic_messages.request_body(request, owner(), info(kind_named("anthropic"), model_params=SAMPLED))
    headers = {**KEY, "anthropic-version": "2026-10-21"}
    yield messages_family.MessagesRequest(sent, headers, messages_family.BUDGET)


SAMPLED = {"temperature": 0.5, "top_p": 1}
RULES = {
    chat_rules.ChatRequest: chat_rules.PROTOCOL,
    responses_rules.ResponsesRequest: (*responses_rules.SHAPE, *responses_rules.ITEM_RULES),
    messages_family.MessagesRequest: (*messages_rules.SHAPE, *messages_content.CONTENT),
}


def is_taken(request: Request) -> None:
    for sent in bodies(request):
        check(RULES[type(sent)], sent)


def conversation(*calls: ToolCall) -> tuple[Message, ...]:
    results = [Message(Role.TOOL, "There is no such tool.", tool_call_id=call.id) for call in calls]
    return (Message(Role.USER, "hi"), Message(Role.ASSISTANT, "", calls), *results, Message(Role.USER, "Go on"))


@pytest.mark.parametrize("name", NAMES)
def test_a_made_up_name_in_the_history_is_taken_everywhere(name: str) -> None:
    is_taken(Request("a-model", "", conversation(ToolCall("call_1_1", name, "{}"))))


names = st.text(max_size=90) | st.sampled_from([*NAMES, "add_reminder", wire_name("read file")])
ids = st.text(max_size=60) | st.sampled_from(["", "a", "call_1", "functions.read:0"])
calls = st.builds(ToolCall, ids, names, st.sampled_from(["{}", "", '{"a":1}', "{half"]))
messages = st.one_of(
    st.builds(Message, st.just(Role.USER), st.sampled_from(["hi", "Go on"])),
    st.builds(Message, st.just(Role.ASSISTANT), st.sampled_from(["", "Ok"]), st.lists(calls, max_size=3).map(tuple)),
    st.builds(Message, st.just(Role.TOOL), st.sampled_from(["", "out"]), tool_call_id=ids),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
keywords = st.sampled_from(
    "type properties required items anyOf oneOf allOf not enum const pattern $ref $defs additionalProperties minimum "
    "exclusiveMinimum description format prefixItems patternProperties if default $schema maxLength title".split()
)
schemas: st.SearchStrategy[Any] = st.recursive(
    st.dictionaries(
        keywords,
        values | st.sampled_from(["object", "array", "string", ["object", "null"], "#", "#/$defs/a", "^(?=a)b$"]),
        max_size=4,
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "null", ["string", "array"]])},
        optional={
            "enum": st.lists(st.sampled_from([None, 1, "1", True, [], "1"]), max_size=3),
            "additionalProperties": inner | st.just({}),
            "properties": st.dictionaries(st.text(max_size=5), inner, max_size=3),
            "items": inner | st.lists(inner, max_size=2),
            "anyOf": st.lists(inner | st.just({"not": {}}), max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.just("a"), inner, max_size=1),
            "$ref": st.sampled_from(["#", "#/$defs/a", "https://elsewhere/x"]),
            "required": st.lists(st.text(max_size=5), max_size=2),
        },
    ),
    max_leaves=6,
)
tools = st.builds(ToolSpec, names, st.text(max_size=1500), schemas, st.booleans())


@given(history=st.lists(messages, max_size=8), offered=st.lists(tools, max_size=4))
def test_whatever_comes_in_no_dialect_is_refused(history: list[Message], offered: list[ToolSpec]) -> None:
    is_taken(Request("a-model", "Be brief.", (*history, Message(Role.USER, "Answer.")), tuple(offered)))


def test_a_history_that_begins_with_an_answer_is_taken() -> None:
    greeting = Message(Role.ASSISTANT, "Welcome aboard.")
    is_taken(Request("a-model", "", (greeting, Message(Role.USER, "Answer."))))


@given(st.lists(messages, max_size=8))
def test_a_fit_history_stays_as_it_is(history: list[Message]) -> None:
    for form in (Form(), Form(nine=True), Form(alternates=True)):
        once = fit_history(tuple(history), form)
        assert fit_history(once, form) is once or form.alternates


@given(st.lists(messages, max_size=8))
def test_a_plain_history_need_not_be_looked_at(history: list[Message]) -> None:
    plain = tuple(message for message in history if are_plain((message,)))
    assert fit_history(plain, Form()) is plain
    request = Request("a-model", "", plain)
    for form in (Form(), Form(alternates=True)):
        assert fit(replace(request, is_plain=True), form).messages == fit(request, form).messages


@given(st.lists(messages, max_size=8))
def test_no_word_of_a_history_is_lost(history: list[Message]) -> None:
    sent = "\n".join(message.text for message in fit_history(tuple(history), Form()))
    assert all(message.text in sent for message in history)


@given(first=st.text(max_size=90), second=st.text(max_size=90))
def test_two_names_and_two_ids_stay_two(first: str, second: str) -> None:
    assert (wire_name(first) == wire_name(second)) is (first == second)
    assert (wire_id(first, Form()) == wire_id(second, Form())) is (first == second)
    assert wire_name(wire_name(first)) == wire_name(first)


@given(ids)
def test_mistrals_ids_have_nine_letters_and_digits(call_id: str) -> None:
    assert NINE.fullmatch(wire_id(call_id, Form(nine=True)))


@pytest.mark.parametrize("model_id", ["mistral-medium-3.5", "devstral-2", "open-mixtral-8x7b", "magistral-small"])
def test_a_mistral_model_gets_ids_in_its_own_form(model_id: str) -> None:
    model = ModelInfo("p", model_id, "M", kind_named("openai-compatible"), "http://127.0.0.1:1/v1", echo=Echo.NEVER)
    both = ToolCall("call_12_1", "read", "{}"), ToolCall("call_12_2", "read", "{}")
    request = Request(model_id, "", conversation(*both))
    _, answer, first, second, _ = json.loads(openai_chat.request_body(request, owner(), model))["messages"]
    sent = [call["id"] for call in answer["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == sent
    assert all(map(NINE.fullmatch, sent)) and len(set(sent)) == 2


@pytest.mark.parametrize(
    ("model_id", "url", "keeps"),
    [
        ("kimi-k2.7-code", "", True),
        ("moonshotai/Kimi-K3", "", True),
        ("m", "https://api.moonshot.ai/v1", True),
        ("m", "", False),
    ],
)
def test_kimi_gets_its_numbered_ids_back(model_id: str, url: str, keeps: bool) -> None:
    model = replace(info(kind_named("openai-compatible")), model_id=model_id, base_url=url)
    numbered, odd = ToolCall("functions.read:12", "read", "{}"), ToolCall("read file", "read", "{}")
    request = Request("m", "", conversation(numbered, odd))
    sent = json.loads(openai_chat.request_body(request, owner(), model))["messages"]
    assert (sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == numbered.id) is keeps
    assert sent[1]["tool_calls"][1]["id"] == sent[3]["tool_call_id"] != odd.id


def test_results_name_their_tool_for_google_alone() -> None:
    request = Request("m", "", conversation(ToolCall("a", "read", "{}")))
    for echo, name in ((Echo.SIGNATURES, "read"), (Echo.SENT, None)):
        body = openai_chat.request_body(request, owner(), info(kind_named("openai-compatible"), echo=echo))
        assert json.loads(body)["messages"][2].get("name") == name


@pytest.mark.parametrize(
    "written",
    [
        *("read_it<|channel|>commentary", "read_it<|constrain|>json", "functions.read_it", "functions.read_it:3"),
        *("functions_read_it_3", "default_api:read_it", " read_it"),
    ],
)
def test_a_tool_is_found_beside_what_models_leak_into_its_name(written: str) -> None:
    offered = [ToolSpec("read_it", "", {}), ToolSpec("it", "", {})]
    assert [call.name for call in restore_calls([ToolCall("a", written, "{}")], offered)] == ["read_it"]
    assert restore_calls([ToolCall("a", f"x{written}", "{}")], offered)[0].name == f"x{written}"


@pytest.mark.parametrize("name", ["parallel", "multi_tool_use.parallel"])
def test_calls_within_a_tool_that_nobody_offered_are_made(name: str) -> None:
    """OpenAI's models use it now and then (vercel/ai#19067)."""
    offered = [ToolSpec("read_it", "", {}), ToolSpec("it", "", {})]
    uses = [{"recipient_name": f"functions.{each}", "parameters": {"at": 1}} for each in ("it", "read_it")]
    wrapped = ToolCall("a", name, json.dumps({"tool_uses": uses}))
    made = [ToolCall("a", "it", '{"at":1}'), ToolCall("", "read_it", '{"at":1}')]
    assert restore_calls([wrapped], offered) == made
    unknown = {"tool_uses": [*uses, {"recipient_name": "gone", "parameters": {}}]}
    odds: tuple[Any, ...] = (unknown, {"tool_uses": 1}, [], {})
    for odd in odds:
        call = ToolCall("a", name, json.dumps(odd))
        assert restore_calls([call], offered) == [call]
    own = replace(wrapped, name=wire_name(name))
    assert restore_calls([own], [ToolSpec(name, "", {}), *offered]) == [wrapped]


def test_blank_answers_are_not_sent() -> None:
    history = (Message(Role.USER, "hi"), Message(Role.ASSISTANT, " \n"), Message(Role.USER, "Go on"))
    assert fit_history(history, Form()) == (history[0], history[2])


def test_what_comes_back_has_the_tools_own_names_and_keys() -> None:
    schema = {"type": "object", "properties": {"$filter[0]": {"type": "object", "properties": {"名": {}}}}}
    tool = ToolSpec("search.all", "Find.", schema)
    (sent,), left_out = fit_tools((tool,), Form(plain_keys=True))
    (outer,) = sent.parameters["properties"]
    (inner,) = sent.parameters["properties"][outer]["properties"]
    assert not left_out
    call = ToolCall("a", sent.name, json.dumps({outer: {inner: "Ada"}}))
    assert restore_calls([call], (tool,)) == [ToolCall("a", "search.all", '{"$filter[0]":{"名":"Ada"}}')]
    assert restore_calls([ToolCall("b", "unknown", "{half")], (tool,)) == [ToolCall("b", "unknown", "{half")]


CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("parameters", "is_strict"),
    [
        ({"type": "object", "properties": {}}, True),
        ({**CITY, "properties": {"at": CITY}, "additionalProperties": False}, True),
        ({**CITY, "additionalProperties": True}, False),
        ({**CITY, "properties": {"more": {"type": "object"}}}, False),
    ],
)
def test_a_strict_tool_stays_strict_and_is_closed(parameters: dict[str, Any], is_strict: bool) -> None:
    form = info(kind_named("openai")).kind.form
    (tool,), _ = fit_tools((ToolSpec("a", "", parameters, strict=True),), form)
    assert tool.strict is is_strict
    if is_strict:
        objects = [tool.parameters, *(part for part in tool.parameters["properties"].values() if "properties" in part)]
        assert [part["additionalProperties"] for part in objects] == [False] * len(objects)


def test_an_unfit_tool_is_left_out_and_the_others_are_offered() -> None:
    good = ToolSpec("good", "Fine.", {"type": "object", "properties": {}})
    unfit = [
        ToolSpec("listing", "", {"type": "array"}),
        ToolSpec("elsewhere", "", {"$ref": "https://host/x"}),
        ToolSpec("good", "Again.", {"type": "object", "properties": {}}),
    ]
    with capture_logs() as logs:
        sent = fit(Request("m", "", HELLO.messages, (good, *unfit), force="listing"), Form(most_tools=2))
    assert sent.tools == (good,) and sent.force is None
    assert [entry["tool"] for entry in logs if entry["event"] == "tool_left_out"] == ["listing", "elsewhere", "good"]
    assert "'listing' is not offered to the model" in logs[0]["reason"]


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        (
            {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {"type": "object", "properties": {"a": {}, "b": {}}},
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        (
            {"type": "object", "properties": {"next": {"$ref": "#"}}},
            {"type": "object", "properties": {"next": {"type": "object", "properties": {"next": {"type": "object"}}}}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}},
            {"type": "object", "properties": {"a": {"type": "string", "description": "It matches (?=x)y"}}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a", "gone"]},
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]},
        ),
    ],
)
def test_schemas_get_the_shape_that_all_take(schema: Any, sent: Any) -> None:
    assert fit_schema(schema) == sent


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"type": ["string", "array"]}, {"type": ["string", "array"], "items": {}}),
        ({"type": "null", "enum": ["A"]}, {"type": "null"}),
        ({"type": "string", "enum": ["A", None, "A"]}, {"type": "string", "enum": ["A"]}),
        ({"type": "array", "enum": [0, 1], "items": {}}, {"type": "array", "items": {}, "description": "One of [0,1]"}),
        ({"anyOf": [{"not": {}}, {"type": "string"}, False]}, {"anyOf": [{"type": "string"}]}),
        ({"not": {}, "anyOf": [{"not": {}}]}, {}),
        ({"type": "object", "additionalProperties": {}}, {"type": "object", "additionalProperties": True}),
        ({"enum": [1, 1.5, True, None]}, {"enum": [1, 1.5, True, None]}),
        ({"$ref": "https://host/x", "description": "Any"}, {"description": "Any"}),
        ({"type": "STRING"}, {"type": "string"}),
    ],
)
def test_parts_of_schemas_that_servers_refuse_are_mended(part: Any, sent: Any) -> None:
    assert fit_schema({"properties": {"a": part}})["properties"]["a"] == sent


@pytest.mark.parametrize("schema", [True, [], "object", {"type": "string"}, {"$ref": "file:///etc/passwd"}])
def test_what_is_no_schema_of_arguments_is_unfit(schema: Any) -> None:
    with pytest.raises(Unfit):
        fit_schema(schema)


def test_what_is_fit_goes_out_as_it_is() -> None:
    request = Request("a-model", "", conversation(ToolCall("call_1_1", "read", "{}")), (ToolSpec("a", "", FITTING),))
    assert fit(request, Form(plain_keys=True, anchored=True)) is request


FITTING = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where", "pattern": "^a+$"},
        "n": {"type": ["integer", "null"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def test_the_doubles_refuse_what_is_sent_as_it_came() -> None:
    request = next(bodies(Request("a-model", "", conversation(ToolCall("call_1_1", "read", "{}")))))
    request.body["messages"][1]["tool_calls"][0]["function"]["name"] = "read file"
    with pytest.raises(RequestRefused, match="does not match pattern"):
        check(chat_rules.PROTOCOL, request)
