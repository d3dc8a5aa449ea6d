"""One answer as each family of servers streams it: thoughts, "word0 word1 ", and two calls.

The shapes are those of streams that were recorded in public (fixtures of vercel/ai, and the reports that
``test_reading_odd_shapes`` rebuilds); what is said in them is invented.
"""

import json
from collections.abc import Callable
from typing import Any

from dominds.llm.messages import Request
from dominds.llm.models.model import Echo
from dominds.llm.providers.anthropic_reader import MessagesReader
from dominds.llm.providers.chat_reader import ChatReader
from dominds.llm.providers.reading import Reader
from dominds.llm.providers.responses_reader import ResponsesReader
from tests.dominds.llm.asking import HELLO, owner
from tests.dominds.llm.providers.answers import DONE, OSLO, ROME, event

THOUGHT = "Two cities."
COUNTS = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
TOKENS = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1787162400, "model": "m"}
Json = dict[str, Any]


def chunk(delta: Any, finish: Any = None, choice: Json | None = None, **beside: Any) -> bytes:
    return event(
        {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **(choice or {})}], **beside}
    )


def said(*contents: Any, **beside: Any) -> list[bytes]:
    return [chunk({"content": content, **beside}) for content in contents or ("word0 ", "word1 ")]


def call(at: Any, call_id: str | None, name: str | None, arguments: Any, **beside: Any) -> bytes:
    piece = {"index": at, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return chunk({"tool_calls": [{**piece, **beside}]})


def in_pieces(later_id: str | None = None, later_name: str | None = None) -> list[bytes]:
    """Both calls, of which the second comes in pieces."""
    pieces = (ROME[1][:9], ROME[1][9:])
    parts = [call(1, later_id, later_name, piece) for piece in pieces]
    return [call(0, "call_a", *OSLO), call(1, "call_b", ROME[0], ""), *parts]


def whole(*ids: Any, at: tuple[Any, Any] = (0, 1), **beside: Any) -> list[bytes]:
    made = zip(at, ids or ("call_a", "call_b"), (OSLO, ROME), strict=True)
    return [call(place, call_id, name, arguments, **beside) for place, call_id, (name, arguments) in made]


def usage(**beside: Any) -> bytes:
    return event({**HEAD, "choices": [], "usage": {**COUNTS, **beside}})


SAFE = {"hate": {"filtered": False, "severity": "safe"}}
FILTERED = {"content_filter_results": SAFE}
OFFSETS = {"content_filter_offsets": {"check_offset": 9, "start_offset": 9, "end_offset": 12}, **FILTERED}
END = [chunk({}, "tool_calls"), usage(), DONE]

CHAT: dict[str, list[bytes]] = {
    "OpenAI": [
        chunk({"role": "assistant", "content": "", "refusal": None}, obfuscation="x"),
        *said(),
        *in_pieces(),
        *END,
    ],
    "Azure": [
        event({"id": "", "choices": [], "created": 0, "object": "", "prompt_filter_results": [FILTERED]}),
        *[chunk({"content": text}, choice=FILTERED) for text in ("word0 ", "word1 ")],
        *in_pieces(),
        chunk({}, "tool_calls"),
        event({"id": "", "choices": [{"finish_reason": None, "index": 0, **OFFSETS}], "created": 0, "object": ""}),
        usage(),
        DONE,
    ],
    "vLLM": [chunk({"reasoning": THOUGHT}), *said(), *in_pieces(), chunk({"content": ""}, "tool_calls"), *END[1:]],
    "SGLang": [
        chunk({"role": "assistant", "content": "", "reasoning_content": None}, "", {"matched_stop": None}, usage=None),
        chunk({"content": None, "reasoning_content": THOUGHT}, ""),
        *said(tool_calls=None),
        *in_pieces(),
        chunk({"content": None}, "tool_calls", {"matched_stop": None}),
        *END[1:],
    ],
    "Ollama": [chunk({"reasoning": THOUGHT, "content": ""}), *said(), *whole(at=(0, 0)), chunk({}, "stop"), *END[1:]],
    "llama.cpp": [
        chunk({"role": "assistant", "content": None}),
        chunk({"reasoning_content": THOUGHT}),
        *said(),
        *in_pieces(),
        chunk({}, "tool_calls", timings={"prompt_n": 100}, usage=COUNTS),
        DONE,
    ],
    "OpenRouter": [
        b": OPENROUTER PROCESSING\n\n",
        chunk(
            {"content": "", "reasoning": THOUGHT, "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]},
            choice={"native_finish_reason": None},
            provider="X",
        ),
        *said(role="assistant"),
        *whole(),
        chunk({"content": ""}, "tool_calls", {"native_finish_reason": "tool_use"}),
        usage(cost=0.1),
        DONE,
    ],
    "DeepSeek": [
        chunk({"role": "assistant", "content": None, "reasoning_content": THOUGHT}),
        *said(reasoning_content=None),
        *in_pieces(),
        chunk(
            {"content": "", "reasoning_content": None}, "tool_calls", usage={**COUNTS, "prompt_cache_hit_tokens": 64}
        ),
        DONE,
    ],
    "Kimi": [
        chunk({"reasoning_content": THOUGHT}),
        *said(),
        *whole("functions.get_weather:0", "functions.get_weather:1"),
        chunk({}, "tool_calls", {"usage": COUNTS}),
        DONE,
    ],
    "Mistral": [
        *said([{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]),
        *said([{"type": "text", "text": "word0 "}], "word1 "),
        *whole("abcdefgh1", "abcdefgh2"),
        chunk({"content": ""}, "tool_calls", usage=COUNTS),
        DONE,
    ],
    "Gemini": [
        *said(),
        *whole(extra_content={"google": {"thought_signature": "c2ln"}}),
        chunk({"role": "assistant"}, "stop", usage=COUNTS),
        DONE,
    ],
    "MiniMax": [
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": THOUGHT[:4]}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": THOUGHT}]}),
        *[chunk({"content": text, "name": "MiniMax AI", "audio_content": ""}) for text in ("word0 ", "word1 ")],
        *in_pieces(),
        chunk({}, "tool_calls"),
        event({**HEAD, "choices": None, "usage": COUNTS, "base_resp": {"status_code": 0, "status_msg": ""}}),
        DONE,
    ],
    "Groq": [
        chunk({"role": "assistant", "content": None}, x_groq={"id": "req_1"}),
        chunk({"reasoning": THOUGHT, "channel": "analysis"}),
        *said(),
        *whole(),
        chunk({}, "tool_calls", x_groq={"usage": COUNTS}),
        DONE,
    ],
    "Qwen": [chunk({"reasoning_content": THOUGHT, "content": None}), *said(), *in_pieces(""), *END],
    "xAI": [
        event({**HEAD, "choices": [{"index": 0, "delta": {"reasoning_content": THOUGHT, "role": "assistant"}}]}),
        *said(),
        *whole(),
        *END,
    ],
    "MiniMax in tags": [*said("<think>\n", THOUGHT, "</think>", "word0 ", "word1 "), *whole(), *END],
    "Databricks": [
        *said([{"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]}]),
        *said([{"type": "text", "text": "word0 "}], [{"type": "text", "text": "word1 "}]),
        *in_pieces(),
        *END,
    ],
    "Copilot": [
        *said(),
        event({**HEAD, "choices": [json.loads(one[6:])["choices"][0] | {"index": 1} for one in whole()]}),
        *END,
    ],
}


def named(document: Json) -> bytes:
    return event(document, str(document["type"]))


def block(at: int, start: Json, *deltas: Json, ends: bool = True) -> list[bytes]:
    pieces = [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
    stop = [{"type": "content_block_stop", "index": at}] if ends else []
    return list(map(named, [{"type": "content_block_start", "index": at, "content_block": start}, *pieces, *stop]))


def used(call_id: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": OSLO[0], "input": given}


def json_pieces(*pieces: str) -> list[Json]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


START = named(
    {
        "type": "message_start",
        "message": {"id": "msg_1", "type": "message", "content": [], "usage": {"input_tokens": 100}},
    }
)
THINKS = (
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": THOUGHT},
    {"type": "signature_delta", "signature": "c2ln"},
)
SAYS = ({"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in ("word0 ", "word1 ")))
COUNTED = {"input_tokens": 100, "cache_read_input_tokens": 0, "output_tokens": 10}
STOP = [
    named({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": COUNTED}),
    named({"type": "message_stop"}),
]
MESSAGES: dict[str, list[bytes]] = {
    "Anthropic": [
        START,
        *block(0, *THINKS),
        named({"type": "ping"}),
        *block(1, *SAYS),
        *block(2, used("toolu_a"), *json_pieces("", OSLO[1])),
        *block(3, used("toolu_b"), *json_pieces("", ROME[1][:9], ROME[1][9:])),
        *STOP,
    ],
    "Anthropic, another model goes on": [
        START,
        *block(0, *THINKS),
        *block(1, {"type": "fallback", "from": {"model": "m"}, "to": {"model": "n"}}),
        *block(2, *SAYS),
        *block(3, used("toolu_a"), *json_pieces(OSLO[1])),
        *block(4, used("toolu_b"), *json_pieces(ROME[1])),
        *STOP,
    ],
    "Kimi on vLLM": [
        START,
        named({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": THOUGHT}, "index": 0}),
        *block(1, *SAYS, ends=False),
        *block(2, used("a"), *json_pieces(OSLO[1]), ends=False),
        *block(3, used("b"), *json_pieces(ROME[1]), ends=False),
        *STOP,
    ],
    "gateways": [
        START,
        *block(0, *SAYS),
        *block(1, used("a", city="Oslo")),
        *block(2, used("b", city="Rome")),
        named({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        named({"type": "message_delta", "delta": {}, "usage": COUNTED}),
        STOP[1],
    ],
    "a start that holds all": [
        named(
            {
                "type": "message_start",
                "message": {
                    "type": "message",
                    "content": [
                        {"type": "text", "text": "word0 word1 "},
                        used("a", city="Oslo"),
                        used("b", city="Rome"),
                    ],
                    "stop_reason": "tool_use",
                    "usage": COUNTED,
                },
            }
        ),
        STOP[1],
    ],
}

OUTPUT: list[Json] = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": "e",
    },
    {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "word0 word1 ", "annotations": []}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": OSLO[0], "arguments": OSLO[1]},
    {"type": "function_call", "id": "fc_2", "call_id": "call_b", "name": ROME[0], "arguments": ROME[1]},
]


def items(name_of: Callable[[int, int], Json], *, parts: bool = True) -> list[bytes]:
    """The events of the output, each of which names its item as ``name_of`` its place and its number says."""
    events: list[Json] = []

    def add(kind: str, at: int, **fields: Any) -> None:
        events.append({"type": f"response.{kind}", **fields, **name_of(at, len(events))})

    for at, item in enumerate(OUTPUT):
        add("output_item.added", at, item={**item, "arguments": "", "content": [], "summary": []} | _id(name_of(at, 0)))
        match item["type"]:
            case "reasoning":
                add("reasoning_summary_text.delta", at, delta=THOUGHT)
            case "message":
                for text in ("word0 ", "word1 "):
                    add("output_text.delta", at, delta=text, logprobs=[], obfuscation="x")
                if parts:
                    add("output_text.done", at, text="word0 word1 ")
                    add("content_part.done", at, part=item["content"][0])
            case "function_call":
                add("function_call_arguments.delta", at, delta=item["arguments"])
                add("function_call_arguments.done", at, arguments=item["arguments"])
        add("output_item.done", at, item=item | _id(name_of(at, len(events))))
    return list(map(event, events))


def _id(names: Json) -> Json:
    return {"id": names["item_id"]} if names.get("item_id") else {}


def completed(output: list[Json]) -> bytes:
    return event({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": TOKENS}})


BEGUN = event({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}})
RESPONSES: dict[str, list[bytes]] = {
    "OpenAI": [BEGUN, *items(lambda at, _: {"output_index": at, "item_id": OUTPUT[at]["id"]}), completed(OUTPUT)],
    "ids that change": [BEGUN, *items(lambda at, n: {"output_index": at, "item_id": f"id_{n}"}), completed(OUTPUT)],
    "llama.cpp": [BEGUN, *items(lambda at, _: {}, parts=False), completed(OUTPUT)],
    "LlamaStack": [BEGUN, *items(lambda at, _: {"item_id": OUTPUT[at]["id"]}, parts=False), completed([])],
    "the end alone": [BEGUN, completed(OUTPUT)],
}


def chat(request: Request = HELLO) -> Reader:
    return ChatReader(request, owner(), Echo.SENT)


def messages(request: Request = HELLO) -> Reader:
    return MessagesReader(request, owner(), needs_signature=False)


def responses(request: Request = HELLO) -> Reader:
    return ResponsesReader(request, owner())


FAMILIES: dict[str, tuple[Callable[[], Reader], list[bytes]]] = {
    f"{form}: {name}": (reader, events)
    for form, reader, streams in (
        ("chat", chat, CHAT),
        ("messages", messages, MESSAGES),
        ("responses", responses, RESPONSES),
    )
    for name, events in streams.items()
}
SILENT = (
    "chat: OpenAI",
    "chat: Azure",
    "chat: Gemini",
    "chat: Copilot",
    "messages: gateways",
    "messages: a start that holds all",
)
NAMELESS = "responses: llama.cpp"  # nothing says which item a piece belongs to, other than their order
