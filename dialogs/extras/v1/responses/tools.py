"""Tools of ``/v1/responses`` as functions, and calls of these as the items that the client knows.

A tool in a namespace becomes a function with both names, one that takes free text a function with one text, a shell of
the client's a function of commands. Those that run on OpenAI's servers are left out: agents' programs send them along
with their own in each request.
"""

from dataclasses import dataclass, field
from typing import Any

from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.fields import read_list, read_object, read_text
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.options import check_offered
from dialogs.extras.v1.responses.client_tools import BY_CALL, CLIENT_TOOLS, function_of, is_run_by_client
from dominds.llm.json_text import arguments_object, dump

LONGEST_NAME = 64
FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class Named:
    """A tool as the client names it; ``is_custom`` ones take free text, and ``is_known`` ones are known by a type."""

    name: str
    namespace: str = ""
    is_custom: bool = False
    is_known: bool = False

    @property
    def function(self) -> str:
        return f"{self.namespace}__{self.name}"[-LONGEST_NAME:] if self.namespace else self.name

    def item(self, call: Call) -> dict[str, Any]:
        """Return the client's item for a call, without id and status."""
        if self.is_known:
            return {**CLIENT_TOOLS[self.name].item(arguments_object(call.arguments)), "call_id": call.id}
        space = {"namespace": self.namespace} if self.namespace else {}
        if self.is_custom:
            text = arguments_object(call.arguments).get("input")
            given = text if isinstance(text, str) else call.arguments
            return {"type": "custom_tool_call", "call_id": call.id, "name": self.name, **space, "input": given}
        return {"type": "function_call", "call_id": call.id, "name": self.name, **space, "arguments": call.arguments}


@dataclass(slots=True)
class Tools:
    """The tools of a request. ``functions`` are those of a chat completion; ``named`` has their clients' names."""

    functions: list[dict[str, Any]] = field(default_factory=list)
    named: dict[str, Named] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, value: Any, param: str, namespace: str = "") -> None:
        for index, item in enumerate(read_list(value, param)):
            tool = read_object(item, f"{param}[{index}]")
            match tool.get("type"):
                case "function" | "custom":
                    check_offered("tool", tool, f"{param}[{index}]")
                    self._add(tool, namespace, f"{param}[{index}]")
                case str(kind) if is_run_by_client(tool, f"{param}[{index}]"):
                    check_offered("tool", tool, f"{param}[{index}]")
                    self.functions.append({"type": "function", "function": function_of(tool, f"{param}[{index}]")})
                    self.named[kind] = Named(kind, is_known=True)
                case "namespace":
                    inner = read_text(tool.get("name"), f"{param}[{index}].name")
                    self.add(tool.get("tools"), f"{param}[{index}].tools", inner)
                case kind:
                    place = read_object(tool.get("environment"), f"{param}[{index}].environment").get("type")
                    self.left_out.append(f"{kind} in {place}" if place else str(kind))

    def _add(self, tool: dict[str, Any], namespace: str, param: str) -> None:
        is_custom = tool["type"] == "custom"
        named = Named(read_text(tool.get("name"), f"{param}.name"), namespace, is_custom)
        function: dict[str, Any] = {"name": named.function, "description": tool.get("description")}
        if is_custom:
            definition = read_object(tool.get("format"), f"{param}.format").get("definition")
            lines = (
                read_text(tool.get("description"), f"{param}.description"),
                read_text(definition, f"{param}.format.definition"),
            )
            function["description"] = "\n\n".join(line for line in lines if line)
            function["parameters"] = FREE_TEXT
        else:
            function |= {"parameters": tool.get("parameters"), "strict": tool.get("strict")}
        self.functions.append({"type": "function", "function": function})
        self.named[named.function] = named

    def check(self) -> None:
        """Raise ``ApiError`` where nothing that can be called is left."""
        if self.left_out and not self.functions:
            raise invalid(f"These run at OpenAI, not here: {', '.join(self.left_out)}. Send functions.", "tools")

    def choice(self, value: Any) -> Any:
        """Return a ``tool_choice`` as chat completions have it."""
        match value:
            case {"type": "function" | "custom", "name": str(name)}:
                return {
                    "type": "function",
                    "function": {"name": Named(name, str(value.get("namespace") or "")).function},
                }
            case {"type": "shell" | "apply_patch" as name}:
                return {"type": "function", "function": {"name": name}}
            case {"type": "allowed_tools", "mode": mode, "tools": list(tools)}:
                allowed = {str(tool.get("name") or tool.get("type")) for tool in tools if isinstance(tool, dict)}
                self.functions = [tool for tool in self.functions if tool["function"]["name"] in allowed]
                return mode
            case None | str():
                return value
        raise invalid("tool_choice must be auto, none, required or name a function.", "tool_choice")

    def item(self, call: Call) -> dict[str, Any]:
        return self.named.get(call.name, Named(call.name)).item(call)


def call_of(item: dict[str, Any], param: str) -> dict[str, Any]:
    """Return a call that comes back, as chat completions have it."""
    if known := BY_CALL.get(item["type"]):
        function = {"name": known, "arguments": CLIENT_TOOLS[known].arguments(item, param)}
        return {"id": item.get("call_id"), "type": "function", "function": function}
    is_custom = item["type"] == "custom_tool_call"
    name, namespace = (read_text(item.get(field), f"{param}.{field}") for field in ("name", "namespace"))
    named = Named(name, namespace, is_custom)
    arguments = dump({"input": item.get("input")}).decode() if is_custom else item.get("arguments")
    return {"id": item.get("call_id"), "type": "function", "function": {"name": named.function, "arguments": arguments}}
