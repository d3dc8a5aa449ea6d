"""A provider without a model, for demos, tests and anyone without a key: it plays a script, see ``script_file``."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from dominds.llm.json_text import dump
from dominds.llm.messages import Message, Request, Role, chars_of
from dominds.llm.models.model import MODALITIES, ProviderKind
from dominds.llm.provider import ProviderError, RequestRefused, StreamAborted
from dominds.llm.providers.reading import with_own_ids
from dominds.llm.providers.script_file import BadScript, Script, ScriptedError, Step, load_script
from dominds.llm.stream import Finished, FinishReason, ReasoningDelta, Started, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable, usage_from
from dominds.yaml_file import BadYaml

RECALLED = "[Recalled by the runtime"  # the first words of the message with recalled turns, see ``remediation.recall``
ANSWER = re.compile(r"^\[(\d+) ask_human[^\]]*\] (.+)$", re.MULTILINE)  # a person's answer among recalled turns
SCRIPTS = Path(__file__).parent / "scripts"  # shipped ones, by name


# Choosing a step


def step_for(script: Script, request: Request) -> tuple[Step, str]:
    """Return the step that answers, and the cursor for the conversation's next request."""
    newest = "\n".join(message.text for message in newest_messages(request.messages) if not is_recalled(message))
    offered = {"", *(tool.name for tool in request.tools)}
    steps = [step for step in script.steps if step.needs in offered]
    for step in steps:
        if step.match is not None and step.match.search(newest):
            return step, request.cursor
    plain = [step for step in steps if step.match is None]
    if not plain:
        raise BadScript("steps: none matches the newest messages, and none is without `match` or a missing tool")
    position = int(request.cursor) if request.cursor.isdecimal() else 0
    return plain[min(position, len(plain) - 1)], str(position + 1)


def newest_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages after the model's last answer."""
    after = next((at + 1 for at in reversed(range(len(messages))) if messages[at].role is Role.ASSISTANT), 0)
    return messages[after:]


def is_recalled(message: Message) -> bool:
    """Check for the message with recalled turns, which holds nothing new to answer."""
    return message.role is Role.USER and message.text.startswith(RECALLED)


def text_of(step: Step, script: Script, request: Request) -> str:
    """Return the text of a step.

    ``{{last_user}}`` stands for the newest message, ``{{tokens}}`` for the request's size as it will be reported, and
    ``{{recalled}}`` for a person's answer among recalled turns.
    """
    spoken = (m.text for m in reversed(request.messages) if m.role is Role.USER and not is_recalled(m))
    text = step.text.replace("{{last_user}}", next(spoken, ""))
    if "{{tokens}}" in text:
        text = text.replace("{{tokens}}", f"{tokens_of(script, request):,}")
    if "{{recalled}}" in text:
        text = text.replace("{{recalled}}", _recalled_words(request))
    return text * step.repeat


def _recalled_words(request: Request) -> str:
    """Quote the first recalled answer of a person, or say that there is none."""
    texts = [message.text for message in request.messages if is_recalled(message)]
    answers = [found for text in texts for found in ANSWER.findall(text)]
    return f"In turn {answers[0][0]} you said: “{answers[0][1]}”." if answers else "I see all that you said."


def tokens_of(script: Script, request: Request) -> int:
    return max(1, round(size_chars(request) / script.chars_per_token))


def usage_of(step: Step, script: Script, request: Request, answer_chars: int) -> UsageReport:
    """Return the step's report. An estimate by the size of the request counts as reported, since there is no model."""
    if step.usage.kind == "none":
        return UsageUnavailable("the script reports none")
    if step.usage.kind == "fixed":
        return usage_from(step.usage.prompt, step.usage.completion)
    return usage_from(tokens_of(script, request), round(answer_chars / script.chars_per_token))


def size_chars(request: Request) -> int:
    """Count the characters of a whole request: instructions, messages with their calls, and tool schemas."""
    tools = sum(len(tool.name) + len(tool.description) + len(dump(tool.parameters)) for tool in request.tools)
    return len(request.instructions) + chars_of(request.messages) + tools


# Playing it


@dataclass(frozen=True, slots=True)
class Scripted:
    """A provider that plays the script at ``path``. The file may change between requests."""

    path: Path

    def stream(self, request: Request) -> "ScriptedStream":
        return ScriptedStream(self.path, request)


SCRIPTED = ProviderKind(
    "scripted", lambda model, key: Scripted(Path(model.script)), is_server=False, modalities=MODALITIES
)


class ScriptedStream:
    """A played answer (see ``provider.Stream``)."""

    def __init__(self, path: Path, request: Request) -> None:
        self._path = path
        self._request = request
        self._aborted = threading.Event()

    @property
    def body(self) -> bytes:
        """Return the request as JSON, without epoch and cursor, which no model sees."""
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
        try:
            return orjson.dumps(shown, default=repr)
        except TypeError:  # an integer beyond 64 bits
            return json.dumps(shown, default=repr).encode()

    def abort(self) -> None:
        self._aborted.set()

    def run(self, take: Callable[[StreamEvent], object]) -> None:
        for event in self._play():
            take(event)

    def _play(self) -> Iterator[StreamEvent]:
        self._wait(0)
        try:
            script = load_script(self._path)
            step, cursor = step_for(script, self._request)
        except (BadScript, BadYaml) as error:
            raise RequestRefused(
                f"The script {self._path} cannot be played: {error}. Correct it, then try again."
            ) from error
        text = text_of(step, script, self._request)
        self._wait(step.delay_ms)
        if step.error is not None and not text:
            raise _error_of(step.error)
        yield Started(cursor)
        for thought in self._pieces(step.reasoning, script.chunk_chars, step.chunk_delay_ms):
            yield ReasoningDelta(thought)
        for piece in self._pieces(text, script.chunk_chars, step.chunk_delay_ms):
            yield TextDelta(piece)
        if step.error is not None:
            raise _error_of(step.error)
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
        answer_chars = len(step.reasoning) + len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
        usage = usage_of(step, script, self._request, answer_chars)
        yield Finished(usage, calls, step.finish or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP))

    def _wait(self, delay_ms: int) -> None:
        if self._aborted.wait(delay_ms / 1000) if delay_ms else self._aborted.is_set():
            raise StreamAborted("The scripted answer was stopped.")


def _error_of(error: ScriptedError) -> ProviderError:
    return error.kind(error.message, retry_after_seconds=error.retry_after_seconds)
