"""Translation of the body of ``generateContent`` into that of a chat completion.

Fields may be named in either of the protocol's ways, ``systemInstruction`` or ``system_instruction``. Thoughts that
come back, and their signatures, are passed over, since the dialog holds its own; so are settings of safety.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any

from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.fields import read_entries, read_list, read_object, read_text
from dialogs.extras.v1.gemini.answer import ContentWriter
from dialogs.extras.v1.options import check_known
from dialogs.extras.v1.wire import ChatBody, Reading, Sent
from dominds.llm.json_text import dump

READ = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig")
PASSED_OVER = ("safetySettings", "labels", "model", "serviceTier", "store")
OPTIONS = {  # of a generationConfig, by the names that they have in chat completions
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "seed": "seed",
    "candidateCount": "n",
}
CONFIG_READ = ("responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig", "responseModalities")
CONFIG_PASSED_OVER = ("mediaResolution",)
NAMES = {"messages": "contents", "tools": "tools", **{chat: f"generationConfig.{own}" for own, chat in OPTIONS.items()}}
MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none", "MODE_UNSPECIFIED": "auto"}
SAYS_IT = ("output", "result", "content", "error")  # fields of a response that hold nothing but its words
UNSAID = {"thought", "thoughtSignature"}
COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_UNDERSCORE = re.compile("_([a-z])")


def read(sent: Sent, model: str, *, stream: bool) -> Reading:
    """Read a request. Raises ``ApiError`` or ``Refusal``."""
    chat = chat_of(sent.body, model)
    chat.options["stream"] = stream
    return Reading(chat.request(sent.dialog, sent.policy), partial(ContentWriter, model), NAMES)


def chat_of(given: dict[str, Any], model: str) -> ChatBody:
    body = _camel(given)
    for name, value in body.items():
        if name not in (*READ, *PASSED_OVER) and value not in (None, []):
            raise invalid("This is not offered here: leave it out.", name)
    config = _camel(read_object(body.get("generationConfig"), "generationConfig"))
    check_known(config, (*OPTIONS, *CONFIG_READ, *CONFIG_PASSED_OVER), "generationConfig")
    chat = ChatBody({"model": model, **_options(config)}, names=NAMES)
    instruction = read_object(body.get("systemInstruction"), "systemInstruction")
    check_known(instruction, ("role", "parts"), "systemInstruction")
    if parts := _parts(instruction, "systemInstruction"):
        chat.say(
            "system", [_content_part(part, f"systemInstruction.parts[{at}]") for at, part in parts], "systemInstruction"
        )
    chat.end_instructions()
    waiting: defaultdict[str, deque[str]] = defaultdict(deque)
    for index, content in enumerate(read_entries(body.get("contents"), "contents")):
        _say(chat, read_object(content, f"contents[{index}]"), f"contents[{index}]", waiting)
    chat.tools = _tools(body.get("tools"))
    chat.options |= _choice(_camel(read_object(body.get("toolConfig"), "toolConfig")), chat)
    return chat


def _camel(given: Mapping[str, Any]) -> dict[str, Any]:
    return {_UNDERSCORE.sub(lambda letter: letter[1].upper(), name): value for name, value in given.items()}


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    options = {chat: config[own] for own, chat in OPTIONS.items() if config.get(own) is not None}
    if (modalities := read_list(config.get("responseModalities"), "generationConfig.responseModalities")) not in (
        [],
        ["TEXT"],
    ):
        raise invalid(f"Only TEXT is offered, not {modalities!r}.", "generationConfig.responseModalities")
    thinking = _camel(read_object(config.get("thinkingConfig"), "generationConfig.thinkingConfig"))
    check_known(thinking, ("includeThoughts", "thinkingBudget", "thinkingLevel"), "generationConfig.thinkingConfig")
    options["include_reasoning"] = thinking.get("includeThoughts")
    if level := read_text(thinking.get("thinkingLevel"), "generationConfig.thinkingConfig.thinkingLevel"):
        options["reasoning_effort"] = level.lower()
    schema = config.get("responseJsonSchema") or plain_schema(config.get("responseSchema"))
    kind = read_text(config.get("responseMimeType"), "generationConfig.responseMimeType")
    if schema:
        options["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    elif kind == "application/json":
        options["response_format"] = {"type": "json_object"}
    elif kind not in ("", "text/plain"):
        raise invalid(f"{kind!r} is not offered: leave it out.", "generationConfig.responseMimeType")
    return options


# Contents


def _parts(content: Mapping[str, Any], param: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the parts that say something, each with its place."""
    parts = [
        (at, _camel(read_object(part, f"{param}.parts[{at}]")))
        for at, part in enumerate(read_entries(content.get("parts"), f"{param}.parts"))
    ]
    return [(at, part) for at, part in parts if not part.get("thought") and part.keys() - UNSAID]


