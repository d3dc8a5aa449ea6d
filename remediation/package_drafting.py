"""A re-entry package drafted without a model, from what is stored: for operators and for the countdown."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from remediation.text.coverage import Shown
from remediation.text.directives import is_directive
from remediation.text.ledger import key_facts, render_ledger
from remediation.text.marks import RULE, disarm
from remediation.text.secret_masking import redact
from remediation.text.statements import Said

GOAL_CHARS, PROGRESS_CHARS, LINE_CHARS = 1_500, 900, 300
FACT_TOKENS = 600  # est., of facts that are kept word for word
NAMES_PER_TOOL = 12
SHORTEST_LINE = 120  # characters of a line in the shortest draft
CHARS_PER_TOKEN = 4

GOAL = "Goal and scope"
PROGRESS = "Current progress"
DECISIONS = "Key decisions and constraints"
CHANGES = "Changes (files, modules)"
FAILURES = "Failures met"
FACTS = "Facts"
NEXT = "Next steps"
QUESTIONS = "Open questions and risks"
HEADINGS = (GOAL, PROGRESS, DECISIONS, CHANGES, FAILURES, FACTS, NEXT, QUESTIONS)
DRAFTED = (
    "Drafted by the runtime from its records, not by you: search_archive and read_archive find what is missing here."
)

OneLine = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Statement:
    """One text of the round. ``role`` is user, assistant or tool; ``turn`` is its number, or 0 if it has none."""

    role: str
    text: str
    failed: bool = False
    turn: int = 0


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call in few words. ``about`` names its object, such as a path or a query, if its arguments tell."""

    name: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The stored facts about a dialog, oldest first. ``pending`` is the message without an answer."""

    first_request: str = ""
    requests: Sequence[str] = ()  # of this round
    pending: str = ""
    statements: Sequence[Statement] = ()  # of this round
    tool_uses: Sequence[ToolUse] = ()
    package: str = ""  # the package with which the round began
    ledger: Sequence[str] = ()  # key facts that rewrites carry
    answered_questions: Sequence[tuple[str, str]] = ()  # questions to people, with their answers
    open_questions: Sequence[str] = ()
    share: float = 1.0  # the part of its full length that the draft may have


def draft(gathered: Gathered) -> str:
    """Fill in the outline that guidance asks an agent for. Empty sections are left out."""
    earlier = _sections_of(gathered.package)
    kept = round(FACT_TOKENS * CHARS_PER_TOKEN * gathered.share)  # characters of each list of an earlier draft
    line = partial(_line, limit=max(SHORTEST_LINE, round(LINE_CHARS * gathered.share)))
    goal, progress, following = _goal(gathered, earlier, line), _progress(gathered, earlier), _next(gathered, line)
    facts = _facts(gathered, Shown("\n".join((*goal, *progress, *following))))
    sections = {
        GOAL: goal,
        PROGRESS: progress,
        DECISIONS: [
            *_newest(earlier.get(DECISIONS, ()), kept),
            *(
                f"Asked: {line(asked)} - the person answered: {line(answer)}"
                for asked, answer in gathered.answered_questions
            ),
            *(fact for fact in facts if fact.startswith(RULE)),
        ],
        CHANGES: list(_uses(gathered.tool_uses)),
        FAILURES: [*earlier.get(FAILURES, ())[-2:], *_failures(gathered.statements, line)],
        FACTS: [*_newest(earlier.get(FACTS, ()), kept), *(fact for fact in facts if not fact.startswith(RULE))],
        NEXT: following,
        QUESTIONS: [*(line(question) for question in gathered.open_questions), DRAFTED],
    }
    return redact("\n\n".join(_section(heading, sections[heading]) for heading in HEADINGS if sections[heading]))


def _section(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([heading, *(f"- {line}" for line in dict.fromkeys(lines))])


def _newest(lines: Sequence[str], chars: int) -> list[str]:
    """Return the newest lines that fit into ``chars`` characters, oldest first."""
    chosen: list[str] = []
    for line in reversed(lines):
        chars -= len(line)
        if chars < 0:
            break
        chosen.append(line)
    return chosen[::-1]


def _goal(gathered: Gathered, earlier: dict[str, list[str]], line: OneLine) -> list[str]:
    """Return the first request, and the newest requests since then, which may have changed the goal."""
    stated = gathered.first_request or next(iter(gathered.requests), "")
    first = earlier.get(GOAL) or [_text(stated, round(GOAL_CHARS * gathered.share))]
    since = [
        f"Then asked: {line(text)}"
        for text in gathered.requests
        if text not in (gathered.first_request, gathered.pending)
    ]
    return [line for line in (*first[:4], *since[-3:]) if line]


def _progress(gathered: Gathered, earlier: dict[str, list[str]]) -> list[str]:
    """Return the agent's newest answers. A package that it wrote itself is kept whole: no record holds its content."""
    whole, each = round(2 * GOAL_CHARS * max(0.5, gathered.share)), round(PROGRESS_CHARS * gathered.share)
    answers = [entry.text for entry in gathered.statements if entry.role == "assistant" and entry.text.strip()]
    written = [] if earlier or not gathered.package.strip() else [f"Carried over: {_text(gathered.package, whole)}"]
    before = earlier.get(PROGRESS, [])[-1:] if len(answers) < 3 else []
    return [*written, *before, *(_text(text, each) for text in answers[-3:])]


