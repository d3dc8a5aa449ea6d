"""Tools of real MCP servers, one over standard input and output, one over HTTP."""

import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dialogs.context.tool_calls import Result
from dialogs.models import Agent
from dialogs.tools import mcp, mcp_client
from dialogs.tools.mcp_config import McpFailed, current_config, read_config
from dialogs.tools.mcp_session import Place
from dialogs.tools.registry import builtin_tools, tools_of
from dialogs.tools.tool import Invocation, Progress, Stopped, Tool
from dominds import budgets
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send
from tests.dialogs.tools.conftest import Minds
from tests.dialogs.tools.mcp_http import STDIO, mcp_over_http
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db  # which servers were added on the page is a row


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    with mcp_over_http() as url:
        yield url
        mcp_client.close()  # the server waits for those who listen to it


def call(tool: Tool, **arguments: Any) -> Result:
    assert tool.outside is not None
    return tool.outside(Invocation(uuid4(), "call", arguments))


def test_a_stdio_server_offers_its_tools_under_its_name(minds: Minds) -> None:
    minds(desk=STDIO)
    tools = mcp.tools_named("mcp:desk")
    assert {"desk_echo", "desk_remember", "desk_book_trip_now", "desk_fail"} <= set(tools)
    assert list(tools) == sorted(tools)
    assert tools["desk_echo"].spec.description == "Says it again."
    assert call(tools["desk_echo"], text="hällo") == Result("hällo")
    assert call(tools["desk_book_trip_now"]) == Result("booked")


def test_one_tool_of_a_server_can_be_offered_alone(minds: Minds) -> None:
    minds(desk=STDIO)
    assert list(mcp.tools_named("mcp:desk/book.trip now")) == ["desk_book_trip_now"]
    assert mcp.tools_named("mcp:desk/missing") == {}


def test_an_agent_is_offered_what_it_lists(minds: Minds) -> None:
    minds(desk=STDIO)
    offered = tools_of(Agent(id="a", tools=["mcp:desk/echo", "mcp:nobody"]))
    assert set(offered) == {tool.name for tool in builtin_tools().values() if tool.always} | {"desk_echo"}


def test_only_tools_that_say_so_are_repeatable(minds: Minds) -> None:
    minds(desk=STDIO)
    tools = mcp.tools_named("mcp:desk")
    assert [tools[f"desk_{name}"].repeatable for name in ("echo", "remember", "wait")] == [True, True, False]


def test_a_tool_that_fails_answers_with_its_reason(minds: Minds) -> None:
    minds(desk=STDIO)
    answer = call(mcp.tools_named("mcp:desk")["desk_fail"])
    assert answer.failed
    assert "no such ticket" in answer.text


def test_a_large_result_is_cut_with_a_note(minds: Minds) -> None:
    minds(desk=STDIO)
    answer = call(mcp.tools_named("mcp:desk")["desk_big"], kilobytes=300)
    assert len(answer.text.encode()) < mcp.MAX_RESULT_BYTES + 200
    assert answer.text.endswith("[cut: 307,200 bytes in all, the first 204,800 are shown]")


def test_a_picture_is_named_and_not_shown(minds: Minds) -> None:
    minds(desk=STDIO)
    assert call(mcp.tools_named("mcp:desk")["desk_picture"]) == Result("[image, image/png, 102 bytes: not shown]")


