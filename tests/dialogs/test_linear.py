"""Nothing that reads a conversation takes more than its length: what people, models and tools write decides on N."""

import base64
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dialogs.actions.attachments import check_files
from dialogs.context.retrieval.search import words_of
from dialogs.context.units import group, unit_from_json, unit_to_json
from dialogs.context.view import without_results
from dialogs.context.view_cache import Head, messages_of
from dialogs.extras.imports import chatgpt, claude, librechat, message_lists, open_webui
from dialogs.extras.v1 import parsing
from dialogs.extras.v1.exchanges import exchanges_of
from dialogs.extras.v1.history import ClientMessage, conversation_of
from dialogs.extras.v1.likeness import fit
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.responses import request as responses
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey
from dialogs.pages.entries import _arguments
from dialogs.store.events import _rows, events_in
from dominds.budgets import CONVERSATION_MESSAGES
from dominds.llm.http.sse import SseParser
from dominds.llm.json_text import arguments_object, parse
from dominds.llm.messages import Message, Role, ToolCall
from dominds.llm.providers.reading import with_own_ids
from tests.harness.complexity import assert_linear

ROWS = 20_000
CALLS = 2_000  # where each was compared with all others: enough to tell, and a failure ends soon


def turns(number: int) -> list[Any]:
    """User messages, answers that call a tool, and its results."""
    rows = []
    for at in range(number):
        kind = ("user", "assistant", "tool")[at % 3]
        rows.append(
            SimpleNamespace(
                seq=at,
                position=at,
                role=kind,
                status="complete",
                text=f"text {at}",
                tool_calls=[{"id": f"call-{at}", "name": "read", "arguments": "{}"}] if kind == "assistant" else None,
                tool_call_id=f"call-{at - 1}" if kind == "tool" else "",
                tool_name="",
                provider_items=None,
                attachments=None,
            )
        )
    return rows


def calls(number: int) -> list[dict[str, str]]:
    return [{"id": f"call-{at}", "name": "read", "arguments": "{}"} for at in range(number)]


