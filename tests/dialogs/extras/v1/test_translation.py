"""The rules of ``/v1/messages`` and ``/v1/responses`` on values: what a body becomes, and what is refused."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.extras.v1 import chat
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.forks import title_of
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.messages.answer import error_body
from dialogs.extras.v1.messages.client_tools import CLIENT_TOOLS
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.parsing import ChatRequest, chat_request
from dialogs.extras.v1.responses.request import read
from dialogs.extras.v1.responses.tools import Tools, call_of
from dialogs.extras.v1.wire import SHOWN, Sent
from dialogs.models import ApiKey
from dominds.llm.providers.outgoing import wire_name
from tests.pixels import coded, picture

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
MESSAGE = {"model": "demo", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
RESPONSE = {"model": "demo", "input": "Hi"}
TOOL = {"name": "weather", "input_schema": SCHEMA}


def of_chat(body: dict[str, Any]) -> ChatRequest:
    return chat.read(Sent(body, "", "", cast(ApiKey, None))).request


def of_response(body: dict[str, Any]) -> ChatRequest:
    return read(Sent(body, "", "", cast(ApiKey, None))).request


# -- messages ----------------------------------------------------------------------------------------------------------


def test_blocks_become_messages() -> None:
    reminder = {"type": "text", "text": "<system-reminder>Mind the list.</system-reminder>"}
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]},
    ]
    used = [{"type": "tool_use", "id": name, "name": "weather", "input": {"city": "Rome"}} for name in "ab"]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Let me look."}, *used]},
        {"role": "user", "content": [*results, reminder]},
        {"role": "assistant", "content": [thought, *used]},
        {"role": "user", "content": [*results, {"type": "text", "text": "Never mind."}, reminder]},
    ]
    result = chat_request_of({**MESSAGE, "messages": messages, "tools": [TOOL]})
    assert [(answer.role, answer.text, answer.call_id) for answer in result.messages] == [
        ("user", "Hi", ""),
        ("assistant", "Let me look.", ""),
        ("tool", "one", "a~1"),
        ("tool", f"two\n{reminder['text']}", "b~1"),
        ("assistant", "", ""),
        ("tool", "one", "a"),
        ("tool", "two", "b"),
        ("user", f"Never mind.\n{reminder['text']}", ""),
    ]
    assert result.messages[1].calls == tuple(Call(f"{name}~1", "weather", '{"city":"Rome"}') for name in "ab")


def test_system_messages_stay_where_they_were_said() -> None:
    """But for those of one turn, which are gone with the next one."""
    passing = {"role": "system", "content": "Mind the tide.", "clear_at": "next_user_message"}
    messages = [
        {"role": "user", "content": "Hi"},
        passing,
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Go on"},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {**passing, "content": "Mind the wind."},
    ]
    result = chat_request_of({**MESSAGE, "system": "Be kind.", "messages": messages})
    assert result.instructions == "Be kind."
    assert [(answer.role, answer.text) for answer in result.messages[2:]] == [
        ("user", "Go on"),
        ("system", "Be brief."),
        ("system", "Mind the wind."),
    ]
    items = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    message = of_response({**RESPONSE, "instructions": "Be kind.", "input": items})
    assert (message.instructions, message.messages[0].role, message.messages[0].text) == (
        "Be kind.",
        "system",
        "Be brief.",
    )


def test_images_of_results_stand_behind_the_last_of_them() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": coded(picture())}}
    url = f"data:image/png;base64,{coded(picture())}"
    words = {"type": "text", "text": "A map."}
    used = [{"type": "tool_use", "id": name, "name": "weather", "input": {}} for name in "ab"]
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": "a", "content": [image]},
        {"type": "tool_result", "tool_use_id": "b", "content": [words, image]},
    ]
    started = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": used}]
    alone = chat_request_of({**MESSAGE, "messages": [*started, {"role": "user", "content": results}], "tools": [TOOL]})
    assert [(answer.role, answer.text, len(answer.attached)) for answer in alone.messages[2:]] == [
        ("tool", SHOWN, 0),
        ("tool", "A map.", 0),
        ("user", "", 2),
    ]
    both = [*started, {"role": "user", "content": [*results, {"type": "text", "text": "Where?"}]}]
    with_words = chat_request_of({**MESSAGE, "messages": both, "tools": [TOOL]})
    assert [(answer.text, len(answer.attached)) for answer in with_words.messages[4:]] == [("Where?", 2)]
    output: Any = [{"type": "input_text", "text": "A map."}, {"type": "input_image", "image_url": url}]
    called: list[Any] = [
        {"type": "function_call", "call_id": name, "name": "weather", "arguments": "{}"} for name in "ab"
    ]
    items: list[Any] = [{"type": "function_call_output", "call_id": name, "output": output} for name in "ab"]
    answered = [*called, *items, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "Where?"}]
    message = of_response({**RESPONSE, "input": answered}).messages
    assert [(answer.role, answer.text, len(answer.attached)) for answer in message[1:]] == [
        ("tool", "A map.", 0),
        ("tool", "A map.", 0),
        ("user", "", 2),
        ("assistant", "I see.", 0),
        ("user", "Where?", 0),
    ]


def test_a_deferred_tool_is_offered_once_a_search_has_found_it() -> None:
    """As Claude Code sends them."""
    deferred = [{**TOOL, "name": name, "defer_loading": True} for name in ("list_jobs", "never")]
    asked: dict[str, Any] = {**MESSAGE, "tools": [TOOL, *deferred]}
    assert [tool["name"] for tool in chat_request_of(asked).tools] == ["weather"]
    search = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
    reference = {"type": "tool_reference", "tool_name": "list_jobs"}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [reference]}
    texts = [
        *asked["messages"],
        {"role": "assistant", "content": [search]},
        {"role": "user", "content": [result, {"type": "text", "text": "Tool loaded."}]},
    ]
    outcome = chat_request_of({**asked, "messages": texts})
    assert [tool["name"] for tool in outcome.tools] == ["weather", "list_jobs"]
    assert [answer.text for answer in outcome.messages[2:]] == ["The tool list_jobs is loaded.", "Tool loaded."]


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("<system-reminder>\nMind the list.\n</system-reminder>\n<env>\nbash\n</env>\nFix the  test", "Fix the test"),
        ("<env>bash</env>", "<env>bash</env>"),
        ("<b>Fix</b> it", "it"),
        ("1 < 2", "1 < 2"),
        ("<env>" * 200_000, "<env>" * 11 + "<env…"),
    ],
)
def test_a_title_is_what_the_user_wrote(message: str, title: str) -> None:
    assert title_of(message) == title


@pytest.mark.parametrize(
    ("user_id", "end_user"),
    [
        ("ada", "ada"),
        ("user_1_account__session_2", "user_1_account_"),
        ('{"device_id":"d","session_id":"s"}', '{"device_id":"d"}'),
        (5, ""),
    ],
)
def test_a_message_is_an_end_users_whatever_the_session(user_id: Any, end_user: str) -> None:
    assert chat_request_of({**MESSAGE, "metadata": {"user_id": user_id}}).end_user == end_user


@pytest.mark.parametrize(
    ("choice", "required"),
    [
        ({"type": "auto"}, ""),
        ({"type": "any"}, "weather"),
        ({"type": "tool", "name": "weather"}, "weather"),
        ({"type": "none"}, "-"),
    ],
)
def test_a_tool_choice_of_messages_is_honoured(choice: Any, required: str) -> None:
    assert chat_request_of({**MESSAGE, "tools": [TOOL], "tool_choice": choice}).required_tool == required


@pytest.mark.parametrize(
    ("thinking", "wanted"),
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "adaptive"}, True),
        ({"type": "enabled", "budget_tokens": 1024}, True),
        ({"type": "adaptive", "display": "omitted"}, False),
    ],
)
def test_thinking_is_shown_where_it_was_asked_for(thinking: Any, wanted: bool) -> None:
    assert chat_request_of({**MESSAGE, "thinking": thinking}).include_reasoning == wanted


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages.0.content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages.0.tool_call_id"),
        ({"system": 5}, "system"),
        ({"tools": [{"type": "computer_20251124", "name": "computer"}]}, "tools.0.type"),
        ({"tools": [{"name": "a b"}]}, "tools[0].function.name"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"mcp_servers": [{"url": "https://example.org"}]}, "mcp_servers"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_messages_cannot_have_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        chat_request_of({**MESSAGE, **change})
    assert (refused.value.status, refused.value.param) == (400, param)
    assert error_body(refused.value)["error"]["message"].startswith(f"{param}: ")


def test_a_full_window_is_told_in_the_words_that_clients_know() -> None:
    error = error_body(ApiError(400, "context_length_exceeded", "3 forced attempts failed."))["error"]
    assert (error["type"], error["message"]) == (
        "invalid_request_error",
        "prompt is too long: 3 forced attempts failed.",
    )


# -- responses ---------------------------------------------------------------------------------------------------------


def test_items_become_messages() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "call_id": "a", "name": "read", "namespace": "files", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "two"}]},
    ]
    result = of_response({**RESPONSE, "input": items})
    assert [(answer.role, answer.text, answer.call_id) for answer in result.messages] == [
        ("user", "Hi", ""),
        ("assistant", "Let me look.", ""),
        ("tool", "one", "a"),
        ("tool", "two", "b"),
    ]
    assert result.messages[1].calls == (
        Call("a", "files__read", "{}"),
        Call("b", "patch", '{"input":"*** Begin"}'),
    )


def test_calls_come_back_by_the_names_that_the_client_gave() -> None:
    tools = Tools()
    function = {"type": "function", "name": "read", "parameters": SCHEMA}
    long = {"type": "namespace", "name": "n" * 70, "tools": [function]}
    tools.add(
        [
            function,
            {"type": "namespace", "name": "files", "tools": [function]},
            long,
            {"type": "web_search"},
            {"type": "custom", "name": "patch", "format": {"type": "grammar", "definition": "start: x"}},
        ],
        "tools",
    )
    names = [tool["function"]["name"] for tool in tools.functions]
    assert [len(name) <= 64 for name in names] == [True] * 4
    assert tools.functions[-1]["function"]["description"] == "start: x"
    for name in names:
        item = tools.item(Call("call_1_0", name, '{"input":"x"}'))
        assert call_of(item, "input[0]")["function"] == {"name": name, "arguments": '{"input":"x"}'}
    assert tools.item(Call("a", "patch", "no JSON"))["input"] == "no JSON"


KNOWN_BY_TYPE: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    (
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "shell_call", "action": {"commands": ["ls", "false"], "timeout_ms": 9}},
        {
            "type": "shell_call_output",
            "output": [
                {"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "No.", "outcome": {"type": "exit", "exit_code": 1}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
        "a.txt\nNo.\n[exit code 1]\n[timed out]",
    ),
    (
        {"type": "apply_patch"},
        {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b"}},
        {"type": "apply_patch_call_output", "status": "failed", "output": "There is no a.txt."},
        "failed: There is no a.txt.",
    ),
    (
        {"type": "local_shell"},
        {"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls"]}},
        {"type": "local_shell_call_output", "output": "a.txt"},
        "a.txt",
    ),
]


@pytest.mark.parametrize(("tool", "item", "output", "told"), KNOWN_BY_TYPE, ids=lambda one: str(one)[10:20])
def test_shells_and_patches_run_at_the_client(tool: Any, item: Any, output: Any, told: str) -> None:
    named = {"id" if "local" in tool["type"] else "call_id": "c"}
    items = [{"role": "user", "content": "Hi"}, {**item, "call_id": "c", "status": "completed"}, {**output, **named}]
    result = of_response({**RESPONSE, "tools": [tool], "tool_choice": "required", "input": items})
    assert [(one["name"], result.required_tool) for one in result.tools] == [(tool["type"], tool["type"])]
    call, answer = result.messages[1].calls[0], result.messages[2]
    assert (answer.call_id, answer.text) == ("c", told)
    tools = Tools()
    tools.add([tool], "tools")
    assert tools.item(call) == {**item, "call_id": "c"}


def test_a_shell_elsewhere_than_at_the_client_is_left_out() -> None:
    shell = {"type": "shell", "environment": {"type": "container_auto"}}
    with pytest.raises(ApiError, match="shell in container_auto"):
        of_response({**RESPONSE, "tools": [shell]})
    both = [shell, {"type": "function", "name": "look", "parameters": SCHEMA}]
    assert [tool["name"] for tool in of_response({**RESPONSE, "tools": both}).tools] == ["look"]


@pytest.mark.parametrize("name", ["read file", "", "get_weather<|channel|>", "x" * 300, "查询天气"])
@pytest.mark.parametrize("call_id", ["c", "call_1__thought__" + "Eo8B" * 900])
def test_a_history_may_hold_whatever_a_model_made_up(name: str, call_id: str) -> None:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    used = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
    user = {"role": "user", "content": "Hi"}
    told = [
        chat_request(
            {
                "model": "demo",
                "messages": [
                    user,
                    {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call_id, "content": "There is no such tool."},
                ],
            }
        ),
        chat_request_of(
            {
                **MESSAGE,
                "messages": [
                    user,
                    {"role": "assistant", "content": [used]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id}]},
                ],
            }
        ),
        of_response({**RESPONSE, "input": [user, item, {"type": "function_call_output", "call_id": call_id}]}),
    ]
    for request in told:
        made, result = request.messages[1].calls[0], request.messages[2]
        assert made.id == result.call_id and len(made.id) <= 120
        assert name.startswith(made.name) and len(made.name) <= 120


def test_codex_is_read_as_it_asks() -> None:
    """The shape of its requests for a model that it knows: tools as an item,
    two messages of the user's, no tools elsewhere."""
    script = {
        "type": "custom",
        "name": "exec",
        "description": "Runs it.",
        "format": {"type": "grammar", "definition": "s: x"},
    }
    functions = {"type": "namespace", "name": "functions", "description": "", "tools": [script]}
    texts = [("developer", "Be brief."), ("user", "<environment_context/>"), ("user", "Fix it")]
    lines = [
        {"type": "message", "id": "m", "role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in texts
    ]
    body = {
        "model": "demo",
        "stream": True,
        "input": [{"type": "additional_tools", "id": "at", "role": "developer", "tools": [functions]}, *lines],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "context": "all_turns"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "text": {"verbosity": "low"},
        "client_metadata": {"session_id": "s"},
    }
    result = of_response(body)
    assert [tool["name"] for tool in result.tools] == ["functions__exec"]
    assert (result.instructions, result.store, result.include_reasoning) == ("", False, False)
    assert [(message.role, message.text) for message in result.messages] == [
        ("system", "Be brief."),
        ("user", "<environment_context/>"),
        ("user", "Fix it"),
    ]
    assert result.params == {"reasoning_effort": "medium", "verbosity": "low", "parallel_tool_calls": False}


def test_a_list_of_allowed_tools_offers_these_alone() -> None:
    tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("a", "b")]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]}
    result = of_response({**RESPONSE, "tools": tools, "tool_choice": choice})
    assert ([tool["name"] for tool in result.tools], result.required_tool) == (["b"], "b")