def _say(chat: ChatBody, content: dict[str, Any], param: str, waiting: defaultdict[str, deque[str]]) -> None:
    """Tell a content. ``waiting`` are the ids of calls without a result, by their names: some clients send no ids."""
    check_known(content, ("role", "parts"), param)
    parts = _parts(content, param)
    match content.get("role"):
        case "model":
            calls, texts = [], []
            for at, part in parts:
                if "functionCall" in part:
                    place = f"{param}.parts[{at}].functionCall"
                    calls.append(_call(read_object(part["functionCall"], place), place, f"{param}[{at}]", waiting))
                else:
                    texts.append(_content_part(part, f"{param}.parts[{at}]"))
            if parts or not content.get("parts"):  # else it held nothing but thoughts
                chat.say("assistant", texts, param, **({"tool_calls": calls} if calls else {}))
        case None | "user" | "function" | "tool":
            rest = []
            for at, part in parts:
                if "functionResponse" in part:
                    place = f"{param}.parts[{at}].functionResponse"
                    _say_response(chat, read_object(part["functionResponse"], place), place, waiting)
                else:
                    rest.append(_content_part(part, f"{param}.parts[{at}]"))
            if rest or not parts:
                chat.say("user", rest, param)
        case _:
            raise invalid("role must be user or model.", f"{param}.role")


def _call(call: dict[str, Any], param: str, place: str, waiting: defaultdict[str, deque[str]]) -> dict[str, Any]:
    name = read_text(call.get("name"), f"{param}.name")
    call_id = read_text(call.get("id"), f"{param}.id") or place
    waiting[name].append(call_id)
    arguments = dump(read_object(call.get("args"), f"{param}.args")).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _say_response(chat: ChatBody, response: dict[str, Any], param: str, waiting: defaultdict[str, deque[str]]) -> None:
    known = waiting[read_text(response.get("name"), f"{param}.name")] or next(filter(None, waiting.values()), deque())
    own_id = read_text(response.get("id"), f"{param}.id")
    call_id = own_id or (known[0] if known else "")
    if call_id in known:
        known.remove(call_id)
    elif own_id and own_id in _last_results(chat):
        return  # Gemini CLI tells each result twice once it has resumed a session
    held = read_object(response.get("response"), f"{param}.response")
    said = held[next(iter(held))] if len(held) == 1 and next(iter(held)) in SAYS_IT else held
    text = said if isinstance(said, str) else dump(said).decode()
    text = f"The tool failed with an error: {text}" if set(held) == {"error"} else text
    shown = [_content_part(part, f"{param}.parts[{at}]") for at, part in _parts(response, param)]
    chat.say("tool", [{"type": "text", "text": text}, *shown], param, tool_call_id=call_id)


def _last_results(chat: ChatBody) -> Iterator[str]:
    """Yield the ids of the results that the conversation ends with so far."""
    ended = takewhile(lambda message: message["role"] == "tool", reversed(chat.messages))
    return (message["tool_call_id"] for message in ended)


def _content_part(part: dict[str, Any], param: str) -> dict[str, Any]:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "inlineData" in part:
        data = _camel(read_object(part["inlineData"], f"{param}.inlineData"))
        kind = read_text(data.get("mimeType"), f"{param}.inlineData.mimeType")
        url = f"data:{kind};base64,{read_text(data.get('data'), f'{param}.inlineData.data')}"
        if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": data.get("displayName") or "file", "file_data": url}}
    raise invalid(f"Only text, inline data, calls and responses are understood, not {', '.join(part)[:80]}.", param)


# Tools


def _tools(value: Any) -> list[dict[str, Any]]:
    tools = []
    for index, given in enumerate(read_entries(value, "tools")):
        tool = _camel(read_object(given, f"tools[{index}]"))
        check_known(tool, ("functionDeclarations",), f"tools[{index}]")
        place = f"tools[{index}].functionDeclarations"
        for at, declared in enumerate(read_entries(tool.get("functionDeclarations"), place)):
            function = _camel(read_object(declared, f"{place}[{at}]"))
            schema = function.get("parametersJsonSchema") or plain_schema(function.get("parameters"))
            about = {"name": function.get("name"), "description": function.get("description"), "parameters": schema}
            tools.append({"type": "function", "function": about})
    return tools


def _choice(config: Mapping[str, Any], chat: ChatBody) -> dict[str, Any]:
    check_known(config, ("functionCallingConfig", "retrievalConfig"), "toolConfig")
    param = "toolConfig.functionCallingConfig"
    calling = _camel(read_object(config.get("functionCallingConfig"), param))
    mode = read_text(calling.get("mode"), f"{param}.mode").upper()
    if mode and mode not in MODES:
        raise invalid(f"mode must be one of {', '.join(MODES)}.", f"{param}.mode")
    if allowed := read_list(calling.get("allowedFunctionNames"), f"{param}.allowedFunctionNames"):
        chat.tools = [tool for tool in chat.tools if tool["function"]["name"] in allowed]
    return {"tool_choice": MODES[mode]} if mode else {}


def plain_schema(value: Any) -> Any:
    """Return a schema of this protocol as JSON Schema has it: types in lower case, and numbers as such."""
    if isinstance(value, list):
        return [plain_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {_camel({name: None}).popitem()[0]: item for name, item in value.items()}
    result: dict[str, Any] = {}
    for name, item in schema.items():
        if name == "type" and isinstance(item, str):
            result[name] = item.lower()
        elif name == "properties" and isinstance(item, dict):
            result[name] = {key: plain_schema(one) for key, one in item.items()}
        elif name in COUNTS and isinstance(item, str) and item.isdecimal():
            result[name] = int(item)
        elif name in ("items", "anyOf"):
            result[name] = plain_schema(item)
        elif name != "propertyOrdering":
            result[name] = item
    return result
