"""What Anthropic's Messages API refuses, by model family.

Here: the fields of a request, and its sizes; ``messages_content`` has what its messages hold.
The words for a beta value are ours.
"""

from typing import Any

from tests.doubles import shapes
from tests.doubles.binding import CONTROLS
from tests.doubles.messages_family import COUNTED_FIELDS, EFFORTS, FIELDS, MessagesRequest
from tests.doubles.rules import Offence, Rule, choice_without_tools, too_long

BETAS = {
    "block_binding": (CONTROLS,),
    "context_management": ("context-management-2025-06-27", "compact-2026-01-12"),
    "compaction": ("compact-2026-09-04",),
    "clear_at": ("mid-conversation-system-clear-at-2026-08-21",),
    "tool_addition": ("mid-conversation-tool-changes-2026-07-01",),
    "tool_removal": ("mid-conversation-tool-changes-2026-07-01",),
    "updates": ("thinking-display-updates-2026-08-18",),
}


# -- the request itself


def _header(request: MessagesRequest) -> Offence:
    return None if "anthropic-version" in request.headers else {}


def _key(request: MessagesRequest) -> Offence:
    return None if {"x-api-key", "authorization"} & set(request.headers) else {}


def _extra(request: MessagesRequest) -> Offence:
    known = COUNTED_FIELDS if request.is_count else FIELDS
    return next(({"field": field} for field in request.body if field not in known), None)


def _missing(request: MessagesRequest) -> Offence:
    needed = ("model", "messages") if request.is_count else ("model", "max_tokens", "messages")
    return next(({"field": field} for field in needed if field not in request.body), None)


def _beta(request: MessagesRequest) -> Offence:
    thinking = request.body.get("thinking") or {}
    result = {"block_binding": f"thinking.{request.thinking}.block_binding"} if "block_binding" in thinking else {}
    result |= {name: name for name in ("context_management", "compaction") if name in request.body}
    if thinking.get("display") == "updates":
        result["updates"] = f"thinking.{request.thinking}.display"
    for at, message in enumerate(request.body["messages"]):
        if "clear_at" in message:
            result["clear_at"] = f"messages.{at}.clear_at"
    for at, position, block, _ in request.blocks:
        if block["type"] in BETAS:
            result[block["type"]] = f"messages.{at}.content.{position}.{block['type']}"
    return next(({"path": path} for name, path in result.items() if not request.betas & set(BETAS[name])), None)


# -- thinking, tools and sampling


def _thinking_type(request: MessagesRequest) -> Offence:
    if request.thinking not in request.family.thinking:
        return {"type": request.thinking}
    effort = (request.body.get("output_config") or {}).get("effort", "high")
    highest = EFFORTS.index(request.family.highest_unthinking_effort)
    return {"type": "disabled"} if request.thinking == "disabled" and EFFORTS.index(effort) > highest else None


def _budget_size(request: MessagesRequest) -> Offence:
    budget = (request.body.get("thinking") or {}).get("budget_tokens", 1_024)
    return {} if request.thinking == "enabled" and budget < 1_024 else None


def _budget_room(request: MessagesRequest) -> Offence:
    budget = (request.body.get("thinking") or {}).get("budget_tokens", 0)
    return (
        {} if request.thinking == "enabled" and not request.is_count and request.body["max_tokens"] <= budget else None
    )


def _forced(request: MessagesRequest) -> Offence:
    return {} if request.family.forces == "never" and request.choice in ("any", "tool") else None


def _forced_with_budget(request: MessagesRequest) -> Offence:
    return {} if request.thinking == "enabled" and request.choice in ("any", "tool") else None


def _unknown_tool(request: MessagesRequest) -> Offence:
    name = (request.body.get("tool_choice") or {}).get("name")
    names = [tool["name"] for tool in request.body.get("tools") or ()]
    return {"name": name} if name and name not in names else None


def _double_tool(request: MessagesRequest) -> Offence:
    names = [tool["name"] for tool in request.body.get("tools") or ()]
    return {} if len(set(names)) < len(names) else None


def _sampling(request: MessagesRequest) -> Offence:
    if request.family.has_sampling:
        return None
    given = {name: request.body.get(name) for name in ("temperature", "top_p", "top_k")}
    return next(({"field": name} for name, value in given.items() if value not in (None, 1)), None)


def _sampling_with_thinking(request: MessagesRequest) -> Offence:
    return {} if request.thinking == "enabled" and request.body.get("temperature", 1) != 1 else None


def _no_messages(request: MessagesRequest) -> Offence:
    return None if request.body["messages"] else {}


