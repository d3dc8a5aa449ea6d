"""The values that policies and strategies judge. Frozen, and free of clock, settings and rows."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from dominds.llm.messages import ImagePart, Message
from dominds.llm.models.prices import Price
from health.levels import Level
from remediation.budget import CRITICAL_SHARE, Budget, LastRewrite
from remediation.prompts import Prompt, load
from remediation.spending import NOTHING_SPENT, Spending


class UnitKind(StrEnum):
    MESSAGE = "message"
    CODE = "code"
    PLAN_REF = "plan_ref"
    LOG = "log"
    SUMMARY = "summary"
    PLACEHOLDER = "placeholder"
    OTHER = "other"


NEWEST_ANSWERS = 3  # the longest of these stands for the length of the next one
STAND_INS = frozenset({UnitKind.SUMMARY, UnitKind.PLACEHOLDER})  # texts that replace others


class UnitRole(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Unit:
    """An indivisible piece of what the model sees: one message, or a tool call with all its results.

    ``id`` is unique within the dialog and stable. ``source`` holds the numbers (``seq``) of the turns that the unit
    stands for, oldest first. ``priority`` is 1 (protect) to 3. ``est_tokens`` includes the template's overhead. A
    ``pinned`` unit is never changed or removed: unanswered and newest user messages, and the re-entry package.
    ``failed`` says that a tool ended in an error, however its result words that.
    """

    id: str
    kind: UnitKind
    role: UnitRole
    messages: tuple[Message, ...]
    source: tuple[int, ...] = ()
    priority: int = 3
    area: str = ""  # the priority area that gave it its priority, for the page's badge
    est_tokens: int = 0
    pinned: bool = False
    failed: bool = False

    @property
    def text(self) -> str:
        """Return all that a reader would see of the unit, including tool calls and the labels of images."""
        first = self.messages[0] if self.messages else None
        if first and len(self.messages) == 1 and not first.tool_calls and not first.parts:
            return first.text  # a shortcut, since most units are such
        parts: list[str] = []
        for message in self.messages:
            if message.text:
                parts.append(message.text)
            parts += [f"[{part.label}]" for part in message.parts if isinstance(part, ImagePart)]
            parts += [f"{call.name}({call.arguments})" for call in message.tool_calls]
        return "\n".join(parts)

    def with_size(self, est_tokens: int, kind: UnitKind, priority: int, area: str) -> "Unit":
        """Return the unit with its size and class. Each request does so with all units; ``replace`` is half as fast."""
        messages, source, pinned, failed = self.messages, self.source, self.pinned, self.failed
        return Unit(self.id, kind, self.role, messages, source, priority, area, est_tokens, pinned, failed)

    def with_text(self, text: str, count: Callable[[Sequence[Message]], int]) -> "Unit":
        """Return the unit with another text, without images, which its text names, and without a provider's opaque
        items, which say the old one.

        In a tool call with results only the newest result's text is replaced, so that calls and results stay paired.
        """
        if len(self.messages) == 1:
            messages: tuple[Message, ...] = (replace(self.messages[0], text=text, parts=(), provider_items=()),)
        else:
            messages = (*self.messages[:-1], replace(self.messages[-1], text=text))
        return replace(self, messages=messages, est_tokens=count(messages))


Units = tuple[Unit, ...]


def longest_of_newest_answers(units: Units) -> int:
    """Return the tokens that the next answer is expected to have: those of the longest of the newest ones."""
    answers = [unit.est_tokens for unit in units if unit.role is UnitRole.ASSISTANT and unit.kind not in STAND_INS]
    return max(answers[-NEWEST_ANSWERS:], default=0)


def total_tokens(units: Sequence[Unit]) -> int:
    return sum([unit.est_tokens for unit in units])


@dataclass(frozen=True, slots=True)
class Assistant:
    """The model that shortens texts: the pruning agent of the settings, or the dialog's own model.

    ``ask`` takes instructions and a text, returns the answer and raises ``ProviderError``. ``window`` returns tokens,
    or None if unknown. ``nonce`` returns an unguessable text. ``failed`` tells the operator why an answer was unusable.
    """

    ask: Callable[[str, str], str]
    window: Callable[[], int | None]
    nonce: Callable[[], str]
    failed: Callable[[str], None]


def write_nothing(_text: str, _tokens: int) -> str:
    """Return no summary. A toolbox without a model has this function, by which callers can tell that it has none."""
    return ""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The outside help that rewrites may use, passed in so that the rules stay pure.

    ``count`` returns the estimated tokens of messages. ``summarise`` asks a model for a hand-off summary of a text, in
    about so many tokens; it returns an empty text if there is no model or the call failed. ``summariser_window`` is
    that model's window in tokens, 0 if unknown. ``prompt`` reads a prompt by its name. ``relevance`` returns a score
    from 0 to 1 for each text, against the query. ``similarity`` compares two texts, 0 to 1. ``clock`` is monotonic, in
    milliseconds. ``report`` tells the page which phase runs.
    """

    count: Callable[[Sequence[Message]], int]
    summarise: Callable[[str, int], str]
    relevance: Callable[[Sequence[str], str], Sequence[float]]
    similarity: Callable[[str, str], float]
    clock: Callable[[], float]
    report: Callable[[str, int, int], None]  # phase, current tokens, target or limit tokens
    assistant: Assistant | None = None  # None in a preview, which asks no model
    summariser_window: int = 0
    prompt: Callable[[str], Prompt] = load


