"""Servers whose answers are not as the protocol has them lose nothing of what they said."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.tools import mcp
from dialogs.tools.mcp_config import McpFailed, current_config, left_out_of
from dialogs.tools.mcp_lenient import readable_content, readable_introduction, readable_tools
from dialogs.tools.mcp_session import MOST_LISTENINGS
from dialogs.tools.tool import AsksPerson, Invocation, Tool, ToolArgumentsInvalid, read_arguments
from tests.dialogs.tools.conftest import Minds
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db
EVENTS = "text/event-stream"
ODD = Path(__file__).with_name("odd_mcp_server.py")


@pytest.fixture
def odd(minds: Minds, tmp_path: Path) -> dict[str, Any]:
    """Name the odd server ``odd``; ``notes`` is the file of its calls."""
    server = {"command": sys.executable, "args": [str(ODD), str(tmp_path / "notes")]}
    minds(odd=server)
    return server


def call(name: str, dialog: UUID | None = None, **arguments: Any) -> str:
    tool = mcp.tools_named("mcp:odd")[f"odd_{name}"]
    assert tool.outside is not None
    return tool.outside(Invocation(dialog or uuid4(), "call", arguments)).text


# What a tool did


TOLD = {
    "text_alone": "x is 7",
    "other_shape": "x is seven",
    "summary": '2 projects.\n{"names":["ALPHA","BETA"]}',
    "data_alone": '{"status":"there"}',
    "large_number": '{"id":100000000000000000000}',
    "blank_text": '{"status":"there"}',
    "list_as_data": '["ALPHA","BETA"]',
    "unknown_block": '{"type":"table","rows":[[1,"ALPHA"]]}\none row',
    "plain_string": "said without a block",
    "no_content": '{"toolResult":{"x":7}}',
    "nothing": "[The tool answered nothing.]",
    "same_twice": '{"a": "é", "b": [1, true]}',
    "linked": '[resource log: file:///log, The log, All of May, text/plain, 1,234 bytes]\n{"type":"resource_link"}',
    "unread_data": '{"type":"video","mimeType":"video/mp4","data":"3,000 bytes: not shown"}',
    "odd_annotations": "said by all means",
    "odd_fields": "all the same",
}


def test_text_and_data_are_each_told_once(odd: dict[str, Any]) -> None:
    assert {tool: call(tool) for tool in TOLD} == TOLD


def test_an_answer_without_a_result_fails_at_once_with_its_words(odd: dict[str, Any]) -> None:
    said = {"as_a_string": "said without an object", "task_unasked": "a task", "nameless_error": "cannot parse that"}
    for tool, words in said.items():
        with pytest.raises(McpFailed, match=words):
            call(tool)
    assert call("text_alone") == "x is 7"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


INTRODUCTION = ("protocolVersion", "capabilities", "serverInfo", "instructions")


@given(content=json_values, data=json_values, error=json_values)
def test_whatever_a_result_holds_can_be_read(content: Any, data: Any, error: Any) -> None:
    from mcp.types import CallToolResult

    result = {"content": content, "structuredContent": data, "isError": error}
    answer = CallToolResult.model_validate({**result, **readable_content(result)})
    assert mcp.text_of(answer)


@given(
    st.lists(json_values | st.dictionaries(st.sampled_from(["name", "inputSchema", "title"]), json_values), max_size=4)
)
def test_whatever_a_list_holds_its_readable_tools_are_offered(listed: list[Any]) -> None:
    left_out: list[str] = []
    good = {"name": "good", "inputSchema": {"type": "object"}}
    tools = list(readable_tools([*listed, good], lambda name, reason: left_out.append(reason)))
    assert tools[-1] == good
    assert len(tools) + len(left_out) == len(listed) + 1


@given(json_values | st.dictionaries(st.sampled_from(INTRODUCTION), json_values))
def test_whatever_a_server_says_of_itself_can_be_read(said: Any) -> None:
    from mcp.types import InitializeResult

    assert InitializeResult.model_validate(readable_introduction(said if isinstance(said, dict) else {}))


@pytest.mark.parametrize(
    ("version", "spoken"),
    [
        *(("2024-10-07", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-12-01", "2025-11-25")),
        *(("2099-01-01", "2025-11-25"), ("1.0", "2024-11-05"), (20241105, "2024-11-05"), (None, "2025-11-25")),
    ],
)
def test_a_server_of_unknown_version_is_addressed_in_a_known_one(version: Any, spoken: str) -> None:
    assert readable_introduction({"protocolVersion": version})["protocolVersion"] == spoken


# Tools that cannot be read


def test_tools_that_cannot_be_read_leave_the_others(odd: dict[str, Any]) -> None:
    names = {name.removeprefix("odd_") for name in mcp.tools_named("mcp:odd")}
    assert {"without_type", "php", "odd_extras", "odd_execution", "task_or_call", "count", "optional"} <= names
    assert {"old_draft", "capitals", "far_reference", "words_for_schemas"} <= names
    assert not {"array", "task_alone"} & names


@pytest.mark.parametrize(
    ("pages", "words"), [("again", "had before"), ("refused", "invalid cursor"), ("endless", "more than 20 pages")]
)
def test_an_endless_list_is_read_as_far_as_it_goes(odd: dict[str, Any], minds: Minds, pages: str, words: str) -> None:
    minds(odd={**odd, "args": [*odd["args"], pages]})
    names = [name for name, _ in mcp.tools_of_server(current_config().servers["odd"], ask=True) or ()]
    assert len(names) == len(set(names)) >= 20
    assert any(words in sentence for sentence in left_out_of("odd"))


# Arguments


def optional() -> Tool:
    return mcp.tools_named("mcp:odd")["odd_optional"]


def test_null_for_an_optional_argument_is_left_out(odd: dict[str, Any]) -> None:
    assert read_arguments(optional(), '{"q": "a", "limit": null, "or_null": null}') == {"q": "a", "or_null": None}


def test_null_for_a_required_argument_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentsInvalid, match="q"):
        read_arguments(optional(), '{"q": null}')


# Sessions


def test_a_server_that_asks_a_person_goes_on_with_other_calls(odd: dict[str, Any]) -> None:
    with pytest.raises(AsksPerson, match="Which one"):
        call("asks")
    assert call("text_alone") == "x is 7"


def test_a_refused_call_ends_no_session(odd: dict[str, Any]) -> None:
    assert call("count") == "1"
    with pytest.raises(McpFailed, match="not like this"):
        call("refused")
    assert call("count") == "3", "the same process counts on"


def test_a_call_that_may_be_repeated_survives_its_server(odd: dict[str, Any], tmp_path: Path) -> None:
    assert call("dies_reading") == "{}"
    assert (tmp_path / "notes").read_text() == "dies_reading\n" * 2


def test_a_server_that_restarts_is_waited_for(odd: dict[str, Any], minds: Minds, tmp_path: Path) -> None:
    minds(odd={**odd, "args": [*odd["args"], "restarting"]})
    assert call("dies_reading") == "{}"
    assert (tmp_path / "notes").read_text().splitlines() == ["dies_reading", "restarting", "dies_reading"]


def test_a_call_that_may_not_be_repeated_runs_once(odd: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(McpFailed):
        call("dies")
    assert (tmp_path / "notes").read_text() == "dies\n"
    assert call("count") == "1", "in a new process"


def test_a_changed_list_of_tools_is_read_again(odd: dict[str, Any]) -> None:
    assert "odd_grown" not in mcp.tools_named("mcp:odd")
    call("grow")
    eventually(lambda: "odd_grown" in mcp.tools_named("mcp:odd"))


def test_a_list_that_changes_while_it_is_read_is_read_again(odd: dict[str, Any], minds: Minds) -> None:
    minds(odd={**odd, "args": [*odd["args"], "growing"]})
    assert "odd_grown" not in mcp.tools_named("mcp:odd")
    eventually(lambda: "odd_grown" in mcp.tools_named("mcp:odd"))


@pytest.mark.parametrize(("per_dialog", "counted"), [(False, ["1", "2", "3"]), (True, ["1", "1", "2"])])
def test_a_program_serves_all_dialogs_or_each_alone(
    odd: dict[str, Any], minds: Minds, per_dialog: bool, counted: list[str]
) -> None:
    minds(odd={**odd, "per_dialog": per_dialog})
    mine, yours = uuid4(), uuid4()
    assert [call("count", mine), call("count", yours), call("count", mine)] == counted


class _Forgetful(BaseHTTPRequestHandler):
    """A server that answers 404 for a session that it does not know, with a body or without."""

    protocol_version = "HTTP/1.1"
    sessions: set[str] = set()
    runs: list[str] = []
    refusal: tuple[int, Any] = (404, {"code": -32001, "message": "Session not found"})

    wrap: Callable[[bytes], bytes] = bytes
    type: str | None = "application/json"
    listening: tuple[int, str] = (405, "application/json")
    listened: list[str] = []

    def do_GET(self) -> None:
        self.listened.append(self.path)
        status, kind = self.listening
        data = b"retry: 10\n\n" if kind == EVENTS else b""
        self._send(status, data, kind)

    def do_DELETE(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number, session = message.get("id"), self.headers.get("mcp-session-id", "")
        match message["method"]:
            case "initialize":
                self.sessions.add(session := uuid4().hex)
                version = message["params"]["protocolVersion"]
                about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
                self._answer(200, {"id": number, "result": {"protocolVersion": version, **about}}, session)
            case "server/discover":
                self._answer(404, {"id": number, "error": {"code": -32601, "message": "Method not found"}})
            case _ if session not in self.sessions:
                status, error = self.refusal
                self._answer(status, error and {"id": number if status == 200 else None, "error": error})
            case "tools/list":
                tool = {"name": "ping", "inputSchema": {"type": "object"}}
                self._answer(200, {"id": number, "result": {"tools": [tool]}})
            case "tools/call":
                self.runs.append("ping")
                self._answer(200, {"id": number, "result": {"content": [{"type": "text", "text": "pong"}]}})
            case _:
                self._answer(202)

    def _answer(self, status: int, body: dict[str, Any] | None = None, session: str = "") -> None:
        data = b"" if body is None else type(self).wrap(json.dumps({"jsonrpc": "2.0", **body}).encode())
        self._send(status, data, self.type, session)

    def _send(self, status: int, data: bytes, kind: str | None, session: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if kind:
            self.send_header("Content-Type", kind)
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def forgetful(minds: Minds) -> Iterator[type[_Forgetful]]:
    handler = type("Forgetful", (_Forgetful,), {"sessions": set(), "runs": [], "listened": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    minds(odd={"url": f"http://127.0.0.1:{server.server_port}/mcp"})
    yield handler
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "refusal",
    [
        (404, {"code": -32001, "message": "Session not found"}),
        (404, None),
        (410, None),
        (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
        (400, {"code": -32600, "message": "Session terminated"}),
        (200, {"code": -32001, "message": "Session not found"}),
        (200, {"code": -32000, "message": "Bad Request: Server not initialized"}),
    ],
    ids=str,
)
def test_a_forgotten_session_is_opened_again_at_once(forgetful: type[_Forgetful], refusal: Any) -> None:
    """The protocol says 404; the SDK's own examples of servers say 400."""
    forgetful.refusal = refusal
    assert call("ping") == "pong"
    forgetful.sessions.clear()
    assert call("ping") == "pong"
    assert forgetful.runs == ["ping", "ping"], "the forgotten call did not run, so it runs once"
    forgetful.sessions.clear()
    mcp.forget_lists()
    assert list(mcp.tools_named("mcp:odd")) == ["odd_ping"]


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        ("application/json", lambda data: b"\xef\xbb\xbf" + data),
        ("application/json", lambda data: b"[" + data + b"]"),
        ("text/plain", bytes),
        (None, bytes),
        (EVENTS, lambda data: b"event: message\ndata: " + data + b"\n"),  # without the end of the event
        (
            EVENTS,
            lambda data: b": hi\n\nretry: 9\nid: 5\ndata:\n\nevent: ping\ndata: {}\n\ndata: " + data + b"\r\n\r\n",
        ),
    ],
)
def test_an_answer_is_read_however_it_is_wrapped(
    forgetful: type[_Forgetful], kind: str | None, wrap: Callable[[bytes], bytes]
) -> None:
    forgetful.type, forgetful.wrap = kind, staticmethod(wrap)
    assert call("ping") == "pong"


@pytest.mark.parametrize(("kind", "times"), [("text/plain", 2), (EVENTS, MOST_LISTENINGS + 1)])
def test_a_server_that_tells_nothing_is_not_listened_to_for_ever(
    forgetful: type[_Forgetful], kind: str, times: int
) -> None:
    """With 200 and no event, the SDK asks again each second, for as long as the session lasts."""
    forgetful.listening = (200, kind)
    assert call("ping") == "pong"
    eventually(lambda: len(forgetful.listened) == times)
    time.sleep(1.2)
    assert len(forgetful.listened) == times


def test_what_an_http_error_says_is_told(forgetful: type[_Forgetful]) -> None:
    assert call("ping") == "pong"
    forgetful.refusal = (403, {"code": "quota", "message": None})
    forgetful.sessions.clear()
    with pytest.raises(McpFailed, match=r"HTTP 403.*quota"):
        call("ping")
