"""Translation of the body of ``POST /v1/messages`` into that of a chat completion.

A compaction block stands for the conversation before it. Markers of caches and edits that clear old results or
thinking are ignored: the runtime sees to both. So is thinking that comes back: the dialog holds its own.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from dialogs.extras.v1.compacted import Compacted, unpack
from dialogs.extras.v1.compaction import Teller, is_due, tell_nothing, tell_text, teller_for
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.fields import read_list, read_object, read_text
from dialogs.extras.v1.messages.answer import NO_THREADS, MessageWriter
from dialogs.extras.v1.messages.client_tools import CLIENT_TOOLS
from dialogs.extras.v1.options import check_known, check_offered
from dialogs.extras.v1.parsing import MAX_END_USER, ChatRequest
from dialogs.extras.v1.wire import ChatBody, Reading, Sent
from dialogs.store.text import unstorable_reason
from dominds.llm.json_text import dump

BILLING = "x-anthropic-billing-header:"  # Claude Code's first system block, another in each request
FAILED = "The tool failed with an error:"  # where its result does not say so itself
REMINDER = "<system-reminder>"
SAME = ("model", "max_tokens", "temperature", "top_p", "top_k", "stream", "metadata")
READ = ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format", "stop_sequences")
CHECKED = ("context_management", "compaction", "fallbacks", "billing_policy")
PASSED_OVER = tuple(
    """
    cache_control betas anthropic_beta diagnostics inference_geo service_tier speed user_profile_id workspace_id
    """.split()
)
COMPACT = "compact_20260112"
TRIGGER = 150_000  # tokens, as in Anthropic's API where a request names none
CLEARS = ("clear_tool_uses_20250919", "clear_thinking_20251015")  # what the runtime sees to in its own way
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
NAMES = {
    "stop": "stop_sequences",
    "reasoning_effort": "output_config.effort",
    "response_format": "output_config.format",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
}
CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read(sent: Sent) -> Reading:
    body = sent.body
    stops, has_edits = read_list(body.get("stop_sequences"), "stop_sequences"), _edits(body) is not None
    writer = partial(MessageWriter, stops, has_edits=has_edits)
    chat = _chat_of(body, teller_for(sent.key))
    prior = partial(chat.prior, sent, "messages")
    if body.get("compaction"):
        return Reading(prior().request, writer, NAMES, prior, is_compaction=True)
    request = chat.request(sent.dialog, sent.policy)
    if (edit := _compaction_edit(body)) is None:
        return Reading(request, writer, NAMES)
    threshold = read_object(edit.get("trigger"), "trigger").get("value") or TRIGGER
    pauses = bool(edit.get("pause_after_compaction"))
    return Reading(
        request, writer, NAMES, prior, lambda: is_due(_chat_of(body, tell_size).request("", ""), threshold), pauses
    )


def chat_request_of(body: dict[str, Any]) -> ChatRequest:
    """Translate a request, with the text of a compaction in the place of what it stands for. Raises ``ApiError``."""
    return _chat_of(body, tell_text).request("", "", is_asking=not body.get("compaction"))


def _chat_of(body: dict[str, Any], tell: Teller) -> ChatBody:
    if body.get("thread") is not None:
        raise ApiError(400, NO_THREADS, "Threads are not offered: send the whole conversation.", param="thread")
    chat = ChatBody({name: body[name] for name in SAME if name in body}, names=NAMES)
    for name, value in body.items():
        if value not in (None, []) and name not in (*SAME, *READ, *CHECKED, *PASSED_OVER):
            raise invalid("This is not offered here: leave it out.", name)
    _check_beta(body)
    _system(chat, body.get("system"))
    chat.end_instructions()
    loaded: set[str] = set()
    messages = [
        read_object(message, f"messages.{at}") for at, message in enumerate(read_list(body.get("messages"), "messages"))
    ]
    newest = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=0)
    compacted = max((at for at, message in enumerate(messages) if _is_compacted(message)), default=0)
    for index, message in enumerate(messages):
        if index > newest or not message.get("clear_at"):  # a system message of one turn is gone with the next
            _message(chat, message, f"messages.{index}", loaded, tell if index >= compacted else tell_nothing)
    tools = [(f"tools.{index}", item) for index, item in enumerate(read_list(body.get("tools"), "tools"))]
    chat.tools = [_tool(item, param) for param, item in tools if not _is_deferred(item, loaded)]
    chat.options |= _options(body) | _options_of_turn(messages)
    chat.end_user = _end_user(read_object(body.get("metadata"), "metadata").get("user_id"))
    return chat


def _check_beta(body: dict[str, Any]) -> None:
    """Refuse by its name what asks other servers, or other payers, for help."""
    check_offered("beta", {"fallbacks": body.get("fallbacks") or None})
    check_offered("billing_policy", read_object(body.get("billing_policy"), "billing_policy"), "billing_policy")
    compaction = read_object(body.get("compaction"), "compaction")
    check_known(compaction, ("type",), "compaction")
    if compaction and compaction.get("type") != "summarize":
        raise invalid("type must be summarize.", "compaction.type")
    for index, edit in enumerate(_edits(body) or ()):
        param = f"context_management.edits.{index}"
        if edit.get("type") == COMPACT:
            _check_compact(edit, param)
        elif edit.get("type") not in CLEARS:
            raise invalid(f"{edit.get('type')!r} is not offered here: leave it out.", f"{param}.type")


def _check_compact(edit: dict[str, Any], param: str) -> None:
    check_known(edit, ("type", "trigger", "pause_after_compaction"), param)
    trigger = read_object(edit.get("trigger"), f"{param}.trigger")
    value = trigger.get("value")
    if trigger and (trigger.get("type") != "input_tokens" or type(value) is not int or value < 1):
        raise invalid("trigger must have the type input_tokens and a value above 0.", f"{param}.trigger")


def _edits(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the edits of the context; None where the request does not speak of them."""
    management = read_object(body.get("context_management"), "context_management")
    check_known(management, ("edits",), "context_management")
    edits = read_list(management.get("edits"), "context_management.edits")
    return [read_object(item, f"context_management.edits.{index}") for index, item in enumerate(edits)] or None