def _uses(uses: Sequence[ToolUse]) -> Iterator[str]:
    """Write one line for each tool: how often it was called, and on what."""
    names: dict[str, list[str]] = {}
    for use in uses:
        names.setdefault(use.name, []).append(use.about)
    for name, abouts in names.items():
        known = [about for about in dict.fromkeys(abouts) if about]
        shown = ", ".join(_line(about, 80) for about in known[-NAMES_PER_TOOL:])
        times = "once" if len(abouts) == 1 else f"{len(abouts)} times"
        yield f"{name}, {times}" + (f": {shown}" if shown else "")


def _failures(statements: Sequence[Statement], line: OneLine) -> list[str]:
    return [f"Tool output: {line(entry.text)}" for entry in statements if entry.role == "tool" and entry.failed][-3:]


def _facts(gathered: Gathered, shown: Shown) -> list[str]:
    """Choose prohibitions, identifiers, paths and numbers by the rules of the ledger, together with its own facts.

    Facts that no longer hold are left out, and so are those that other sections have ``shown``, except for rules.
    Failures have a section of their own.
    """
    texts = [Said(entry.role, entry.text, entry.turn) for entry in gathered.statements if not entry.failed]
    budget = round(FACT_TOKENS * gathered.share) + _estimate(render_ledger(gathered.ledger))

    def is_in_sight(fact: str, values: Sequence[str]) -> bool:
        return not is_directive(fact) and shown.says(fact, values)

    return list(key_facts(texts, budget, _estimate, gathered.ledger, is_in_sight))


def _estimate(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def _next(gathered: Gathered, line: OneLine) -> list[str]:
    if gathered.pending:
        return [f"Answer the message that follows word for word: {line(gathered.pending)}"]
    return [f"Go on from the newest request: {line(gathered.requests[-1])}"] if gathered.requests else []


def _sections_of(package: str) -> dict[str, list[str]]:
    """Read the sections of an earlier draft, so that drafts of drafts do not nest. A package by an agent has none."""
    if DRAFTED not in package:
        return {}
    result: dict[str, list[str]] = {}
    heading = ""
    for line in package.splitlines():
        if line in HEADINGS:
            heading = line
        elif line.startswith("- ") and heading:
            result.setdefault(heading, []).append(line.removeprefix("- "))
        elif heading in result and line.strip():
            result[heading][-1] += f"\n{line}"
    return result


def _line(text: str, limit: int = LINE_CHARS) -> str:
    flat = disarm(" ".join(text.split()))
    return flat if len(flat) <= limit else f"{flat[: limit - 1].rstrip()}…"


def _text(text: str, limit: int) -> str:
    """Indent all lines but the first, so that none can pass for a heading, and cut it, if possible at a sentence."""
    text = re.sub(r"\n\s*\n+", "\n", disarm(text).strip())
    if len(text) > limit:
        cut = text[: limit - 1]
        end = max(cut.rfind(mark) for mark in (". ", "! ", "? ", "\n"))
        text = (cut[: end + 1] if end > limit // 2 else cut).rstrip() + "…"
    return "\n".join((line if number == 0 else f"  {line.strip()}") for number, line in enumerate(text.splitlines()))
