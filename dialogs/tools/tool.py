"""A tool as a value: its specification, how it runs, and its result."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import NoneType
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import orjson
from jsonschema import Draft202012Validator

from dialogs.context.tool_calls import Awaited, Result
from dialogs.errors import Refusal
from dialogs.models import Agent
from dialogs.store.change import Change
from dominds.llm.messages import ToolSpec

Given = ParamSpec("Given")
Outcome = TypeVar("Outcome")


class Stopped(Exception):
    """Raised when a person pressed stop while the tool ran."""


class AsksPerson(Exception):
    """Raised when a tool needs a person's answer. It runs once more, with that answer."""

    def __init__(self, text: str, choices: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.text, self.choices = text, choices


class Progress:
    """The link between a running tool and the people who watch it.

    The tool calls ``report``. During a long wait it checks ``is_stopped``, or registers a function that ends the wait
    by ``on_stop``; then it raises ``Stopped``.
    """

    def __init__(self, show: Callable[[str], None] = lambda line: None) -> None:
        self._show = show
        self._stop = threading.Event()
        self._on_stop: Callable[[], object] = lambda: None

    def report(self, line: str) -> None:
        """Show the newest line of output to people while the tool runs. Never blocks; the line is not stored."""
        self._show(line)

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def on_stop(self, call: Callable[[], object]) -> None:
        """Have another thread call ``call`` to end the tool's wait, or call it at once if stop was pressed before."""
        self._on_stop = call
        if self.is_stopped:
            call()

    def stop(self) -> None:
        self._stop.set()
        self._on_stop()


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a call. ``answers`` are a person's answers to questions of its tool, by question."""

    dialog_id: UUID
    call_id: str
    arguments: Mapping[str, Any]
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    ``inside`` runs in the transaction that stores its result, so that both happen or neither. ``outside`` runs before
    that transaction, with none open. ``ahead`` does so too, and computes what ``inside`` will need. A ``repeatable``
    tool may run again after a crash; a call of any other tool then gets the result that its outcome is unknown.
    """

    spec: ToolSpec
    inside: Callable[[Change, Invocation], Result | Awaited] | None = None
    outside: Callable[[Invocation], Result] | None = None
    ahead: Callable[[Invocation], None] | None = None
    repeatable: bool = True
    read_only: bool = True  # as its server states, for a tool of a server
    always: bool = False  # offered to every agent
    source: str = ""  # the server that runs it, by id and address
    schema: Draft202012Validator = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", Draft202012Validator(dict(self.spec.parameters)))

    @property
    def name(self) -> str:
        return self.spec.name

    def needs_approval(self, when: str) -> bool:
        """Check whether a person must allow each call, by an agent's ``tool_approval``.

        Tools that every agent has change nothing outside of the product, and neither do tools that run inside a
        transaction.
        """
        if self.always or self.outside is None or when == Agent.ToolApproval.NEVER:
            return False
        return when != Agent.ToolApproval.CHANGES or not self.read_only

    @property
    def identity(self) -> str:
        """Return the name that an approval allows: that of the server, if any, and after the last slash the tool's."""
        return f"{self.source}/{self.name}" if self.source else self.name

    @property
    def is_clients(self) -> bool:
        """Check whether the client of ``/v1`` runs the tool, neither inside nor outside a transaction here."""
        return self.inside is None and self.outside is None


def explain_refusals(run: Callable[Given, Outcome]) -> Callable[Given, Outcome | Result]:
    """Wrap a tool's function, so that the model reads the reason of a ``Refusal`` as its result."""

    @wraps(run)
    def answer(*args: Given.args, **named: Given.kwargs) -> Outcome | Result:
        try:
            return run(*args, **named)
        except Refusal as refusal:
            return Result(refusal.message, failed=True)

    return answer


JSON_KINDS: Mapping[type, frozenset[str]] = {
    dict: frozenset({"object"}),
    list: frozenset({"array"}),
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
}


class ToolArgumentsInvalid(Exception):
    """Raised with what was found and what was expected, so that the model can try again."""


def read_arguments(tool: Tool, raw: str) -> dict[str, Any]:
    """Parse and check a call's arguments. Raises ``ToolArgumentsInvalid``."""
    try:
        arguments = orjson.loads(raw or "{}")
        if isinstance(arguments, str):  # some models write the object as a text once more
            arguments = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError as error:
        raise ToolArgumentsInvalid(
            f"The arguments of {tool.name} are not JSON ({error}). Send one JSON object."
        ) from None
    if not isinstance(arguments, dict | NoneType):
        raise ToolArgumentsInvalid(
            f"The arguments of {tool.name} are a {type(arguments).__name__}. Send one JSON object."
        )
    arguments = _as_meant(tool.spec.parameters, arguments or {})
    problem = next(iter(tool.schema.iter_errors(arguments)), None)
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the arguments"
        raise ToolArgumentsInvalid(f"{tool.name}: {where}: {problem.message}. Correct it and call again.")
    return dict(arguments)


def _as_meant(schema: Any, value: Any) -> Any:
    """Return arguments as the model meant them: without null for an optional argument, which models send for what they
    leave out, and with values parsed that are JSON inside a string, as many servers send lists, objects and numbers.
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, str):
        return _unquote(schema, value)
    if isinstance(value, list):
        return [_as_meant(schema.get("items"), item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required") or ()
    return {
        key: _as_meant(known.get(key), part)
        for key, part in value.items()
        if part is not None or key in required or key not in known or _may_be_null(known[key])
    }


def _unquote(schema: Mapping[str, Any], text: str) -> Any:
    """Parse a text as JSON if the schema takes the value and no text; else return the text."""
    kinds = _kinds_of(schema)
    if "string" in kinds or not kinds - {"null"}:
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if JSON_KINDS.get(type(value), frozenset()) & kinds else text


def _kinds_of(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema, or its branches, accept; empty if the schema or one branch does not tell."""
    kinds = schema.get("type")
    if kinds is not None:
        return set(kinds) if isinstance(kinds, list) else {kinds}
    branches = [branch for name in ("anyOf", "oneOf") for branch in schema.get(name) or ()]
    each = [_kinds_of(branch) if isinstance(branch, Mapping) else set() for branch in branches]
    return set().union(*each) if all(each) else set()


def _may_be_null(schema: Any) -> bool:
    """Check whether a schema accepts null, or may accept it, as a reference may."""
    if not isinstance(schema, Mapping):
        return True
    kinds = schema.get("type")
    if kinds is None:
        return not any(key in schema for key in ("enum", "const")) or None in schema.get("enum", ())
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or bool(schema.get("nullable"))


def parameters(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