@dataclass(frozen=True, slots=True)
class StrategyStep:
    """A record of what one strategy did, for the page. ``touched`` are ids of units that it removed or changed."""

    strategy: str
    est_before: int
    est_after: int
    note: str = ""
    touched: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """Return the step as it is stored, without ``touched``: the row names the strategies of each removed unit."""
        return {name: value for name, value in asdict(self).items() if name != "touched"}


def step_of(strategy: str, before: Units, after: Units, note: str = "") -> StrategyStep:
    """Return the step that led from one view to the other."""
    standing = {unit.id: unit.messages for unit in after}
    touched = frozenset(unit.id for unit in before if standing.get(unit.id) != unit.messages)
    return StrategyStep(strategy, total_tokens(before), total_tokens(after), note, touched)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The outcome of one rewrite.

    ``units`` is the new view, and ``removed`` the former units that it no longer holds word for word. ``ledger`` are
    the key facts that the view carries after its summary. ``failure`` says why the rewrite must not be applied, or is
    empty.
    """

    units: Units
    removed: Units
    est_before: int
    est_after: int
    steps: tuple[StrategyStep, ...] = ()
    summary: str = ""
    ledger: tuple[str, ...] = ()
    recovered: bool = False  # a fresh start or truncation was needed
    millis: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Economy:
    """The price and the use of a provider's cache, by which the cost of a rewrite is weighed."""

    price: Price
    requests: int  # answered since the last rewrite or clear


@dataclass(frozen=True, slots=True)
class RefusedClear:
    """The reason why the last forced clear was refused, and the size of its request.

    ``tokens`` and ``limit`` are 0 if unknown. ``draft`` is a package that the runtime drafted, if it is to be offered.
    """

    reason: str = ""
    tokens: int = 0
    limit: int = 0
    draft: str = ""


NOT_REFUSED = RefusedClear()
NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Context:
    """All that a policy may know before it answers. Token numbers are estimates; ``level`` is judged by reported usage.

    ``changed`` says that a report, message or tool result arrived since the last rewrite. ``overflowed`` says that the
    provider refused the last request as too long. Over-hits and loops are looked up only for a policy that watches the
    past, and the last rewrite only if another one may be due.
    """

    level: Level
    budget: Budget = NO_BUDGET
    changed: bool = True
    overflowed: bool = False
    too_large: str = ""  # why no rewrite can make room for the message that was refused as too long
    restarts: int = 0  # rewrites since the newest user message
    failed_clears: int = 0  # in the open episode of forced clears
    refused_clear: RefusedClear = NOT_REFUSED
    clear_due: bool = False  # an episode of forced clears is open, whatever the level is now
    kept_since_guidance: int | None = None  # None: no guidance yet in this caution
    guided_generations: int = 0  # since guidance began; the countdown counts them
    cadence: int = 10
    is_proxy: bool = False  # the agent is a proxy: it cannot clear its mind, and gets no guidance
    countdown: bool = False  # whether the agent's critical_policy is countdown
    over_hits_last_hour: int = 0
    loop_detected: bool = False
    nudge: str = ""  # the words by which an agent is told that it repeats itself
    endless_loop: str = ""  # why the message has to end, if its calls go on in circles in spite of nudges
    interrupted: bool = False  # the answer filled the window and was cut; it goes on after a compaction
    spending: Spending = NOTHING_SPENT
    last_rewrite: LastRewrite | None = None
    economy: Economy | None = None  # None: no cache is warm, or its price is unknown
    prompts: Path | None = None  # the folder of the operator's prompts
    requested: str = ""  # a person's request by hand: a policy's verb, "clear" or "milestone"

    @property
    def limit(self) -> int | None:
        """Return the policy's limit in tokens, or None if unknown."""
        return self.budget.limit

    @property
    def est_tokens(self) -> int:
        """Return the estimate of the next prompt, apart from recalled text."""
        return self.budget.prompt

    @property
    def must_shrink(self) -> bool:
        """Check whether the view must shrink first: it was refused as too long, or an answer filled the window."""
        return self.overflowed or self.interrupted

    @property
    def wants_rewrite(self) -> bool:
        """Check whether a rewrite is due, would gain enough, and does not follow too soon upon the last one."""
        if self.budget.limit is None or not self.changed:
            return False
        if self.must_shrink:
            return True
        is_rested = self.level is Level.CRITICAL or self.budget.is_rested(self.last_rewrite)
        return self._is_due and self.budget.can_pay and is_rested

    @property
    def is_obstructed(self) -> bool:
        """Check whether a rewrite is due although none could gain enough."""
        return self.budget.limit is not None and not self.requested and self._is_due and not self.budget.can_pay

    @property
    def _is_due(self) -> bool:
        budget = self.budget
        is_red = self.level is Level.CRITICAL and budget.prompt > (budget.critical or 0) * CRITICAL_SHARE
        return budget.is_over_trigger or is_red
