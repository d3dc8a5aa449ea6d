"""How servers turn a request into the text that the model reads, and how many tokens that is.

Written from the models' own published chat templates, and independent of the product's estimates: those must come near
these counts. Special tokens count one each.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import Any

from remediation.tokens.families import Family, family_of
from remediation.tokens.vocabularies import load

Body = dict[str, Any]
Piece = str | int  # text, or a number of special tokens


def count_prompt(model: str, body: Body) -> int:
    """The ``prompt_tokens`` that a server would report."""
    pieces = TEMPLATES[family_of(model)](body["messages"], body.get("tools") or [])
    return sum(piece if isinstance(piece, int) else count_text(model, piece) for piece in pieces)


@lru_cache(maxsize=8_192)
def count_text(model: str, text: str) -> int:
    tokens = load(VOCABULARY[family_of(model)])(text)
    groups = (len(run) for run in re.findall(r"[0-9]+", text)) if "qwen" in model.lower() else ()
    return tokens + sum(digits - ceil(digits / 3) for digits in groups)


# The vocabulary of a model that the product does not know is none of the product's: Qwen's are not shipped, and
# cl100k_base, from which they grew, stands in for them with each digit as a token.
VOCABULARY = {Family.LLAMA3: "llama3", Family.LLAMA2: "llama2", Family.MISTRAL: "mistral", Family.GPT: "cl100k_base"}


def _llama3(messages: list[Body], tools: list[Body]) -> Iterator[Piece]:
    """Llama 3.1: tools in the first user message, results under the role ipython."""
    system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    yield 1  # begin of text
    yield from _llama3_turn(
        "system", f"Environment: ipython\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n{system}"
    )
    is_first = True
    for message in messages[1:] if system else messages:
        text = message.get("content") or ""
        match message["role"]:
            case "user":
                yield from _llama3_turn("user", f"{_llama3_tools(tools)}{text}" if is_first and tools else text)
                is_first = False
            case "assistant":
                calls = [
                    json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)
                    for name, arguments in _calls(message)
                ]
                yield from _llama3_turn("assistant", "\n".join(part for part in (text, *calls) if part))
            case "tool":
                yield from _llama3_turn("ipython", text)
    yield 2
    yield "assistant"
    yield "\n\n"


def _llama3_turn(role: str, text: str) -> Iterator[Piece]:
    yield 3  # start of header, end of header, end of turn
    yield role
    yield f"\n\n{text}"


def _llama3_tools(tools: list[Body]) -> str:
    words = (
        "Given the following functions, please respond with a JSON for a function call with its proper arguments that "
        'best answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of '
        "argument name and its value}.Do not use variables.\n\n"
    )
    return words + "".join(f"{json.dumps(tool, ensure_ascii=False)}\n\n" for tool in tools)


def _llama2(messages: list[Body], tools: list[Body]) -> Iterator[Piece]:
    """Llama 2 knows no tools: LM Studio describes them in the system prompt and shows results as the user's words."""
    system = ""
    for message in messages:
        text = message.get("content") or ""
        match message["role"]:
            case "system":
                system = text
            case "user" | "tool":
                head = f"<<SYS>>\n{system}{_described(tools)}\n<</SYS>>\n\n" if system or tools else ""
                yield 1
                yield f"[INST] {head}{text} [/INST]"
                system, tools = "", []
            case "assistant":
                yield f" {text}{_described_calls(message)} "
                yield 1


def _described(tools: list[Body]) -> str:
    if not tools:
        return ""
    words = (
        "\n\nYou can request calls to available tools with this EXACT format:\n[TOOL_REQUEST]{...}[END_TOOL_REQUEST]"
    )
    return f"{words}\n\nAVAILABLE TOOLS:\n{json.dumps({'type': 'toolArray', 'tools': tools}, ensure_ascii=False)}"


def _described_calls(message: Body) -> str:
    return "".join(
        f"[TOOL_REQUEST]{json.dumps({'name': name, 'arguments': arguments})}[END_TOOL_REQUEST]"
        for name, arguments in _calls(message)
    )


def _mistral(messages: list[Body], tools: list[Body]) -> Iterator[Piece]:
    """Mistral v3: tools before the last user message, which also carries the system prompt."""
    system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    last_user = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=-1)
    yield 1
    for at, message in enumerate(messages):
        text = message.get("content") or ""
        match message["role"]:
            case "user":
                if at == last_user and tools:
                    yield 2  # [AVAILABLE_TOOLS] and its end
                    yield f" {json.dumps(tools, ensure_ascii=False)}"
                yield 2
                yield f" {system}\n\n{text}" if at == last_user and system else f" {text}"
            case "assistant":
                calls = [
                    {"name": name, "arguments": arguments, "id": f"abcdefg{number:02}"}
                    for number, (name, arguments) in enumerate(_calls(message))
                ]
                yield 1 + bool(calls)
                yield f" {text}" if text else ""
                yield json.dumps(calls, ensure_ascii=False) if calls else ""
            case "tool":
                yield 2
                yield f' {{"content": {text}, "call_id": "abcdefg00"}}'


def _chatml(messages: list[Body], tools: list[Body]) -> Iterator[Piece]:
    """Qwen 2.5, as the example of a model whose family is not known."""
    if tools:
        words = (
            "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with "
            "function signatures within <tools></tools> XML tags:\n<tools>"
        )
        ending = (
            "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
            '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": '
            "<args-json-object>}\n</tool_call>"
        )
        yield words + "".join(f"\n{json.dumps(tool, ensure_ascii=False)}" for tool in tools) + ending
    for message in messages:
        role = {"tool": "user"}.get(message["role"], message["role"])
        calls = [
            f"\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"
            for name, arguments in _calls(message)
        ]
        yield 2
        yield f"{role}\n"
        text = message.get("content") or ""
        yield f"<tool_response>\n{text}\n</tool_response>" if message["role"] == "tool" else text
        yield "".join(calls) + "\n"
    yield 1
    yield "assistant\n"


def _calls(message: Body) -> Iterator[tuple[str, Any]]:
    for call in message.get("tool_calls") or ():
        yield call["function"]["name"], json.loads(call["function"]["arguments"])


TEMPLATES = {Family.LLAMA3: _llama3, Family.LLAMA2: _llama2, Family.MISTRAL: _mistral, Family.GPT: _chatml}