def _missing_content(request: MessagesRequest) -> Offence:
    return next(({"at": at} for at, message in enumerate(request.body["messages"]) if "content" not in message), None)


def _role(request: MessagesRequest) -> Offence:
    roles = ("user", "assistant", "system")
    return next(({"at": at} for at, m in enumerate(request.body["messages"]) if m.get("role") not in roles), None)


# -- sizes


def _output_size(request: MessagesRequest) -> Offence:
    asked, maximum = request.body.get("max_tokens", 1), request.family.maximum
    return {"asked": asked, "maximum": maximum, "model": request.body["model"]} if asked > maximum else None


def _no_output(request: MessagesRequest) -> Offence:
    return {} if request.body.get("max_tokens", 1) < 1 else None


def _no_room(request: MessagesRequest) -> Offence:
    asked, window = request.body.get("max_tokens", 0), request.family.window
    if request.family.stops_at_window or request.prompt_tokens + asked <= window:
        return None
    return {"tokens": request.prompt_tokens, "asked": asked, "window": window}


THINKING_DOCS = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
VERSIONS_WITHOUT_SAMPLING = ("2026-10-21",)


def _sampling_of_version(request: MessagesRequest) -> Offence:
    if request.headers.get("anthropic-version") not in VERSIONS_WITHOUT_SAMPLING:
        return None
    return next(({"field": name} for name in ("temperature", "top_p", "top_k") if name in request.body), None)


def _named_tools(request: MessagesRequest, name: str) -> list[tuple[str, Any]]:
    return [(f"tools.{at}.custom.{name}", tool.get(name)) for at, tool in enumerate(request.body.get("tools") or ())]


def _bad_name(request: MessagesRequest) -> Offence:
    used = (
        (f"messages.{at}.content.{position}.tool_use.name", block.get("name"))
        for at, position, block, _ in request.blocks
        if block["type"] == "tool_use"
    )
    return shapes.bad_name([*_named_tools(request, "name"), *used])


def _bad_schema(request: MessagesRequest) -> Offence:
    return shapes.bad_schema(_named_tools(request, "input_schema"))


def _bad_key(request: MessagesRequest) -> Offence:
    return shapes.bad_key(_named_tools(request, "input_schema"))


SHAPE = (
    Rule("version", _header, "anthropic-version: header is required"),
    Rule("key", _key, "x-api-key header is required", 401, "authentication_error"),
    Rule("sampling of version", _sampling_of_version, "{field}: Extra inputs are not permitted"),
    Rule("unknown field", _extra, "{field}: Extra inputs are not permitted"),
    Rule("missing field", _missing, "{field}: Field required"),
    Rule("no messages", _no_messages, "messages: at least one message is required"),
    Rule("role", _role, "messages.{at}.role: Input should be 'user', 'assistant' or 'system'"),
    Rule("missing content", _missing_content, "messages.{at}.content: Field required"),
    Rule("beta field", _beta, "{path}: Extra inputs are not permitted"),
    Rule(
        "output size",
        _output_size,
        "max_tokens: {asked} > {maximum}, which is the maximum allowed number of output tokens for {model}",
    ),
    Rule("no output", _no_output, "max_tokens: Input should be greater than or equal to 1"),
    Rule(
        "thinking type",
        _thinking_type,
        '"thinking.type.{type}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
    ),
    Rule("budget size", _budget_size, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
    Rule(
        "budget room",
        _budget_room,
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
        f"{THINKING_DOCS}#max-tokens-and-context-window-size",
    ),
    Rule("forced tool", _forced, 'tool_choice: type "tool" and "any" are not supported for this model.'),
    Rule(
        "forced tool with a budget",
        _forced_with_budget,
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    Rule("choice without tools", choice_without_tools, "tool_choice may only be specified while providing tools."),
    Rule("unknown tool", _unknown_tool, "Tool '{name}' not found in provided tools"),
    Rule("tool twice", _double_tool, "tools: Tool names must be unique."),
    Rule("sampling", _sampling, "`{field}` is deprecated for this model."),
    Rule(
        "sampling with thinking",
        _sampling_with_thinking,
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our "
        f"documentation at {THINKING_DOCS}",
    ),
    Rule("name", _bad_name, "{path}: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"),
    Rule("schema", _bad_schema, "{path}: {reason}"),
    Rule("property key", _bad_key, "{path}: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"),
)
SIZE = (
    Rule("too long", too_long, "prompt is too long: {tokens} tokens > {window} maximum"),
    Rule(
        "no room",
        _no_room,
        "input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, decrease input length or "
        "`max_tokens` and try again",
    ),
)
