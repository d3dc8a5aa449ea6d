"""The YAML file that a scripted provider plays::

    usage: estimate            # default of the steps: estimate (default), none, or {prompt_tokens, completion_tokens}
    chars_per_token: 4         # for estimates; chunk_chars: 12, chunk_delay_ms: 0 and delay_ms: 0 are defaults, too
    steps:
      - match: "context health"   # a regular expression, searched in the newest messages
        text: "I clear my mind."
        tool_calls: [{name: clear_mind, arguments: {reminder_content: "Go on with step 3."}}]
      - text: "Hello, you said: {{last_user}}"
        needs: web_search         # the step is skipped if the request offers no tool of this name
        repeat: 1                 # the text, this many times over: to fill a context
        reasoning: "They greet me."  # comes before the text
        finish: refusal           # the reason for the end, if it is neither "stop" nor "tool_calls"
        usage: {prompt_tokens: 1200, completion_tokens: 80}
      - error: overloaded         # or {kind, message, retry_after}; after the step's text, if it has one

The first step is taken whose ``match`` is found (case matters, a dot spans lines) in the messages after the model's
last answer. If there is none, the steps without ``match`` are taken in order, by the request's cursor; the last one
repeats.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dominds.llm.json_text import dump
from dominds.llm.messages import ToolCall
from dominds.llm.provider import (
    AccessDenied,
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    ImagesRefused,
    MalformedStream,
    NetworkFailed,
    OutputAboveMaximum,
    OutputBudgetTooLarge,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RefusedForGood,
    RequestRefused,
    StaleReasoning,
    SystemRefused,
    TooLargeForRate,
)
from dominds.llm.stream import FinishReason
from dominds.yaml_file import read_yaml

MAX_REPEATED_CHARS = 8_000_000
MAX_DELAY_MS = 3_600_000

ERRORS: dict[str, type[ProviderError]] = {
    kind.kind: kind
    for kind in (
        RateLimited,
        Overloaded,
        ContextOverflow,
        AuthFailed,
        AccessDenied,
        RequestRefused,
        RefusedForGood,
        ForcingRefused,
        ImagesRefused,
        StaleReasoning,
        SystemRefused,
        OutputAboveMaximum,
        OutputBudgetTooLarge,
        TooLargeForRate,
        NetworkFailed,
        MalformedStream,
        ProviderTimeout,
    )
}


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """A step's report. ``kind`` is estimate, none or fixed. Fixed counts are reported as the script states them."""

    kind: str = "estimate"
    prompt: Any = None
    completion: Any = None


@dataclass(frozen=True, slots=True)
class ScriptedError:
    kind: type[ProviderError]
    message: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    match: re.Pattern[str] | None = None
    needs: str = ""  # a tool that the request has to offer
    text: str = ""
    reasoning: str = ""
    repeat: int = 1
    tool_calls: tuple[ToolCall, ...] = ()
    usage: ScriptedUsage = ScriptedUsage()
    delay_ms: int = 0
    chunk_delay_ms: int = 0
    finish: FinishReason | None = None
    error: ScriptedError | None = None


@dataclass(frozen=True, slots=True)
class Script:
    steps: tuple[Step, ...]
    chars_per_token: float = 4.0
    chunk_chars: int = 12


class BadScript(ValueError):
    """Raised for a script that cannot be played. The message names the place in the script and the reason."""


