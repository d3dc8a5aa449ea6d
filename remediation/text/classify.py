"""The kind and the priority of a context unit, judged by its role, its code fences and the form of its lines."""

import re
from collections import Counter
from collections.abc import Sequence

from dominds.llm.messages import Role
from remediation.context import Unit, UnitKind, UnitRole
from remediation.text.reading import is_code_line, without_fenced

INSPECTED_CHARS = 20_000  # of a text: enough to judge it, and a bound on the work for very long ones
# The least share of the lines that are not blank, to name a text by them. A choice: on the sets of
# docs/experiments.md#numbers 0.25 and 0.9 change nothing.
MIN_SHARE = 0.5

PLAN_STARTS = ("plan:", "## plan", "# plan", "todo:", "next steps:", "steps:", "milestones:", "to do list")

# Each pattern reads one line and repeats no group inside another, so it takes linear time on any input.
# The beginning of an entry of a plan: "- [x] read", "Step 2: fill", "TODO-12: add tests". In the middle of a line the
# last would only name work that stands elsewhere.
PLAN_ENTRY = re.compile(
    r"[-*+] \[[ xX]\] |[-*# 0-9.]*(?:(?i:step|phase|milestone) \d{1,3}\b"
    r"|(?:TODO|PLAN|TASK|MILESTONE)[-#:]\d{1,6}\s*(?:[:–—-]|$))"
)
TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b")
LOG_LEVEL = re.compile(r"\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:]? ?")
STACK_LINE = re.compile(
    r"File \"[^\"\n]{1,300}\", line \d|at [\w$.<>]{1,200}\(|Traceback \(most recent|\w{1,80}(?:Error|Exception): "
)
DATA = re.compile(r"\"[^\"]*\"(?:\s*:|,?$)|[\[\]{}],?$")  # a line of JSON

# A priority that a person sets. It counts only at the beginning or the end of a message.
TAG = r"(?:\[p([123])\]|(?<![\w#])#p([123])\b|\bpriority {0,3}[:=] {0,3}([123])\b(?=\s*(?:$|[.,;:)\]–—-])))"
FIRST_TAG = re.compile(rf"\W{{0,8}}{TAG}", re.IGNORECASE)
LAST_TAG = re.compile(rf"{TAG}[\s.!)\]]{{0,8}}\Z", re.IGNORECASE)
TAG_CHARS = 40  # of the beginning and of the end, within which a tag counts


def kind_of(unit: Unit) -> UnitKind:
    """Return the kind of a unit. Tool calls have the kind that most of the text of their results has."""
    if unit.role is not UnitRole.TOOL:
        return classify(unit.text, unit.role)
    sizes = Counter[UnitKind]()
    for message in unit.messages:
        if message.role is Role.TOOL:
            sizes[classify(message.text, unit.role)] += len(message.text)
    return max(sizes, key=sizes.__getitem__, default=UnitKind.LOG)


def classify(text: str, role: UnitRole) -> UnitKind:
    """Return the kind of a text: code, plan, log or plain message. Tool output that is not code is a log."""
    lines = [line.strip() for line in text[:INSPECTED_CHARS].splitlines() if line.strip()]
    if not lines:
        return UnitKind.OTHER
    if _is_log(lines):
        return UnitKind.LOG
    if role is not UnitRole.TOOL and _is_plan(lines):
        return UnitKind.PLAN_REF
    if _is_code(lines):
        return UnitKind.CODE
    return UnitKind.LOG if role is UnitRole.TOOL else UnitKind.MESSAGE


def _is_log(lines: Sequence[str]) -> bool:
    logged = sum(bool(TIMESTAMP.match(line) or LOG_LEVEL.match(line) or STACK_LINE.match(line)) for line in lines)
    return len(lines) > 1 and logged / len(lines) >= MIN_SHARE


def _is_plan(lines: Sequence[str]) -> bool:
    return lines[0].lower().startswith(PLAN_STARTS) or sum(bool(PLAN_ENTRY.match(line)) for line in lines) >= 2


def _is_code(lines: Sequence[str]) -> bool:
    """Check whether most lines are inside fences or look like a program's."""
    signs = (not bare or (is_code_line(bare) and not DATA.match(bare)) for bare in without_fenced(lines))
    return len(lines) > 1 and sum(signs) / len(lines) >= MIN_SHARE


def priority_of(text: str, areas: Sequence[str], default: int, role: UnitRole = UnitRole.USER) -> tuple[int, str]:
    """Return the priority of a message, from 1 to 3, and the first of ``areas`` that it names, or an empty text.

    A tag (``[P1]``, ``#p2``, ``priority: 1``) at the beginning or the end of a person's message decides; of two the
    more important one counts. Without a tag a message that names an area has priority 1, any other the ``default``.
    Neither tags nor areas count in the output of tools.
    """
    if role is UnitRole.TOOL:
        return default, ""
    area = _area_in(text[:INSPECTED_CHARS], areas)
    tags = tags_of(text) if role is not UnitRole.ASSISTANT else []
    if tags:
        return min(tags), area
    return (1, area) if area else (default, "")


def tags_of(text: str) -> list[int]:
    """Return the priorities of the tags at the beginning and the end of a message."""
    text = text.strip()
    first, last = text[:INSPECTED_CHARS].partition("\n")[0], text[-TAG_CHARS:]
    results = (FIRST_TAG.match(first[:TAG_CHARS]), LAST_TAG.search(last))
    return [int(digit) for match in results if match for digit in match.groups() if digit]


def _area_in(text: str, areas: Sequence[str]) -> str:
    lowered = text.lower()
    return next((area for area in areas if area.strip() and _names(lowered, area.strip().lower())), "")


def _names(lowered: str, area: str) -> bool:
    """Check whether the text holds the area as a whole word: "calendars2" does not name "Calendar"."""
    return area in lowered and bool(re.search(rf"(?<![^\W_]){re.escape(area)}(?![^\W_])", lowered))