@pytest.mark.parametrize(("mode", "required"), [("auto", ""), ("required", "b")])
def test_a_chat_completion_may_allow_some_of_its_tools(mode: str, required: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    body = {"model": "a", "messages": [{"role": "user", "content": "Hi"}], "tools": tools}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools[1:]}}
    result = chat_request({**body, "tool_choice": choice})
    assert ([tool["name"] for tool in result.tools], result.required_tool) == (["b"], required)
    with pytest.raises(ApiError, match="no tool of this request"):
        chat_request({**body, "tools": tools[:1], "tool_choice": choice})


CALLED = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]}


def test_images_in_results_of_chat_completions_stand_behind_them() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded(picture())}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "Taken."}, image]}
    messages = [{"role": "user", "content": "Look"}, CALLED, result]
    request = of_chat({"model": "a", "messages": messages})
    assert [(one.role, one.text, len(one.attached)) for one in request.messages[2:]] == [
        ("tool", "Taken.", 0),
        ("user", "", 1),
    ]
    assert [call.id for one in request.messages for call in one.calls] == ["c"]
    with pytest.raises(ApiError) as refused:
        of_chat({"model": "a", "messages": [*messages, {"role": "wizard", "content": "x"}]})
    assert refused.value.param == "messages[3].role"


