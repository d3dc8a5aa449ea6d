"""A provider without a model: it answers by a script. For demos, tests and anyone without a key.

A script is a YAML file::

    usage: estimate            # default of its steps: estimate (default), none, or {prompt_tokens, completion_tokens}
    chars_per_token: 4         # for estimates; chunk_chars: 12, chunk_delay_ms: 0 and delay_ms: 0 are defaults, too
    steps:
      - match: "context health"   # a regular expression, searched in the newest messages
        text: "I clear my mind."
        tool_calls: [{name: clear_mind, arguments: {reminder_content: "Go on with step 3."}}]
      - text: "Hello, you said: {{last_user}}"
        repeat: 1                 # the text, this many times over: to fill a context
        reasoning: "They greet me."  # thought before the text
        finish: refusal           # why it stops, where that is neither the text's end nor its calls
        usage: {prompt_tokens: 1200, completion_tokens: 80}
      - error: overloaded         # or {kind, message, retry_after}; after the step's text, if it has one

The first step whose ``match`` is found (case matters, a dot spans lines) in what came after the model's last answer is
taken. Otherwise the steps without ``match`` are taken in order, by the request's cursor; the last one repeats.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from dominds.llm.json_text import dumped
from dominds.llm.messages import Message, Request, Role, ToolCall, chars_of
from dominds.llm.models.model import MODALITIES, ProviderKind
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    MalformedStream,
    NetworkFailed,
    OutputBudgetTooLarge,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RefusedForGood,
    RequestRefused,
    StaleReasoning,
    StreamAborted,
    SystemRefused,
)
from dominds.llm.providers.wire import with_own_ids
from dominds.llm.stream import Finished, FinishReason, ReasoningDelta, Started, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable, usage_from
from dominds.yaml_file import BadYaml, read_yaml

RECALLED = "[Recalled by the runtime"  # how ``remediation.recall`` heads what it brings back
SCRIPTS = Path(__file__).parent / "scripts"  # shipped ones, by name
MAX_REPEATED_CHARS = 8_000_000
MAX_DELAY_MS = 3_600_000

ERRORS: dict[str, type[ProviderError]] = {
    kind.kind: kind
    for kind in (
        RateLimited,
        Overloaded,
        ContextOverflow,
        AuthFailed,
        RequestRefused,
        RefusedForGood,
        ForcingRefused,
        StaleReasoning,
        SystemRefused,
        OutputBudgetTooLarge,
        NetworkFailed,
        MalformedStream,
        ProviderTimeout,
    )
}


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """What a step reports: fixed counts, as written and not yet believed; neither: ``kind`` estimate or none."""

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
    """A script says something that cannot be played; the text names the path inside it and the reason."""


# Choosing a step


def step_for(script: Script, request: Request) -> tuple[Step, str]:
    """The step that answers, and the cursor for the conversation's next request."""
    heard = "\n".join(message.text for message in newest_messages(request.messages) if not is_recalled(message))
    for step in script.steps:
        if step.match is not None and step.match.search(heard):
            return step, request.cursor
    plain = [step for step in script.steps if step.match is None]
    if not plain:
        raise BadScript("steps: none matches the newest messages, and none is without `match`")
    position = int(request.cursor) if request.cursor.isdecimal() else 0
    return plain[min(position, len(plain) - 1)], str(position + 1)


def newest_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What came after the model's last answer."""
    after = next((at + 1 for at in reversed(range(len(messages))) if messages[at].role is Role.ASSISTANT), 0)
    return messages[after:]


def is_recalled(message: Message) -> bool:
    """Earlier passages that the runtime brought back are nothing new to answer."""
    return message.role is Role.USER and message.text.startswith(RECALLED)


def text_of(step: Step, request: Request) -> str:
    spoken = (m.text for m in reversed(request.messages) if m.role is Role.USER and not is_recalled(m))
    return step.text.replace("{{last_user}}", next(spoken, "")) * step.repeat


