"""Reader of the tools of a chat completion, and of the choice among them."""

import re
from typing import Any

from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.fields import read_flag, read_list, read_object, read_text, storable
from dominds.llm.json_text import dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL

TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,120}")  # models are told a shorter one where their API takes no such name


def tools_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools = [_tool(item, f"tools[{index}]") for index, item in enumerate(read_list(body.get("tools"), "tools"))]
    names = [tool["name"] for tool in tools]
    if len(names) > len(set(names)):
        raise invalid("Two tools have the same name.", "tools")
    return tools


def _tool(value: Any, param: str) -> dict[str, Any]:
    item = read_object(value, param)
    function = read_object(item.get("function"), f"{param}.function")
    if item.get("type") != "function":
        raise invalid("Only tools of type function are understood.", f"{param}.type")
    name, description = function.get("name"), read_text(function.get("description"), f"{param}.function.description")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise invalid(
            "A tool's name has 1 to 120 letters, digits, dots, colons, slashes, dashes or underscores.",
            f"{param}.function.name",
        )
    parameters = read_object(function.get("parameters"), f"{param}.function.parameters")
    if "\\u0000" in dump(parameters).decode():
        raise invalid("parameters hold a NUL character, which cannot be stored.", f"{param}.function.parameters")
    strict = read_flag(function.get("strict"), f"{param}.function.strict")
    return {
        "name": name,
        "description": storable(description, f"{param}.function.description"),
        "parameters": parameters or {"type": "object", "properties": {}},
        **({"strict": True} if strict else {}),
    }


def allowed_tools(tools: list[dict[str, Any]], choice: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the tools that a choice leaves to the model, and the choice among these."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return tools, choice
    param = "tool_choice.allowed_tools"
    allowed = read_object(choice.get("allowed_tools"), param)
    if allowed.get("mode") not in ("auto", "required"):
        raise invalid(f"{param} must have the mode auto or required.", f"{param}.mode")
    named = read_list(allowed.get("tools"), f"{param}.tools")
    names = [read_object(read_object(tool, param).get("function"), param).get("name") for tool in named]
    if any(name not in [tool["name"] for tool in tools] for name in names):
        raise invalid(f"{param} names no tool of this request.", f"{param}.tools")
    return [tool for tool in tools if tool["name"] in names], allowed["mode"]


def required_tool_of(choice: Any, tools: list[dict[str, Any]]) -> str:
    """Return the tool that must be called, any of them, or that none may be."""
    names = [tool["name"] for tool in tools]
    if choice == "none" and tools:
        return NO_TOOL
    if choice in (None, "auto", "none"):
        return ""
    if choice == "required":
        if not names:
            raise invalid("tool_choice requires a call, and there are no tools.", "tool_choice")
        return names[0] if len(names) == 1 else ANY_TOOL
    if not isinstance(choice, dict) or choice.get("type") not in (None, "function"):
        raise invalid("tool_choice must be auto, none, required or name a function.", "tool_choice")
    name = read_object(choice.get("function"), "tool_choice.function").get("name")
    if name not in names:
        raise invalid("tool_choice names no tool of this request.", "tool_choice")
    return str(name)