def test_parts_that_are_not_understood_are_refused_by_what_may_stand_in_their_place() -> None:
    video = [{"type": "video_url", "video_url": {"url": "https://a.example"}}]
    for role, words in (("user", "text, images and files are"), ("system", "text is"), ("tool", "text is")):
        with pytest.raises(ApiError, match=f"Only {words} understood, not 'video_url'"):
            of_chat({"model": "a", "messages": [{"role": role, "content": video}]})


def test_counts_of_a_stream_are_asked_for_in_openrouters_words_too() -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    assert of_chat({**body, "usage": {"include": True}}).include_usage
    assert not of_chat({**body, "usage": {"include": False}}).include_usage


def test_the_newest_message_has_a_content_which_may_be_empty() -> None:
    for message in ({"role": "user"}, {"role": "user", "content": None}):
        with pytest.raises(ApiError) as refused:
            of_chat({"model": "a", "messages": [message]})
        assert refused.value.param == "messages[0].content"
    assert of_chat({"model": "a", "messages": [{"role": "user", "content": ""}]}).messages[0].text == ""


def test_whole_numbers_may_be_written_with_a_point() -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 40.0, "temperature": 0.5}
    assert of_chat(body).params == {"max_tokens": 40, "temperature": 0.5}


def test_what_a_search_found_is_told_as_text() -> None:
    found = {
        "type": "search_result",
        "title": "Rome",
        "source": "a.example",
        "content": [{"type": "text", "text": "Warm."}],
    }
    (message,) = chat_request_of({**MESSAGE, "messages": [{"role": "user", "content": [found]}]}).messages
    assert message.text == "Rome\na.example\nWarm."