def usage_of(step: Step, script: Script, request: Request, said_chars: int) -> UsageReport:
    """The step's report. An estimate follows the whole request's size and counts as reported: nothing else is real."""
    if step.usage.kind == "none":
        return UsageUnavailable("the script reports none")
    if step.usage.kind == "fixed":
        return usage_from(step.usage.prompt, step.usage.completion)
    return usage_from(
        max(1, round(size_chars(request) / script.chars_per_token)), round(said_chars / script.chars_per_token)
    )


def size_chars(request: Request) -> int:
    """Characters of a whole request: instructions, messages with their calls, and tool schemas."""
    tools = sum(len(tool.name) + len(tool.description) + len(dumped(tool.parameters)) for tool in request.tools)
    return len(request.instructions) + chars_of(request.messages) + tools


# Playing it


@dataclass(frozen=True, slots=True)
class Scripted:
    """A provider that plays the script at ``path``. The file may change between requests."""

    path: Path

    def stream(self, request: Request) -> "ScriptedStream":
        return ScriptedStream(self.path, request)


SCRIPTED = ProviderKind(
    "scripted", lambda model, key: Scripted(Path(model.script)), is_server=False, can_force=True, modalities=MODALITIES
)


class ScriptedStream:
    """One played answer. See ``provider.Stream``."""

    def __init__(self, path: Path, request: Request) -> None:
        self._path = path
        self._request = request
        self._aborted = threading.Event()

    @property
    def body(self) -> bytes:
        """Without epoch and cursor, which no model sees."""
        asked = self._request
        shown = {
            "model": asked.model,
            "instructions": asked.instructions,
            "messages": asked.messages,
            "tools": [[tool.name, tool.description, dict(tool.parameters)] for tool in asked.tools],
            "force": asked.force,
            "max_output_tokens": asked.max_output_tokens,
            "conversation": asked.conversation,
        }
        return orjson.dumps(shown, default=repr)

    def abort(self) -> None:
        self._aborted.set()

    def run(self, take: Callable[[StreamEvent], object]) -> None:
        for event in self._played():
            take(event)

    def _played(self) -> Iterator[StreamEvent]:
        self._wait(0)
        try:
            script = load_script(self._path)
            step, cursor = step_for(script, self._request)
        except (BadScript, BadYaml) as error:
            raise RequestRefused(
                f"The script {self._path} cannot be played: {error}. Correct it, then try again."
            ) from error
        text = text_of(step, self._request)
        self._wait(step.delay_ms)
        if step.error is not None and not text:
            raise _raised(step.error)
        yield Started(cursor)
        for thought in self._pieces(step.reasoning, script.chunk_chars, step.chunk_delay_ms):
            yield ReasoningDelta(thought)
        for piece in self._pieces(text, script.chunk_chars, step.chunk_delay_ms):
            yield TextDelta(piece)
        if step.error is not None:
            raise _raised(step.error)
        yield from self._end(script, step, text)

    def _pieces(self, text: str, chunk_chars: int, delay_ms: int) -> Iterator[str]:
        for start in range(0, len(text), chunk_chars):
            self._wait(delay_ms)
            yield text[start : start + chunk_chars]

    def _end(self, script: Script, step: Step, text: str) -> Iterator[StreamEvent]:
        calls = with_own_ids(step.tool_calls, self._request.messages)
        for call in calls:
            self._wait(step.chunk_delay_ms)
            yield ToolCallDelta(call.name + call.arguments)
        self._wait(0)
        said_chars = len(step.reasoning) + len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
        usage = usage_of(step, script, self._request, said_chars)
        yield Finished(usage, calls, step.finish or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP))

    def _wait(self, delay_ms: int) -> None:
        if self._aborted.wait(delay_ms / 1000) if delay_ms else self._aborted.is_set():
            raise StreamAborted("The scripted answer was stopped.")


def _raised(error: ScriptedError) -> ProviderError:
    return error.kind(error.message, retry_after_seconds=error.retry_after_seconds)


# Reading a script