def test_a_stdio_server_gets_its_variables_and_no_others(minds: Minds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "a-token-of-the-desk")
    minds(desk={**STDIO, "env": {"TOKEN": {"env": "DESK_TOKEN"}, "MODE": "quiet"}})
    variable = mcp.tools_named("mcp:desk")["desk_variable"]
    results = [call(variable, name=name).text for name in ("TOKEN", "MODE", "SECRET_KEY", "DESK_TOKEN")]
    assert results == ["a-token-of-the-desk", "quiet", "unset", "unset"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_answer_is_read_up_to_its_bound(minds: Minds, http_url: str, transport: str) -> None:
    minds(web=STDIO if transport == "stdio" else {"url": http_url})
    tool = mcp.tools_named("mcp:web")["web_big"]
    assert not call(tool, kilobytes=2_000).failed
    with pytest.raises(McpFailed, match=budgets.TOOL_BYTES.setting):
        call(tool, kilobytes=2 * budgets.TOOL_BYTES.most // 1_000)
    assert not call(tool, kilobytes=1).failed, "the next call opens a new session"


def test_a_program_that_writes_one_endless_line_is_ended(minds: Minds, tmp_path: Path) -> None:
    """It held as much of the worker's memory as it wrote within the time for a first answer."""
    pid, before = tmp_path / "pid", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    note = f"import os, sys; open({str(pid)!r}, 'w').write(str(os.getpid()))"
    endless = f"{note}\nwhile True: sys.stdout.write('x' * 65536)"
    minds(desk={"command": sys.executable, "args": ["-c", endless]})
    with pytest.raises(McpFailed, match=rf"answered with more than .* {budgets.TOOL_BYTES.setting} sets this limit"):
        mcp_client.list_tools(current_config().servers["desk"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * budgets.TOOL_BYTES.most / 1024
    eventually(lambda: not Path(f"/proc/{pid.read_text()}").exists())


def test_an_http_server_is_asked_with_its_headers(minds: Minds, http_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", "the-key-of-the-web")
    minds(web={"url": http_url, "apiKeyEnvVar": "WEB_KEY", "headers": {"X-Team": "red"}})
    header = mcp.tools_named("mcp:web")["web_header"]
    assert call(header, name="Authorization").text == "Bearer the-key-of-the-web"
    assert call(header, name="X-Team").text == "red"


@pytest.mark.parametrize(
    "server",
    [
        {"command": "/no/such/program"},
        {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]},
        {"url": "http://127.0.0.1:9/mcp"},
        {**STDIO, "env": {"TOKEN": {"env": "NOT_SET_ANYWHERE"}}},
    ],
)
def test_a_server_that_is_down_gives_no_tools_and_breaks_nothing(minds: Minds, server: dict[str, Any]) -> None:
    minds(gone=server, desk=STDIO)
    offered = tools_of(Agent(id="a", tools=["mcp:gone", "mcp:desk/echo"]))
    assert "desk_echo" in offered
    assert not any(name.startswith("gone_") for name in offered)


def test_a_server_that_is_down_is_not_asked_at_every_generation(minds: Minds) -> None:
    minds(gone={"command": sys.executable, "args": ["-c", "import time; time.sleep(1)"]})
    mcp.tools_named("mcp:gone")
    started = time.monotonic()
    assert mcp.tools_named("mcp:gone") == {}
    assert time.monotonic() - started < 0.5


def test_servers_that_are_silent_are_waited_for_together(minds: Minds) -> None:
    """None of them says anything until each was asked."""
    with ExitStack() as opened:
        hosts = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        all_asked = threading.Barrier(len(hosts), timeout=10)

        def hang_up(host: socket.socket) -> None:
            host.settimeout(20)
            asking, _ = host.accept()
            with asking:
                all_asked.wait()

        minds(
            **{
                f"silent{index}": {"url": f"http://127.0.0.1:{host.getsockname()[1]}/"}
                for index, host in enumerate(hosts)
            }
        )
        threads = opened.enter_context(ThreadPoolExecutor(len(hosts)))
        waiting = [threads.submit(hang_up, host) for host in hosts]
        offered = tools_of(Agent(id="a", tools=[f"mcp:silent{index}" for index in range(len(hosts))]))
        assert not any(name.startswith("silent") for name in offered)
        for silent in waiting:
            silent.result()


def test_a_server_that_died_is_started_again(minds: Minds) -> None:
    minds(desk=STDIO)
    tools = mcp.tools_named("mcp:desk")
    with pytest.raises(McpFailed, match="desk"):
        call(tools["desk_die"])
    assert call(mcp.tools_named("mcp:desk")["desk_echo"], text="back").text == "back"


def test_a_call_that_takes_too_long_fails_and_leaves_others_alone(minds: Minds) -> None:
    minds(desk=STDIO)
    echo = mcp.tools_named("mcp:desk")["desk_echo"]
    place = Place(current_config().servers["desk"])
    with pytest.raises(McpFailed, match=r"within 0\.5 seconds"):
        mcp_client.call_tool(place, "wait", {"seconds": 2}, seconds=0.5)
    assert call(echo, text="still here").text == "still here"


def test_progress_is_reported_while_a_tool_runs_until_stopped(minds: Minds) -> None:
    minds(desk=STDIO)
    tools = mcp.tools_named("mcp:desk")
    lines: list[str] = []
    progress = Progress(lines.append)
    assert tools["desk_count"].outside is not None
    counted = tools["desk_count"].outside(Invocation(uuid4(), "call", {"steps": 3, "seconds": 0.01}, progress))
    assert counted == Result("counted to 3")
    assert len(lines) == 3 and "step 3" in lines[-1]
    long = Progress()
    threading.Timer(0.5, long.stop).start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        tools["desk_count"].outside(Invocation(uuid4(), "call", {"steps": 1, "seconds": 30}, long))
    assert time.monotonic() - started < 5
    assert call(tools["desk_echo"], text="still here").text == "still here"


# Names and schemas


def test_names_are_accepted_by_every_provider_and_never_clash() -> None:
    taken: set[str] = set()
    for tool in ("a.b", "a_b", "a b", "x" * 90, "x" * 91):
        name = mcp.exposed_name("server", tool, taken)
        assert name not in taken
        assert len(name) <= 64
        assert name.replace("_", "").replace("-", "").isalnum()
        taken.add(name)


@pytest.mark.parametrize(
    ("schema", "usable"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, True),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/secret"}}}, False),
        ({"type": "banana"}, False),
    ],
)
def test_a_schema_that_cannot_be_checked_is_found_beforehand(schema: dict[str, Any], usable: bool) -> None:
    assert (mcp.schema_problem(schema) == "") is usable


# The file


def test_bad_entries_of_the_file_are_reported_and_the_others_work(tmp_path: Path) -> None:
    file = tmp_path / "mcp.yaml"
    file.write_text(
        """
version: 1
server: {}
servers:
  good: {command: uvx, args: [x, 1], transport: stdio}
  "bad id!": {command: x}
  both: {command: x, url: "http://h/mcp"}
  neither: {args: [a]}
  address: {url: "ftp://h"}
  secret: {url: "https://h/mcp", apiKeyEnvVar: "sk-live 123", headers: {"X Bad": "1", X-List: [1]}}
  odd: {command: x, description: red}
"""
    )
    config = read_config(file)
    assert sorted(config.servers) == ["good", "odd", "secret"]
    assert config.servers["good"].args == ("x", "1")
    assert {problem.path for problem in config.problems} == {
        "server",
        "servers.bad id!",
        "servers.both",
        "servers.neither",
        "servers.address.url",
        "servers.secret.apiKeyEnvVar",
        "servers.secret.headers.X Bad",
        "servers.secret.headers.X-List",
        "servers.odd.description",
    }
    assert {problem.file for problem in config.problems} == {str(file)}
    assert not any("sk-live" in str(problem) for problem in config.problems)


def test_a_missing_file_means_no_servers(tmp_path: Path) -> None:
    assert read_config(tmp_path / "mcp.yaml").problems == ()


# What restricts a server


@pytest.mark.parametrize(
    ("tools", "offered"),
    [
        ({"whitelist": ["echo", "re*"]}, {"echo", "remember"}),
        ({"blacklist": ["*"]}, set()),
        ({"blacklist": ["*"], "whitelist": ["echo"]}, {"echo"}),  # a whitelist wins over a blacklist
        ({"blacklist": ["e*", "[a-z]*"], "whitelist": ["fail"]}, {"remember", "fail"}),
        ({"whitelist": [], "blacklist": []}, {"echo", "remember", "fail"}),
        ({"whitelist": ["ech"]}, set()),  # a pattern fits the whole name
    ],
)
def test_lists_say_which_tools_there_are(minds: Minds, tools: dict[str, Any], offered: set[str]) -> None:
    minds(desk={**STDIO, "tools": tools})
    results = {name.removeprefix("desk_") for name in mcp.tools_named("mcp:desk")}
    assert results & {"echo", "remember", "fail"} == offered
    assert bool(mcp.tools_named("mcp:desk/echo")) is ("echo" in offered)


RESTRICTED = [
    {"enabled": False},
    {"enabled": "no"},
    {"enabled": None},
    {"tools": {"whitelist": "echo"}},
    {"tools": {"whitelist": None}},
    {"tools": {"whitelist": [7]}},
    {"tools": {"allow": ["echo"]}},
    {"tools": ["echo"]},
    {"tools": None},
    {"transform": {"prefix": "x_"}},
    {"transform": [{"rename": "x"}]},
    {"whitelist": ["echo"]},
    {"disabled": True},
    {"allowedTools": ["echo"]},
]


@pytest.mark.parametrize("restriction", RESTRICTED, ids=str)
def test_a_restriction_that_is_not_understood_switches_the_server_off(
    minds: Minds, restriction: dict[str, Any]
) -> None:
    minds(desk={**STDIO, **restriction}, other=STDIO)
    config = current_config()
    assert list(config.servers) == ["other"]
    assert config.off["desk"]
    reported = [problem for problem in config.problems if "the server is off" in problem.reason]
    assert bool(reported) is (restriction != {"enabled": False})
    assert mcp.tools_named("mcp:desk") == {}
    assert mcp.problem_with("mcp:desk") == ""  # it is known, so agents that list it are not wrong


def test_a_restriction_that_stands_twice_is_not_understood(tmp_path: Path) -> None:
    file = tmp_path / "mcp.yaml"
    file.write_text("servers: {desk: {command: x, tools: {blacklist: [a], blacklist: [b]}}}")
    assert "desk" in read_config(file).off


def test_tools_are_renamed_as_the_file_says(minds: Minds) -> None:
    minds(desk={**STDIO, "transform": [{"prefix": {"remove": "re", "add": "a_"}}, {"prefix": "my_"}, {"suffix": "_1"}]})
    tools = mcp.tools_named("mcp:desk")
    assert {"my_a_member_1", "my_a_echo_1"} <= set(tools)
    assert not [name for name in tools if "book" in name]  # "my_book.trip now_1" is no name that providers accept
    assert call(tools["my_a_echo_1"], text="hi") == Result("hi")


# Groups of tools


def test_an_agent_gets_the_tools_of_its_toolsets(minds: Minds) -> None:
    minds(desk={**STDIO, "tools": {"whitelist": ["echo"]}}, closed={**STDIO, "enabled": False})
    always = {tool.name for tool in builtin_tools().values() if tool.always}

    def offered(*toolsets: str) -> set[str]:
        return set(tools_of(Agent(id="a", toolsets=list(toolsets)))) - always

    files = {"read_file", "list_files"}
    assert offered() == set()
    assert offered("ws_read") == offered("workspace") == files
    assert offered("desk", "closed") == {"desk_echo"}
    assert offered("*") == {"desk_echo"} | files
    assert offered("*", "!ws_read") == {"desk_echo"}
    assert offered("desk", "!desk") == set()


# In a dialog


@pytest.mark.django_db(transaction=True)
def test_a_dialog_uses_a_servers_tool_and_goes_on(minds: Minds, script: Script) -> None:
    asked = {"name": "desk_echo", "arguments": {"text": "from the desk"}}
    script({"match": "look", "tool_calls": [asked]}, {"text": "I have looked."})
    minds(desk=STDIO)
    dialog = send(make_dialog(tools=["mcp:desk"]), "look")
    results = list(dialog.turns.order_by("position").values_list("role", "status", "text"))
    assert results[2:] == [("tool", "ok", "from the desk"), ("assistant", "complete", "I have looked.")]