@pytest.mark.parametrize("length", [65, 120])
def test_a_tool_may_have_the_name_that_its_server_and_its_plugin_give_it(length: int) -> None:
    """Claude Code puts both before the names of a plugin's tools, and Anthropic's API takes 128 characters."""
    name = "mcp__plugin_jenkins__".ljust(length, "x")
    (tool,) = chat_request_of({**MESSAGE, "tools": [{"name": name, "input_schema": SCHEMA}]}).tools
    assert tool["name"] == name
    assert len(wire_name(name)) <= 64


@pytest.mark.parametrize("kind", CLIENT_TOOLS)
def test_tools_of_anthropics_that_clients_run_are_offered_with_their_schema(kind: str) -> None:
    (tool,) = chat_request_of({**MESSAGE, "tools": [{"type": kind, "name": "it"}]}).tools
    assert tool["name"] == "it" and tool["description"] and tool["parameters"]["properties"]["command"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function.name"),
        ({"tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"text": "json"}, "text"),
        ({"prompt": {"id": "p"}}, "prompt"),
    ],
)
def test_what_responses_cannot_have_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        of_response({**RESPONSE, **change})
    assert (refused.value.status, refused.value.param) == (400, param)


# -- both --------------------------------------------------------------------------------------------------------------

scalars = (
    st.none() | st.booleans() | st.integers() | st.sampled_from(["text", "user", "tool_use", "function_call", "a"])
)
fields = st.sampled_from(
    "role type content text id name input arguments output call_id tool_use_id tools function format source".split()
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5), max_leaves=12
)
bodies = st.dictionaries(
    st.sampled_from(
        "messages input system instructions tools tool_choice thinking reasoning text metadata include "
        "output_config".split()
    ),
    anything,
    max_size=4,
)


@given(bodies)
def test_whatever_a_body_holds_it_is_read_or_refused(change: dict[str, Any]) -> None:
    for reader, body in ((chat_request_of, MESSAGE), (of_response, RESPONSE)):
        try:
            assert isinstance(reader({**body, **change}), ChatRequest)
        except ApiError as refused:
            assert refused.status in (400, 404)
