"""An MCP server over standard input and output whose answers the SDK would refuse: ``python odd_mcp_server.py NOTES
[PAGES]``. Its list of tools goes on behind the last tool as PAGES says; it may be ``growing`` while it is read, and the
server ``restarting``, which fails once.

It writes a line to the file NOTES for each call that it runs, and speaks the protocol without the SDK,
which could not say any of this.
"""

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

ANY = {"type": "object", "properties": {}}
SHAPE = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
READS = {"readOnlyHint": True}
TOOLS: list[Any] = [
    {"name": "text_alone", "inputSchema": ANY, "outputSchema": SHAPE},
    {"name": "other_shape", "inputSchema": ANY, "outputSchema": SHAPE},
    {"name": "summary", "inputSchema": ANY},
    {"name": "data_alone", "inputSchema": ANY},
    {"name": "large_number", "inputSchema": ANY},
    {"name": "blank_text", "inputSchema": ANY},
    {"name": "list_as_data", "inputSchema": ANY},
    {"name": "unknown_block", "inputSchema": ANY},
    {"name": "plain_string", "inputSchema": ANY},
    {"name": "same_twice", "inputSchema": ANY},
    {"name": "no_content", "inputSchema": ANY},
    {"name": "nothing", "inputSchema": ANY},
    {"name": "linked", "inputSchema": ANY},
    {"name": "unread_data", "inputSchema": ANY},
    {"name": "odd_annotations", "inputSchema": ANY},
    {"name": "odd_fields", "inputSchema": ANY},
    {"name": "as_a_string", "inputSchema": ANY},
    {"name": "task_unasked", "inputSchema": ANY},
    {"name": "nameless_error", "inputSchema": ANY},
    {"name": "refused", "inputSchema": ANY},
    {"name": "count", "inputSchema": ANY},
    {"name": "dies", "inputSchema": ANY},
    {"name": "dies_reading", "inputSchema": ANY, "annotations": READS},
    {"name": "grow", "inputSchema": ANY},
    {"name": "asks", "inputSchema": ANY},
    {"name": "without_type", "inputSchema": {"anyOf": [{"properties": {"a": {"type": "string"}}}]}},
    {"name": "php", "inputSchema": {"type": "object", "properties": []}},
    {"name": "odd_extras", "inputSchema": ANY, "title": 7, "icons": "none", "annotations": "none", "description": 5},
    {"name": "odd_execution", "inputSchema": ANY, "execution": {"taskSupport": "sometimes"}},
    {"name": "task_or_call", "inputSchema": ANY, "execution": {"taskSupport": "optional"}},
    {"name": "task_alone", "inputSchema": ANY, "execution": {"taskSupport": "required"}},
    {
        "name": "old_draft",
        "inputSchema": {
            "type": "object",
            "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "required": True}},
        },
    },
    {"name": "capitals", "inputSchema": {"type": "OBJECT", "properties": {"p": {"type": "STRING"}}}},
    {"name": "far_reference", "inputSchema": {"type": "object", "properties": {"p": {"$ref": "#/$defs/Gone"}}}},
    {"name": "words_for_schemas", "inputSchema": {"type": "object", "properties": {"p": "string"}, "required": "p"}},
    {"name": "array", "inputSchema": {"type": "array"}},
    {"inputSchema": ANY},
    "a word",
    {
        "name": "optional",
        "inputSchema": {
            "type": "object",
            "properties": {
                "q": {"type": "string"},
                "limit": {"type": "integer"},
                "or_null": {"type": ["string", "null"]},
            },
            "required": ["q"],
        },
    },
]
GROWN = {"name": "grown", "inputSchema": ANY}
RESULTS: dict[str, Any] = {
    "text_alone": {"content": [{"type": "text", "text": "x is 7"}]},
    "other_shape": {"content": [{"type": "text", "text": "x is seven"}], "structuredContent": {"x": "seven"}},
    "summary": {
        "content": [{"type": "text", "text": "2 projects."}],
        "structuredContent": {"names": ["ALPHA", "BETA"]},
    },
    "data_alone": {"content": [], "structuredContent": {"status": "there"}},
    "large_number": {"structuredContent": {"id": 10**20}},
    "blank_text": {"content": [{"type": "text", "text": " "}], "structuredContent": {"status": "there"}},
    "list_as_data": {"content": [], "structuredContent": ["ALPHA", "BETA"]},
    "unknown_block": {"content": [{"type": "table", "rows": [[1, "ALPHA"]]}, {"type": "text", "text": "one row"}]},
    "linked": {
        "content": [
            {
                "type": "resource_link",
                "name": "log",
                "uri": "file:///log",
                "title": "The log",
                "description": "All of May",
                "mimeType": "text/plain",
                "size": 1234,
            },
            {"type": "resource_link"},
        ]
    },
    "unread_data": {"content": [{"type": "video", "mimeType": "video/mp4", "data": "A" * 4000}]},
    "odd_annotations": {
        "content": [
            {"type": "text", "text": "said by all means", "annotations": {"audience": ["human"], "priority": 7}}
        ]
    },
    "odd_fields": {"content": [{"type": "text", "text": "all the same"}], "_meta": [], "isError": None},
    "as_a_string": "said without an object",
    "task_unasked": {"task": {"taskId": "t-1", "status": "working", "createdAt": "2026-11-26T00:00:00Z", "ttl": None}},
    "no_content": {"toolResult": {"x": 7}, "isError": False},
    "nothing": {},
    "plain_string": {"content": "said without a block"},
    "same_twice": {
        "content": [{"type": "text", "text": '{"a": "é", "b": [1, true]}'}],
        "structuredContent": {"a": "é", "b": [1, True]},
    },
}
notes, pages = Path(sys.argv[1]), "".join(sys.argv[2:])
calls = itertools.count(1)
if pages == "restarting" and notes.exists() and "restarting" not in notes.read_text():
    with notes.open("a") as file:
        file.write("restarting\n")
    sys.exit(1)


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def grow() -> None:
    TOOLS.append(GROWN)
    say({"method": "notifications/tools/list_changed"})