def load_script(path: Path) -> Script:
    """Return the script in a file, which is read again if it has changed. Raises ``BadScript`` or ``BadYaml``."""
    try:
        stat = path.stat()
    except OSError as error:
        raise BadScript(f"the file cannot be read ({error.strerror})") from error
    return _load_script(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _load_script(path: Path, _mtime_ns: int, _size_bytes: int) -> Script:
    file = read_yaml(path)
    if file.double_keys:
        raise BadScript(f"{file.double_keys[0]}: the key occurs twice")
    return script_from(file.document)


STEP_KEYS = {
    "match",
    "needs",
    "text",
    "reasoning",
    "repeat",
    "tool_calls",
    "usage",
    "delay_ms",
    "chunk_delay_ms",
    "finish",
    "error",
}
SCRIPT_KEYS = {"steps", "usage", "delay_ms", "chunk_delay_ms", "chars_per_token", "chunk_chars", "name", "description"}


def script_from(document: Any) -> Script:
    """Check a script's document. Raises ``BadScript`` at the first fault."""
    top = _mapping(document, "the file", SCRIPT_KEYS)
    steps = top.get("steps")
    if not isinstance(steps, list) or not steps:
        raise BadScript("steps: expected a list with at least one step")
    defaults = {key: top[key] for key in ("usage", "delay_ms", "chunk_delay_ms") if key in top}
    return Script(
        steps=tuple(_step(step, f"steps[{position}]", defaults) for position, step in enumerate(steps)),
        chars_per_token=_number(top.get("chars_per_token", 4.0), "chars_per_token", 0.1, 1000.0),
        chunk_chars=int(_number(top.get("chunk_chars", 12), "chunk_chars", 1, 1_000_000)),
    )


def _step(value: Any, path: str, defaults: Mapping[str, Any]) -> Step:
    step = {**defaults, **_mapping(value, path, STEP_KEYS)}
    text = _text(step.get("text", ""), f"{path}.text")
    most = max(1, MAX_REPEATED_CHARS // max(1, len(text)))
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list):
        raise BadScript(f"{path}.tool_calls: expected a list, found {calls!r}")
    return Step(
        match=_pattern(step.get("match"), f"{path}.match"),
        needs=_text(step.get("needs", ""), f"{path}.needs"),
        text=text,
        repeat=int(_number(step.get("repeat", 1), f"{path}.repeat", 1, most)),
        tool_calls=tuple(_call(call, f"{path}.tool_calls[{at}]") for at, call in enumerate(calls)),
        usage=_usage(step.get("usage", "estimate"), f"{path}.usage"),
        delay_ms=int(_number(step.get("delay_ms", 0), f"{path}.delay_ms", 0, MAX_DELAY_MS)),
        chunk_delay_ms=int(_number(step.get("chunk_delay_ms", 0), f"{path}.chunk_delay_ms", 0, MAX_DELAY_MS)),
        reasoning=_text(step.get("reasoning", ""), f"{path}.reasoning"),
        finish=_finish(step.get("finish"), f"{path}.finish"),
        error=_error(step.get("error"), f"{path}.error"),
    )


def _call(value: Any, path: str) -> ToolCall:
    call = _mapping(value, path, {"name", "arguments", "id"})
    arguments = call.get("arguments", {})
    if not isinstance(arguments, str):
        try:
            arguments = dump(arguments).decode()
        except TypeError as error:
            raise BadScript(f"{path}.arguments: {error}") from error
    return ToolCall(_text(call.get("id", ""), f"{path}.id"), _text(call.get("name"), f"{path}.name"), arguments)


def _usage(value: Any, path: str) -> ScriptedUsage:
    """Read the report. Fixed counts are not checked, since a script may play a server that reports nonsense."""
    if value in (None, "none"):
        return ScriptedUsage("none")
    if value == "estimate":
        return ScriptedUsage("estimate")
    counts = _mapping(value, path, {"prompt_tokens", "completion_tokens"})
    return ScriptedUsage("fixed", counts.get("prompt_tokens"), counts.get("completion_tokens", 0))


def _finish(value: Any, path: str) -> FinishReason | None:
    if value is None:
        return None
    try:
        return FinishReason(value)
    except ValueError as error:
        raise BadScript(f"{path}: expected one of {', '.join(FinishReason)}, found {value!r}") from error


def _error(value: Any, path: str) -> ScriptedError | None:
    if value is None:
        return None
    error = {"kind": value} if isinstance(value, str) else _mapping(value, path, {"kind", "message", "retry_after"})
    kind = ERRORS.get(str(error.get("kind")))
    if kind is None:
        raise BadScript(f"{path}: expected one of {', '.join(ERRORS)}, found {error.get('kind')!r}")
    wait = error.get("retry_after")
    return ScriptedError(
        kind,
        _text(error.get("message", f"The script plays the error '{kind.kind}'."), f"{path}.message"),
        None if wait is None else _number(wait, f"{path}.retry_after", 0, 1_000_000),
    )


def _pattern(value: Any, path: str) -> re.Pattern[str] | None:
    if value is None:
        return None
    try:
        return re.compile(_text(value, path), re.DOTALL)
    except re.error as error:
        raise BadScript(f"{path}: no regular expression: {error}") from error


def _mapping(value: Any, path: str, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadScript(f"{path}: expected a mapping, found {type(value).__name__}")
    unknown = [str(key) for key in value if key not in keys]
    if unknown:
        raise BadScript(f"{path}.{unknown[0]}: unknown key; known are {', '.join(sorted(keys))}")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise BadScript(f"{path}: expected text, found {value!r}")
    return value


def _number(value: Any, path: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadScript(f"{path}: expected a number from {least:g} to {most:g}, found {value!r}")
    return value