def load_script(path: Path) -> Script:
    """The script in a file, read again when the file changes. Raises ``BadScript`` or ``BadYaml``."""
    try:
        stat = path.stat()
    except OSError as error:
        raise BadScript(f"the file cannot be read ({error.strerror})") from error
    return _load_script(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _load_script(path: Path, _mtime_ns: int, _size_bytes: int) -> Script:
    found = read_yaml(path)
    if found.double_keys:
        raise BadScript(f"{found.double_keys[0]}: the key occurs twice")
    return script_from(found.document)


STEP_KEYS = {
    "match", "text", "reasoning", "repeat", "tool_calls", "usage", "delay_ms", "chunk_delay_ms", "finish", "error",
}  # fmt: skip
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


def _step(found: Any, path: str, defaults: Mapping[str, Any]) -> Step:
    step = {**defaults, **_mapping(found, path, STEP_KEYS)}
    text = _text(step.get("text", ""), f"{path}.text")
    most = max(1, MAX_REPEATED_CHARS // max(1, len(text)))
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list):
        raise BadScript(f"{path}.tool_calls: expected a list, found {calls!r}")
    return Step(
        match=_pattern(step.get("match"), f"{path}.match"),
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


def _call(found: Any, path: str) -> ToolCall:
    call = _mapping(found, path, {"name", "arguments", "id"})
    arguments = call.get("arguments", {})
    if not isinstance(arguments, str):
        try:
            arguments = dumped(arguments).decode()
        except TypeError as error:
            raise BadScript(f"{path}.arguments: {error}") from error
    return ToolCall(_text(call.get("id", ""), f"{path}.id"), _text(call.get("name"), f"{path}.name"), arguments)


def _usage(found: Any, path: str) -> ScriptedUsage:
    """Fixed counts are not checked here: a script may play a server that reports nonsense."""
    if found in (None, "none"):
        return ScriptedUsage("none")
    if found == "estimate":
        return ScriptedUsage("estimate")
    counts = _mapping(found, path, {"prompt_tokens", "completion_tokens"})
    return ScriptedUsage("fixed", counts.get("prompt_tokens"), counts.get("completion_tokens", 0))


def _finish(found: Any, path: str) -> FinishReason | None:
    if found is None:
        return None
    try:
        return FinishReason(found)
    except ValueError as error:
        raise BadScript(f"{path}: expected one of {', '.join(FinishReason)}, found {found!r}") from error


def _error(found: Any, path: str) -> ScriptedError | None:
    if found is None:
        return None
    error = {"kind": found} if isinstance(found, str) else _mapping(found, path, {"kind", "message", "retry_after"})
    kind = ERRORS.get(str(error.get("kind")))
    if kind is None:
        raise BadScript(f"{path}: expected one of {', '.join(ERRORS)}, found {error.get('kind')!r}")
    wait = error.get("retry_after")
    return ScriptedError(
        kind,
        _text(error.get("message", f"The script plays the error '{kind.kind}'."), f"{path}.message"),
        None if wait is None else _number(wait, f"{path}.retry_after", 0, 1_000_000),
    )


def _pattern(found: Any, path: str) -> re.Pattern[str] | None:
    if found is None:
        return None
    try:
        return re.compile(_text(found, path), re.DOTALL)
    except re.error as error:
        raise BadScript(f"{path}: no regular expression: {error}") from error


def _mapping(found: Any, path: str, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise BadScript(f"{path}: expected a mapping, found {type(found).__name__}")
    unknown = [str(key) for key in found if key not in keys]
    if unknown:
        raise BadScript(f"{path}.{unknown[0]}: unknown key; known are {', '.join(sorted(keys))}")
    return found


def _text(found: Any, path: str) -> str:
    if not isinstance(found, str):
        raise BadScript(f"{path}: expected text, found {found!r}")
    return found


def _number(found: Any, path: str, least: float, most: float) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
        raise BadScript(f"{path}: expected a number from {least:g} to {most:g}, found {found!r}")
    return found