def call(number: Any, name: str, arguments: Any) -> None:
    calls_so_far = next(calls)
    with notes.open("a") as file:
        file.write(f"{name}\n")
    if name in ("dies", "dies_reading") and notes.read_text().count(name) == 1:
        os._exit(1)
    if name == "nameless_error":
        say({"id": None, "error": {"code": -32700, "message": "cannot parse that"}})
        return
    if name == "refused":
        say({"id": number, "error": {"code": -32602, "message": "not like this"}})
        return
    if name == "asks":
        form = {"type": "object", "properties": {"region": {"type": "string"}}, "required": ["region"]}
        say({"id": "q", "method": "elicitation/create", "params": {"message": "Which one?", "requestedSchema": form}})
        answer = next(reply for reply in map(json.loads, sys.stdin) if reply.get("id") == "q")
        say(
            {"id": number, "error": answer["error"]}
            if "error" in answer
            else {"id": number, "result": answer["result"]}
        )
        return
    if name == "grow":
        grow()
    sys.stdout.write("\nStarting...\n\xff\n[1, 2]\n")  # as programs that log to their standard output do
    say({"method": "notifications/progress", "params": {"progress": 1}})
    said = str(calls_so_far) if name == "count" else json.dumps(arguments)
    say({"id": str(number), "result": RESULTS.get(name, {"content": [{"type": "text", "text": said}]})})


for line in sys.stdin:
    message = json.loads(line)
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            offered = {"tools": {"listChanged": True}}
            about = {"name": "odd", "version": "1"}
            say({"id": number, "result": {"protocolVersion": version, "capabilities": offered, "serverInfo": about}})
        case "tools/list":
            cursor = message.get("params", {}).get("cursor", "")
            if cursor and pages == "refused":
                say({"id": number, "error": {"code": -32602, "message": "invalid cursor"}})
                continue
            following = {"again": 7, "refused": "next", "endless": f"{cursor}x"}.get(pages)
            tools = [{"name": f"page_{len(cursor)}", "inputSchema": ANY}] if pages == "endless" else list(TOOLS)
            if pages == "growing" and GROWN not in TOOLS:
                grow()
            say({"id": number, "result": {"tools": tools, "nextCursor": following}})
        case "tools/call":
            call(number, message["params"]["name"], message["params"].get("arguments"))
        case _ if number is not None:
            say({"id": number, "error": {"code": -32601, "message": "Method not found"}})
