"""Questions that MCP servers ask in the middle of a call (elicitation): how a person reads one, and how the server
reads the answer.

No call is held open while a person thinks: it is cancelled, and made once more when the answer is there.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from mcp.types import ElicitRequestParams, ElicitResult

YES, NO, DONE = "Yes", "No", "Done"
WORDS = {"done": True, "yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
MOST_CHOICES = 8  # if there are more, the text lists them
LINE = re.compile(r"^\s*([\w.-]+)\s*[:=]\s*(.*?)\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for a person, with answers to choose from if there are only a few."""

    text: str
    choices: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Asking:
    """The questions of a server in one call. ``answers`` are a person's answers by question; ``open`` is the question
    that still needs one.
    """

    server_id: str
    tool: str
    answers: Mapping[str, str] = field(default_factory=dict)
    open: Asked | None = None

    def respond(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Answer the server as a person did, or cancel the call if they have not answered yet."""
        from mcp.types import ElicitRequestURLParams, ElicitResult

        text = f"The tool server {self.server_id} asks, for {self.tool}: {params.message}"
        if isinstance(params, ElicitRequestURLParams):
            schema: Mapping[str, Any] = {}
            question = Asked(f"{text}\n\nOpen {params.url} and follow it there.", (DONE, NO))
        else:
            schema = params.requested_schema
            question = _question(text, schema)
        asked = question
        while (answer := self.answers.get(asked.text)) is not None:
            if not schema.get("properties"):
                return ElicitResult(action="accept" if WORDS.get(answer.strip().lower()) else "decline")
            try:
                return ElicitResult(action="accept", content=content_of(schema, answer))
            except ValueError as problem:
                asked = replace(question, text=f"{question.text}\n\n“{answer}” does not fit: {problem}")
        self.open = asked
        return ElicitResult(action="cancel")


def _question(text: str, schema: Mapping[str, Any]) -> Asked:
    fields = dict(schema.get("properties") or {})
    if not fields:
        return Asked(text, (YES, NO))
    if len(fields) == 1:
        ((name, field),) = fields.items()
        choices = (YES, NO) if field.get("type") == "boolean" else tuple(_options(field))
        if choices and len(choices) <= MOST_CHOICES and field.get("type") != "array":
            return Asked(text, choices)
        return Asked(f"{text}\n\n{_describe(name, field)}")
    lines = [f"- {_describe(name, field)}" for name, field in fields.items()]
    return Asked("\n".join((text, "", "Answer with a line for each, as in “name: value”:", *lines)))


def _describe(name: str, field: Mapping[str, Any]) -> str:
    about = [str(field[key]) for key in ("title", "description") if field.get(key)]
    if options := list(_options(field)):
        about.append(f"one of {', '.join(options)}")
    return f"{name}: {'; '.join(about)}" if about else name


def _options(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a field may have, by their names for people."""
    inner = field.get("items") if field.get("type") == "array" else field
    field = inner if isinstance(inner, Mapping) else {}
    if titled := field.get("oneOf") or field.get("anyOf"):
        return {str(option.get("title") or option.get("const")): option.get("const") for option in titled}
    values = field.get("enum") or ()
    return dict(zip(map(str, field.get("enumNames") or values), values, strict=False))


def content_of(schema: Mapping[str, Any], answer: str) -> dict[str, Any]:
    """Read a person's answer as the fields that a server wants. Raises ``ValueError`` with the reason if it does not
    fit.
    """
    fields = dict(schema.get("properties") or {})
    given = _read_answer(fields, answer)
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    content |= {name: _value(fields[name], value) for name, value in given.items() if name in fields}
    problem = next(Draft202012Validator(dict(schema)).iter_errors(content), None)
    if problem is not None:
        raise ValueError(problem.message)
    return content


def _read_answer(fields: Mapping[str, Any], answer: str) -> dict[str, Any]:
    try:
        document = orjson.loads(answer)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict):
        return document
    if len(fields) == 1:
        return dict.fromkeys(fields, answer.strip())
    return dict(LINE.findall(answer))


def _value(field: Mapping[str, Any], given: Any) -> Any:
    """Read one value by its field's type. An unreadable one is returned as it is, for the schema to refuse."""
    if not isinstance(given, str):
        return given
    options = {name.lower(): value for name, value in _options(field).items()}
    match field.get("type"):
        case "array":
            return [options.get(part.strip().lower(), part.strip()) for part in given.split(",")]
        case "boolean":
            return WORDS.get(given.lower(), given)
        case "integer" | "number" as kind:
            try:
                number = int(given) if kind == "integer" else float(given)
            except ValueError:
                return given
            return number if math.isfinite(number) else given
    return options.get(given.lower(), given)