def _compaction_edit(body: dict[str, Any]) -> dict[str, Any] | None:
    return next((edit for edit in _edits(body) or () if edit.get("type") == COMPACT), None)


def _end_user(given: Any) -> str:
    """Return whom the program speaks for, without the session that Claude Code adds and changes."""
    text = given if isinstance(given, str) else ""
    try:
        named = orjson.loads(text)
    except orjson.JSONDecodeError:
        named = None
    if isinstance(named, dict):
        text = dump({name: value for name, value in named.items() if name != "session_id"}).decode()
    text = text.partition("_session_")[0]
    if len(text) > MAX_END_USER or unstorable_reason(text):
        raise invalid(f"user_id must be a text of at most {MAX_END_USER} characters, without NUL.", "metadata.user_id")
    return text


def _options(body: dict[str, Any]) -> dict[str, Any]:
    thinking, output = (
        read_object(body.get("thinking"), "thinking"),
        read_object(body.get("output_config"), "output_config"),
    )
    check_known(output, ("effort", "format"), "output_config")
    check_known(thinking, ("type", "display", "budget_tokens", "block_binding"), "thinking")
    if thinking.get("type") not in (None, *THINKING):
        raise invalid(f"type must be one of {', '.join(THINKING)}.", "thinking.type")
    options: dict[str, Any] = {
        "include_reasoning": thinking.get("type") in ("enabled", "adaptive") and thinking.get("display") != "omitted"
    }
    if body.get("stop_sequences"):
        options["stop"] = body["stop_sequences"]
    if output.get("effort"):
        options["reasoning_effort"] = output["effort"]
    if form := output.get("format") or body.get("output_format"):
        schema = {"name": "answer", "schema": read_object(form, "output_config.format").get("schema"), "strict": True}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    choice = read_object(body.get("tool_choice"), "tool_choice")
    if choice.get("type") == "tool":
        options["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif choice:
        if (kind := str(choice.get("type"))) not in CHOICES:
            raise invalid("type must be auto, any, tool or none.", "tool_choice.type")
        options["tool_choice"] = CHOICES[kind]
    if choice.get("disable_parallel_tool_use"):
        options["parallel_tool_calls"] = False
    return options


def _options_of_turn(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what system messages behind the last answer ask for: that holds for their turn alone."""
    options: dict[str, Any] = {}
    for index, message in enumerate(messages):
        config = read_object(message.get("output_config"), f"messages.{index}.output_config")
        check_known(config, ("effort",), f"messages.{index}.output_config")
        if message.get("role") == "assistant":
            options = {}
        elif config.get("effort"):
            options["reasoning_effort"] = config["effort"]
    return options


def _is_deferred(tool: Any, loaded: set[str]) -> bool:
    """Check whether the model must not see a tool before a search of the client's tools has found it."""
    return isinstance(tool, dict) and bool(tool.get("defer_loading")) and tool.get("name") not in loaded


def _tool(value: Any, param: str) -> dict[str, Any]:
    tool = read_object(value, param)
    kind = "custom" if tool.get("type") is None else tool["type"]
    known = CLIENT_TOOLS.get(kind) if isinstance(kind, str) else None
    if kind != "custom" and not known:
        raise invalid(
            f"{kind!r} is a tool that runs at Anthropic: those with an input_schema, bash, text editor and memory run "
            "at their clients.",
            f"{param}.type",
        )
    check_offered("tool", tool, param)
    description, schema = known or (
        read_text(tool.get("description"), f"{param}.description"),
        tool.get("input_schema"),
    )
    if examples := read_list(tool.get("input_examples"), f"{param}.input_examples"):
        shown = (f"Example of its input: {dump(example).decode()}" for example in examples)
        description = "\n".join((description, *shown)).strip()
    function = {
        "name": tool.get("name"),
        "description": description,
        "parameters": schema,
        "strict": tool.get("strict"),
    }
    return {"type": "function", "function": function}


# Messages


def _system(chat: ChatBody, value: Any) -> None:
    for index, block in enumerate(_blocks(value, "system")):
        if not str(block.get("text", "")).startswith(BILLING):
            chat.say("system", [block], f"system.{index}")


def _blocks(content: Any, param: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [read_object(block, f"{param}.{index}") for index, block in enumerate(read_list(content, param))]


def _message(chat: ChatBody, message: dict[str, Any], param: str, loaded: set[str], tell: Teller) -> None:
    """Translate a message. ``loaded`` gets the names of tools that results refer to."""
    blocks = _blocks(message.get("content"), f"{param}.content")
    if message.get("role") != "system":
        blocks = _behind_compaction(chat, blocks, f"{param}.content", tell)
    match message.get("role"):
        case "assistant" | "user" if message.get("content") and not blocks:
            pass  # it held nothing else
        case "user" if not blocks:
            raise invalid("The message is empty: give it a block.", f"{param}.content")
        case "user":
            _results(chat, blocks, param, loaded)
        case "assistant":
            texts = [
                block for block in blocks if block.get("type") not in ("thinking", "redacted_thinking", "tool_use")
            ]
            calls = [_call(block, f"{param}.content") for block in blocks if block.get("type") == "tool_use"]
            chat.say("assistant", texts, param, **({"tool_calls": calls} if calls else {}))
        case "system":
            chat.say("system", blocks, param)
        case _:
            raise invalid("role must be user, assistant or system.", f"{param}.role")


def _is_compacted(message: dict[str, Any]) -> bool:
    blocks = message.get("content")
    if not isinstance(blocks, list) or message.get("role") == "system":
        return False
    return any(isinstance(one, dict) and one.get("type") == "compaction" and one.get("content") for one in blocks)


def tell_size(chat: ChatBody, compacted: Compacted, source: str) -> None:
    """Tell the text, to be counted. Claude Code sends blocks back without it: what was said before one of these was
    compacted all the same, and counted in full it would be compacted anew by each request.
    """
    chat.forget()
    tell_text(chat, compacted, source)


def _behind_compaction(chat: ChatBody, blocks: list[dict[str, Any]], param: str, tell: Teller) -> list[dict[str, Any]]:
    """Tell what a compaction stands for in the place of all before it, and return the blocks behind it."""
    for index, block in enumerate(blocks):
        if block.get("type") == "compaction":
            text = read_text(block.get("content"), f"{param}.{index}.content")
            found = unpack(block.get("encrypted_content")) or Compacted(None, 0, text)
            tell(chat, replace(found, text=text), f"{param}.{index}")
    at = max((at for at, block in enumerate(blocks, 1) if block.get("type") == "compaction"), default=0)
    return blocks[at:]


def _call(block: dict[str, Any], param: str) -> dict[str, Any]:
    check_offered("call", block, param)
    arguments = dump(read_object(block.get("input"), f"{param}.input")).decode()
    return {"id": block.get("id"), "type": "function", "function": {"name": block.get("name"), "arguments": arguments}}


def _results(chat: ChatBody, blocks: list[dict[str, Any]], param: str, loaded: set[str]) -> None:
    """Translate results of tools, and what the user says beside them.

    Reminders that a program puts there become part of the last result: nobody said them.
    """
    results = [block for block in blocks if block.get("type") == "tool_result"]
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    reminders = rest if results and all(str(block.get("text", "")).startswith(REMINDER) for block in rest) else []
    for number, result in enumerate(results, 1):
        content = _blocks(result.get("content"), f"{param}.content")
        loaded |= {str(block.get("tool_name")) for block in content if block.get("type") == "tool_reference"}
        parts = [_part(block, f"{param}.content") for block in content]
        if result.get("is_error") and not any("error" in str(part.get("text"))[:200].lower() for part in parts):
            parts.insert(0, {"type": "text", "text": FAILED})
        beside = reminders if number == len(results) else []
        chat.say("tool", [*parts, *beside], param, tool_call_id=result.get("tool_use_id"))
    if rest and not reminders:
        chat.say("user", [_part(block, f"{param}.content") for block in rest], param)


def _part(block: dict[str, Any], param: str) -> dict[str, Any]:
    """Translate pictures and files. An unknown part stays, and is refused by its type."""
    source: dict[str, Any] = {}
    if block.get("type") in ("image", "document", "search_result"):
        check_offered(block["type"], block, param)
    if block.get("type") in ("image", "document"):
        source = read_object(block.get("source"), f"{param}.source")
    match block.get("type"), source.get("type"):
        case "text", _:
            return {"type": "text", "text": block.get("text")}
        case "tool_reference", _:
            return {
                "type": "text",
                "text": f"The tool {read_text(block.get('tool_name'), f'{param}.tool_name')} is loaded.",
            }
        case "search_result", _:
            found = [_part(each, param).get("text") for each in _blocks(block.get("content"), f"{param}.content")]
            named = (read_text(block.get(name), f"{param}.{name}") for name in ("title", "source"))
            return {"type": "text", "text": "\n".join(text for text in (*named, *found) if isinstance(text, str))}
        case "document", "text":
            title, data = read_text(block.get("title"), f"{param}.title"), source.get("data")
            return {"type": "text", "text": f"{title}\n\n{data}" if title and isinstance(data, str) else data}
        case "image", "url" if str(source.get("url")).startswith("data:"):
            return {"type": "image_url", "image_url": {"url": source.get("url")}}
        case "image", "base64":
            return {"type": "image_url", "image_url": {"url": _data_url(source)}}
        case "document", "base64":
            return {
                "type": "file",
                "file": {"filename": block.get("title") or "document", "file_data": _data_url(source)},
            }
        case "image" | "document" as kind, other:
            raise invalid(f"{kind} cannot be read from a source of type {other!r}: send base64.", f"{param}.source")
    return block


def _data_url(source: dict[str, Any]) -> str:
    return f"data:{source.get('media_type')};base64,{source.get('data')}"
