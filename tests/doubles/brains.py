"""The model behind a double: a function from a request, in one form for all dialects, to a reply."""

import json
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.doubles.counting import BYTES_PER_TOKEN, count_text

Count = Callable[[str], int]
"""Tokens of a text."""
Role = Literal["system", "user", "assistant", "tool"]
GUIDANCE = "Context guidance from the runtime"
LAST_RESORT = "Nothing but clear_mind is possible now"
PACKAGE = "Goal: go on with the story.\nNext steps: answer what waits."


@dataclass(frozen=True)
class Call:
    """A tool call. ``arguments`` is an object, or text that is sent as it is."""

    name: str
    arguments: Any = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Message:
    """A message of the request. ``call_id`` is set on results."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    reasoning: str = ""


@dataclass(frozen=True)
class Prompt:
    """A request as every dialect gives it to its brain.

    ``required_tools`` are those of which one must be called, empty where the model is free.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    required_tools: tuple[str, ...] = ()
    prompt_tokens: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> Message:
        return self.messages[-1] if self.messages else Message("user")


@dataclass(frozen=True)
class Reply:
    """What the model does. ``usage`` overrides (prompt, completion) of the report, not what is refused.

    ``is_reported`` false: a stream ends without usage. ``error`` is an HTTP status and a body in place of an answer
    (with ``headers``), ``error_event`` an error inside the stream after the text, ``breaks_off`` ends the connection
    there without a proper end. ``is_refusal``: the text comes as a refusal, where the dialect has one.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: tuple[int, int] | None = None
    is_reported: bool = True
    finish: str = ""  # in the dialect's own words; empty: what fits
    pause_seconds: float = 0.0  # before the first byte
    chunk_seconds: float = 0.0  # after each piece
    after_piece: Callable[[str], object] = len  # called with each piece that was sent; the next one waits for it
    chunk_chars: int = 400
    error: tuple[int, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error_event: str = ""
    breaks_off: bool = False
    is_refusal: bool = False
    annotations: tuple[Mapping[str, Any], ...] = ()

    def counted(self, count: Count) -> int:
        return sum(count(text) for text in (self.reasoning, self.text, *(str(call.arguments) for call in self.calls)))

    @property
    def tokens(self) -> int:
        return self.counted(count_text)

    @property
    def reasoning_tokens(self) -> int:
        return count_text(self.reasoning)


Brain = Callable[[Prompt], Reply]


def cut(
    reply: Reply, budget: int | None, count: Count = count_text, *, keeps_half_calls: bool = False
) -> tuple[Reply, bool]:
    """The reply as far as ``budget`` tokens reach: reasoning first, then text, then calls; and whether it was cut.

    ``keeps_half_calls``: of the call that the budget ends in, the arguments stay that had been written.
    """
    if budget is None or reply.counted(count) <= budget:
        return reply, False
    reasoning = _first(reply.reasoning, budget, count)
    text = _first(reply.text, budget - count(reasoning), count)
    left, calls = budget - count(reasoning) - count(text), []
    for call in reply.calls:
        written = arguments_text(call.arguments)
        if count(str(call.arguments)) > left:
            begun = _first(written, left, count) if keeps_half_calls else ""
            calls += [replace(call, arguments=begun)] if begun else []
            break
        left -= count(str(call.arguments))
        calls.append(call)
    return replace(reply, reasoning=reasoning, text=text, calls=tuple(calls)), True


def _first(text: str, tokens: int, count: Count) -> str:
    """The longest beginning of so many tokens; with the doubles' own count, which rounds down, four bytes for each."""
    if count is count_text:
        return text.encode()[: max(0, tokens) * BYTES_PER_TOKEN].decode(errors="ignore")
    return text[: max(0, bisect_right(range(len(text) + 1), tokens, key=lambda end: count(text[:end])) - 1)]


def arguments_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


# -- brains


class Scripted:
    """Gives these replies one after another; the last one repeats. A brain may stand for a reply."""

    def __init__(self, *replies: Reply | Brain) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt) -> Reply:
        with self._lock:
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return reply if isinstance(reply, Reply) else reply(prompt)


def echo(prompt: Prompt) -> Reply:
    """Says what it was told last, and calls a tool where it must."""
    if prompt.required_tools:
        return Reply(calls=(Call(prompt.required_tools[0], {}),))
    return Reply(f"You said: {prompt.last.text}")


@dataclass
class Story:
    """A model in a long dialog: it answers, heeds guidance or not, and refuses some of the forced attempts.

    ``heeds`` is the tool that it calls on guidance, empty to answer as if there were none. Of each row of forced
    attempts the first ``refuses`` end in text, or in an empty package where the server lets it only call.
    """

    heeds: Literal["clear_mind", "add_reminder", ""] = "clear_mind"
    refuses: int = 0
    package: str = PACKAGE
    words: str = "Answer {number}."
    reasoning: str = ""
    answers: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt) -> Reply:
        with self._lock:
            return replace(self._reply(prompt), reasoning=self.reasoning)

    def _reply(self, prompt: Prompt) -> Reply:
        if prompt.required_tools == ("clear_mind",) or LAST_RESORT in prompt.last.text:
            if self.refused < self.refuses:
                self.refused += 1
                return self._refusing(prompt)
            self.refused = 0
            return self._calling("clear_mind", {"reminder_content": self.package}, prompt.tools)
        if GUIDANCE in prompt.last.text and self.heeds:
            return self._calling(self.heeds, PACKAGES[self.heeds](self.package), prompt.tools)
        self.answers += 1
        return Reply(self.words.format(number=self.answers))

    def _refusing(self, prompt: Prompt) -> Reply:
        """In words where the model is free; where it must call, as a model does that will not: with nothing in it."""
        if prompt.required_tools:
            return Reply(calls=(Call(prompt.required_tools[0], {"reminder_content": " "}),))
        return Reply("I would rather go on as I am.")

    def _calling(self, name: str, arguments: Any, tools: Sequence[str]) -> Reply:
        return Reply(calls=(Call(name, arguments),)) if name in tools else Reply(f"I have no tool {name}.")


PACKAGES: dict[str, Callable[[str], Any]] = {
    "clear_mind": lambda package: {"reminder_content": package},
    "add_reminder": lambda package: {"content": package, "position": 0},
}