def one_reply_with_all(number: int) -> list[Any]:
    """One answer with every call, and the results of half of them."""
    reply = turns(2)[1:]
    reply[0].tool_calls = calls(number)
    results: list[Any] = []
    for at in range(number // 2):
        row = turns(3)[2]
        row.seq, row.tool_call_id = at + 2, f"call-{at}"
        results.append(row)
    return reply + results


def stream(number: int) -> list[bytes]:
    """An event stream of a megabyte and more, cut at odd places."""
    whole = b"".join(b'data: {"choices": [{"delta": {"content": "word %d"}}]}\n\n' % at for at in range(number))
    return [whole[at : at + 777] for at in range(0, len(whole), 777)]


def one_long_event(number: int) -> list[bytes]:
    return [b"data: ", *[b"a" * 90] * number, b"\n\n"]


def read_stream(chunks: list[bytes]) -> int:
    parser = SseParser()
    return sum(1 for chunk in chunks for _ in parser.feed(chunk))


def followed(rows: list[Any]) -> Any:
    return Head.of(0, ()).followed_by(rows)


def grown_turn_by_turn(rows: list[Any]) -> Any:
    return messages_of(group(rows))


def stored_and_read(rows: list[Any]) -> Any:
    return [unit_from_json(unit_to_json(unit, original=False)) for unit in group(rows)]


def events_written(number: int) -> list[Any]:
    return [("notice", {"text": f"note {at}"}) for at in range(number)]


def through_rows(drafts: list[Any]) -> int:
    rows = list(_rows(None, 1, drafts))  # type: ignore[arg-type]
    return sum(1 for row in rows for _ in events_in(row))


def talk(number: int) -> list[dict[str, Any]]:
    """What a client tells: as many as one request may."""
    return [
        {"role": ("user", "assistant")[at % 2], "content": f"text {at} of a long conversation"}
        for at in range(number - 1)
    ] + [{"role": "user", "content": "And now?"}]


def client_messages(number: int) -> list[ClientMessage]:
    return [ClientMessage(text["role"], text["content"]) for text in talk(number)]


def resent_with_other_answers(number: int) -> Any:
    stored = exchanges_of(client_messages(number))
    return stored, [replace(one, answer=f"{one.answer} indeed", answered=f"{one.answered}indeed") for one in stored]


def chatgpt_branch(number: int) -> dict[str, Any]:
    nodes = {
        str(at): {
            "parent": str(at - 1),
            "message": {
                "author": {"role": message["role"]},
                "content": {"content_type": "text", "parts": [message["content"]]},
            },
        }
        for at, message in enumerate(talk(number))
    }
    return {"id": "a", "title": "Long", "mapping": nodes}


def claude_chat(number: int) -> dict[str, Any]:
    texts = [
        {
            "uuid": str(at),
            "parent_message_uuid": str(at - 1),
            "sender": "human" if at % 2 == 0 else "assistant",
            "content": [{"type": "text", "text": f"text {at} of a long conversation"}],
        }
        for at in range(number)
    ]
    return {"uuid": "a", "name": "Long", "chat_messages": texts}


def claude_of_one_id(number: int) -> dict[str, Any]:
    chat = claude_chat(number)
    return {**chat, "chat_messages": [{**message, "uuid": "same"} for message in chat["chat_messages"]]}


def claude_answer(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"uuid": "a", "name": "Long", "chat_messages": [{"sender": "assistant", "content": blocks}]}


def claude_texts(number: int) -> dict[str, Any]:
    return claude_answer([{"type": "text", "text": f"text {at} of one answer"} for at in range(number)])


def claude_calls(number: int) -> dict[str, Any]:
    """All before their results, which come the other way round."""
    asked = [{"type": "tool_use", "id": f"call-{at}", "name": "read", "input": {}} for at in range(number)]
    results = [{"type": "tool_result", "tool_use_id": f"call-{at}", "content": "ok"} for at in reversed(range(number))]
    return claude_answer([*asked, *results])


def librechat_tree(number: int) -> dict[str, Any]:
    """Each message below the one before."""
    below: list[dict[str, Any]] = []
    for at in reversed(range(number)):
        below = [{"messageId": str(at), "text": f"text {at}", "isCreatedByUser": at % 2 == 0, "children": below}]
    return {"conversationId": "a", "title": "Long", "messagesTree": below}


def librechat_list(number: int) -> dict[str, Any]:
    texts = [
        {"messageId": str(at), "parentMessageId": str(at - 1), "text": f"text {at}", "isCreatedByUser": at % 2 == 0}
        for at in range(number)
    ]
    return {"conversationId": "a", "title": "Long", "messages": texts}


def open_webui_chat(number: int) -> dict[str, Any]:
    text = {
        str(at): {"parentId": str(at - 1), "role": ("user", "assistant")[at % 2], "content": f"text {at}"}
        for at in range(number)
    }
    return {"id": "a", "chat": {"history": {"messages": text, "currentId": str(number - 1)}}}


def open_webui_details(number: int) -> dict[str, Any]:
    """Of each hundred one ends: of the others nobody can say where."""
    tag = '<details type="reasoning">thought '
    text = (tag + "</details>" + tag * 99) * (number // 100) + tag * number
    return {"id": "a", "chat": {"messages": [{"role": "assistant", "content": text}]}}


def open_webui_calls(number: int) -> dict[str, Any]:
    output = [{"type": "message", "content": "Let me look."}]
    output += [{"type": "function_call", "call_id": f"call-{at}", "name": "read"} for at in range(number)]
    output += [{"type": "function_call_output", "call_id": f"call-{at}", "output": "ok"} for at in range(number)]
    return {"id": "a", "chat": {"messages": [{"role": "assistant", "output": output}]}}


def nameless_results(number: int) -> dict[str, Any]:
    asked = [{"function": {"name": "read", "arguments": "{}"}} for _ in range(number)]
    results = [{"role": "tool", "content": "ok"} for _ in range(number)]
    return {"messages": [{"role": "assistant", "tool_calls": asked}, *results]}


def response_of_messages(number: int) -> dict[str, Any]:
    return {"model": "a", "input": [{"type": "message", **text} for text in talk(number)]}


def response_of_calls(number: int) -> dict[str, Any]:
    asked = [
        {"type": "function_call", "call_id": f"call-{at}", "name": "read", "arguments": "{}"} for at in range(number)
    ]
    results = [{"type": "function_call_output", "call_id": f"call-{at}", "output": "ok"} for at in range(number)]
    return {"model": "a", "input": [*asked, *results[: number // 2]]}


def response_with_tools(number: int) -> dict[str, Any]:
    tools = [{"type": "function", "name": f"tool-{at}", "parameters": {}} for at in range(number)]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools[::-1]}
    return {"model": "a", "input": "Hi", "tools": tools, "tool_choice": choice}


def read_response(body: dict[str, Any]) -> Any:
    return responses.read(Sent(body, dialog="", policy="", key=ApiKey()))


def jpeg(number: int) -> bytes:
    """Its size stands behind many segments."""
    return b"\xff\xd8" + b"\xff\xe0\x00\x02" * number + b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\xff\xd9"


def attached(content: bytes) -> Any:
    file = f"data:text/plain;base64,{base64.b64encode(content).decode()}"
    parts = [{"type": "file", "file": {"filename": "a" * 100, "file_data": file}}]
    return parsing.chat_request({"model": "a", "messages": [{"role": "user", "content": parts}]})


CASES: list[tuple[Callable[[Any], Any], Callable[[int], Any], int]] = [
    (lambda given: without_results(given, set()), calls, ROWS),
    (lambda given: without_results(given, {call["id"] for call in given[::2]}), calls, ROWS),
    (group, turns, ROWS),
    (group, one_reply_with_all, ROWS),
    (followed, turns, ROWS),
    (followed, one_reply_with_all, ROWS),
    (grown_turn_by_turn, turns, ROWS),
    (stored_and_read, turns, ROWS),
    (read_stream, stream, ROWS),
    (read_stream, one_long_event, ROWS),
    (lambda given: with_own_ids(given, ()), lambda number: [ToolCall("same", "a", "{}")] * number, ROWS),
    (
        lambda given: with_own_ids((ToolCall("", "a", ""),), given),
        lambda number: [Message(Role.ASSISTANT, "", (ToolCall(str(at), "a", ""),)) for at in range(number)],
        ROWS,
    ),
    (parse, lambda number: "[" + ",".join(f'"{at} \\ud800"' for at in range(number)) + "]", ROWS),
    (arguments_object, lambda number: '{"text": "' + "\\n" * 10 * number, ROWS),
    (_arguments, lambda number: '{"text": "' + "word " * 5 * number + '"}', ROWS),
    (through_rows, events_written, ROWS),
    (lambda given: parsing.chat_request({"model": "a", "messages": given}), talk, CONVERSATION_MESSAGES.most // 2),
    (lambda given: chat_request_of({"model": "a", "messages": given}), talk, CONVERSATION_MESSAGES.most // 2),
    (lambda given: exchanges_of(conversation_of(given).whole), client_messages, ROWS),
    (lambda given: fit(*given), resent_with_other_answers, ROWS),
    (chatgpt.read, chatgpt_branch, ROWS),
    (lambda given: message_lists.read({"messages": given}), talk, ROWS),
    (message_lists.read, nameless_results, CALLS),
    (claude.read, claude_chat, ROWS),
    (claude.read, claude_of_one_id, ROWS),
    (claude.read, claude_texts, ROWS),
    (claude.read, claude_calls, CALLS),
    (librechat.read, librechat_tree, ROWS),
    (librechat.read, librechat_list, ROWS),
    (open_webui.read, open_webui_chat, ROWS),
    (open_webui.read, open_webui_details, CALLS),
    (open_webui.read, open_webui_calls, CALLS),
    (read_response, response_of_messages, CONVERSATION_MESSAGES.most // 2),
    (read_response, response_of_calls, CONVERSATION_MESSAGES.most // 2),
    (read_response, response_with_tools, CALLS),
    (lambda given: check_files([("a.jpeg", given)]), jpeg, ROWS),
    (attached, lambda number: b"word " * 10 * number, ROWS),
    (words_of, lambda number: "a b_c dé-f " * number, ROWS),
]


@pytest.mark.parametrize(("function", "make", "n"), CASES)
def test_time_grows_with_length_alone(function: Callable[[Any], Any], make: Callable[[int], Any], n: int) -> None:
    assert_linear(function, make, n)


def test_the_measure_finds_what_is_quadratic() -> None:
    def quadratic(given: list[int]) -> int:
        return sum(1 for one in given for other in given if one == other)

    with pytest.raises(AssertionError, match=r"looks quadratic: 2,000 to 4,000: .* 4,000 to 8,000: "):
        assert_linear(quadratic, lambda number: list(range(number)), 2_000)
