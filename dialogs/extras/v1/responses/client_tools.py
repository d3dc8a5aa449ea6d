"""Tools that OpenAI's models know by their types, and clients run: shells, and patches of files.

Each becomes a function. A call of it comes back as the item that the client knows, and its output is told as text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialogs.extras.v1.fields import read_list, read_object, read_text
from dominds.llm.json_text import dump

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool of one type. Its calls are items of the type ``call``, which hold the arguments in ``holder``, beside the
    ``fixed`` fields of that. ``output`` tells a result as text.
    """

    call: str
    holder: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    output: Callable[[dict[str, Any], str], str]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def function(self, name: str, skills: str) -> dict[str, Any]:
        parameters = {"type": "object", "properties": dict(self.properties), "required": list(self.required)}
        return {"name": name, "description": f"{self.description}{skills}", "parameters": parameters}

    def item(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": self.call, self.holder: {**self.fixed, **arguments}}

    def arguments(self, item: dict[str, Any], param: str) -> str:
        held = read_object(item.get(self.holder), f"{param}.{self.holder}")
        return dump({name: value for name, value in held.items() if name in self.properties}).decode()


def _shell_output(item: dict[str, Any], param: str) -> str:
    return "\n".join(
        _command_output(read_object(each, f"{param}.output[{index}]"), f"{param}.output[{index}]")
        for index, each in enumerate(read_list(item.get("output"), f"{param}.output"))
    )


def _command_output(given: dict[str, Any], param: str) -> str:
    outcome = read_object(given.get("outcome"), f"{param}.outcome")
    errors = read_text(given.get("stderr"), f"{param}.stderr")
    lines = [read_text(given.get("stdout"), f"{param}.stdout").rstrip("\n"), errors.rstrip("\n")]
    if outcome.get("type") == "timeout":
        lines.append("[timed out]")
    elif outcome.get("exit_code"):
        lines.append(f"[exit code {outcome['exit_code']}]")
    return "\n".join(filter(None, lines))


def _patch_output(item: dict[str, Any], param: str) -> str:
    words = [read_text(item.get(name), f"{param}.{name}") for name in ("status", "output")]
    return ": ".join(filter(None, words))


def _local_output(item: dict[str, Any], param: str) -> str:
    return read_text(item.get("output"), f"{param}.output")


CLIENT_TOOLS = {
    "shell": ClientTool(
        "shell_call",
        "action",
        "Run commands in a shell, one after another.",
        {"commands": TEXTS, "timeout_ms": NUMBER, "max_output_length": NUMBER},
        ("commands",),
        _shell_output,
    ),
    "local_shell": ClientTool(
        "local_shell_call",
        "action",
        "Run a command, given as its words.",
        {
            "command": TEXTS,
            "env": {"type": "object", "additionalProperties": TEXT},
            "timeout_ms": NUMBER,
            "working_directory": TEXT,
        },
        ("command",),
        _local_output,
        {"type": "exec", "env": {}},
    ),
    "apply_patch": ClientTool(
        "apply_patch_call",
        "operation",
        "Create, update or delete a file. A diff is in the V4A format: lines that begin with '+', '-' or a space, in "
        "sections that begin with '@@'; that of a new file has '+' lines alone, and a deletion needs none.",
        {"type": {**TEXT, "enum": ["create_file", "update_file", "delete_file"]}, "path": TEXT, "diff": TEXT},
        ("type", "path"),
        _patch_output,
    ),
}
BY_CALL = {tool.call: name for name, tool in CLIENT_TOOLS.items()}
BY_OUTPUT = {f"{tool.call}_output": tool for tool in CLIENT_TOOLS.values()}


def is_run_by_client(tool: dict[str, Any], param: str) -> bool:
    """Check whether a tool is one of these. A shell that names another place than its client's runs at OpenAI."""
    if tool.get("type") not in CLIENT_TOOLS:
        return False
    return read_object(tool.get("environment"), f"{param}.environment").get("type") in (None, "local")


def function_of(tool: dict[str, Any], param: str) -> dict[str, Any]:
    """Return the function that stands for a tool, with the skills that its client has."""
    place = f"{param}.environment.skills"
    skills = read_list(read_object(tool.get("environment"), f"{param}.environment").get("skills"), place)
    lines = []
    for index, each in enumerate(skills):
        skill = read_object(each, f"{place}[{index}]")
        name, path, description = (
            read_text(skill.get(field), f"{place}[{index}].{field}") for field in ("name", "path", "description")
        )
        lines.append(f"\nThere is a skill {name!r} in {path}: {description}")
    return CLIENT_TOOLS[tool["type"]].function(tool["type"], "".join(lines))


def id_of_output(item: dict[str, Any]) -> Any:
    """Return the id of the call that an output belongs to: that of a local shell stands in its own id."""
    return item.get("call_id") or item.get("id")
