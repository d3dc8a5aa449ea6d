"""Generated dialogs that overflow, with planted facts, for tests and benchmarks. A seed determines the dialog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Unit, UnitKind, UnitRole, Units

MIN_TURNS = 4


class FactKind(StrEnum):
    PATH = "path"
    IDENTIFIER = "identifier"
    NUMBER = "number"
    FAILURE = "failure"
    PROHIBITION = "prohibition"


class Position(StrEnum):
    """The third of the dialog in which a fact stands."""

    OLD = "old"
    MIDDLE = "middle"
    RECENT = "recent"


@dataclass(frozen=True, slots=True)
class Fact:
    """A planted fact. It is kept if the text ``needle``, which occurs nowhere else in the dialog, survives."""

    needle: str
    kind: FactKind
    unit_id: str
    role: UnitRole
    priority: int
    position: Position


@dataclass(frozen=True, slots=True)
class Mix:
    """The composition of a dialog, in shares of its units. All others are plain messages, and of priority 3."""

    code: float = 0.15
    plan: float = 0.05
    tools: float = 0.25
    priority_one: float = 0.08
    priority_two: float = 0.30
    facts: int = 20
    words: tuple[int, int] = (30, 120)  # of prose in a message


@dataclass(frozen=True, slots=True)
class OverflowingDialog:
    units: Units
    facts: tuple[Fact, ...]
    limit: int

    @property
    def est_tokens(self) -> int:
        return sum(unit.est_tokens for unit in self.units)


TOPICS = {
    "billing": "invoice booking refund customer payment currency tax statement balance account charge receipt",
    "search": "index query ranking relevance document token synonym shard crawler snippet corpus recall",
    "deployment": "cluster container rollout pipeline image registry node health probe traffic canary rollback release",
    "calendar": "meeting reminder timezone invitation attendee recurrence schedule agenda room conflict holiday",
    "storage": "volume snapshot backup restore bucket object retention archive replica checksum disk quota block",
}
VERBS = "checked moved compared reviewed adjusted discussed sketched sorted renamed weighed".split()
LINKS = ("because", "while", "although", "so", "after", "before", "since", "where", "when")
ADJECTIVES = "small quiet likely plain useful recent older careful simple awkward steady".split()
AREAS = ("To Do List", "Calendar")


def overflowing_dialog(
    rng: Random, limit: int, multiple: float, count: Callable[[Sequence[Message]], int], mix: Mix | None = None
) -> OverflowingDialog:
    """Write a dialog of about ``limit * multiple`` tokens that ends with an unanswered user message.

    It wanders from topic to topic, and facts are spread evenly over it. The text around the facts is invented. Times
    and durations in logs, and names in code, compete with them for attention.
    """
    return _Writer(rng, limit, count, mix or Mix()).write(int(limit * multiple))


class _Writer:
    def __init__(self, rng: Random, limit: int, count: Callable[[Sequence[Message]], int], mix: Mix) -> None:
        self.rng, self.limit, self.count, self.mix = rng, limit, count, mix
        self.topic = rng.choice(sorted(TOPICS))
        self.units: list[Unit] = []
        self.facts: list[Fact] = []
        self.needles: set[str] = set()
        self.tokens = 0

    def write(self, target: int) -> OverflowingDialog:
        self._add(UnitKind.MESSAGE, UnitRole.SYSTEM, f"You are the {self.topic} agent. {self._sentence()}", priority=1)
        self._add(UnitKind.MESSAGE, UnitRole.USER, f"Please help me with {self.topic}. {self._prose()}", priority=2)
        topics = self.rng.sample(sorted(TOPICS), len(TOPICS))
        while self.tokens < target or len(self.units) < MIN_TURNS:
            self.topic = topics[min(len(topics) - 1, int(len(topics) * self.tokens / target))]
            due = len(self.facts) < self.mix.facts * min(1.0, self.tokens / target)
            self._add_turn(due, self.tokens / target)
        question = f"How does the {self.topic} work go on? {self._sentence()}"
        self._add(UnitKind.MESSAGE, UnitRole.USER, question, pinned=True)
        return OverflowingDialog(tuple(self.units), tuple(self.facts), self.limit)

    def _add_turn(self, with_fact: bool, progress: float) -> None:
        mix, roll = self.mix, self.rng.random()
        if roll < mix.tools:
            self._add_tool_unit(with_fact, progress)
        elif roll < mix.tools + mix.code:
            self._add_text(UnitKind.CODE, UnitRole.ASSISTANT, self._code(), with_fact, progress)
        elif roll < mix.tools + mix.code + mix.plan:
            self._add_text(UnitKind.PLAN_REF, UnitRole.ASSISTANT, self._plan(), with_fact, progress)
        else:
            role = UnitRole.USER if self.rng.random() < 0.5 else UnitRole.ASSISTANT
            self._add_text(UnitKind.MESSAGE, role, self._prose(), with_fact, progress)

    def _add_text(self, kind: UnitKind, role: UnitRole, text: str, with_fact: bool, progress: float) -> None:
        fact = self._new_fact(role) if with_fact else None
        self._add(kind, role, self._plant(text, fact, kind), priority=self._priority())
        self._note(fact, progress)

    def _add_tool_unit(self, with_fact: bool, progress: float) -> None:
        fact = self._new_fact(UnitRole.TOOL) if with_fact else None
        call = ToolCall(f"call-{len(self.units)}", self.rng.choice(["read_notes", "list_items", "run_check"]), "{}")
        output = self._plant(self._log(), fact, UnitKind.LOG)
        messages = (Message(Role.ASSISTANT, tool_calls=(call,)), Message(Role.TOOL, output, tool_call_id=call.id))
        self._append(UnitKind.LOG, UnitRole.TOOL, messages, self._priority(), pinned=False)
        self._note(fact, progress)

    def _add(self, kind: UnitKind, role: UnitRole, text: str, priority: int = 3, pinned: bool = False) -> None:
        message = Message(Role.ASSISTANT if role is UnitRole.ASSISTANT else Role.USER, text)
        self._append(kind, role, (message,), priority, pinned)

    def _append(
        self, kind: UnitKind, role: UnitRole, messages: tuple[Message, ...], priority: int, pinned: bool
    ) -> None:
        number = len(self.units) + 1
        area = AREAS[0] if priority == 1 and role is not UnitRole.SYSTEM else ""
        size = self.count(messages)
        self.units.append(Unit(f"turn-{number}", kind, role, messages, (number,), priority, area, size, pinned))
        self.tokens += size

    def _note(self, fact: tuple[FactKind, str, str] | None, progress: float) -> None:
        if fact is None:
            return
        unit = self.units[-1]
        third = Position.OLD if progress < 1 / 3 else Position.MIDDLE if progress < 2 / 3 else Position.RECENT
        self.facts.append(Fact(fact[1], fact[0], unit.id, unit.role, unit.priority, third))

    def _priority(self) -> int:
        roll = self.rng.random()
        if roll < self.mix.priority_one:
            return 1
        return 2 if roll < self.mix.priority_one + self.mix.priority_two else 3

    def _new_fact(self, role: UnitRole) -> tuple[FactKind, str, str]:
        """Return kind, needle and the sentence that holds it. Tools report no prohibitions."""
        kinds = [kind for kind in FactKind if role is UnitRole.USER or kind is not FactKind.PROHIBITION]
        kind = self.rng.choice(kinds)
        needle, sentence = self._fact(kind)
        while needle in self.needles:
            needle, sentence = self._fact(kind)
        self.needles.add(needle)
        return kind, needle, sentence

    def _fact(self, kind: FactKind) -> tuple[str, str]:
        word, other = self.rng.sample(TOPICS[self.topic].split(), 2)
        tag = f"{self.rng.randrange(16**6):06x}"
        match kind:
            case FactKind.PATH:
                needle = f"/srv/{word}/{other}-{tag}.yaml"
                return needle, f"The settings are in {needle}."
            case FactKind.IDENTIFIER:
                needle = f"{word[:3].upper()}-{self.rng.randrange(10**4, 10**6)}"
                return needle, f"The {word} has the ticket {needle}."
            case FactKind.NUMBER:
                needle = str(self.rng.randrange(10**4, 10**7))
                return needle, f"The {word} {other} limit is {needle} bytes."
            case FactKind.FAILURE:
                needle = f"E{self.rng.randrange(1000, 10**5)}"
                return needle, f"ERROR {needle}: the {word} {other} failed."
            case FactKind.PROHIBITION:
                needle = f"Never touch the {word} {other} branch {tag}"
                return needle, f"{needle}."

    def _plant(self, text: str, fact: tuple[FactKind, str, str] | None, kind: UnitKind) -> str:
        if fact is None:
            return text
        lines = text.split("\n")
        line = f'note = "{fact[2]}"' if kind is UnitKind.CODE else fact[2]
        lines.insert(self.rng.randrange(1, len(lines) + 1) if len(lines) > 1 else self.rng.randrange(2), line)
        return "\n".join(lines)

    def _sentence(self) -> str:
        words = TOPICS[self.topic].split()
        rng = self.rng
        return (
            f"We {rng.choice(VERBS)} the {rng.choice(ADJECTIVES)} {rng.choice(words)} {rng.choice(LINKS)} the "
            f"{rng.choice(words)} {rng.choice(words)} looked {rng.choice(ADJECTIVES)}."
        )

    def _prose(self) -> str:
        length = self.rng.randint(*self.mix.words)
        sentences: list[str] = []
        while sum(len(sentence.split()) for sentence in sentences) < length:
            sentences.append(self._sentence())
        return " ".join(sentences)

    def _code(self) -> str:
        words = TOPICS[self.topic].split()
        lines = ["```python"]
        for _ in range(self.rng.randint(2, 5)):
            name, part = self.rng.choice(words), self.rng.choice(words)
            lines += [
                f"def {self.rng.choice(VERBS)}_{name}({part}):",
                f"    # {self._sentence()}",
                f"    {name} = find_{name}({part})",
                "",
                f"    return {name}",
            ]
        return "\n".join([*lines, "```"])

    def _plan(self) -> str:
        return "\n".join(["Plan:", *(f"- [ ] {self._sentence()}" for _ in range(self.rng.randint(2, 4)))])

    def _log(self) -> str:
        rng, words = self.rng, TOPICS[self.topic].split()
        return "\n".join(
            f"10:{rng.randrange(60):02}:{rng.randrange(60):02} INFO {rng.choice(words)} {rng.choice(VERBS)} the "
            f"{rng.choice(words)} in {rng.randrange(2, 900)} ms"
            for _ in range(rng.randint(4, 16))
        )
