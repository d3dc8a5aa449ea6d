"""What kind of text a message is and how much it matters (document C's unit types and priorities; C2)."""

import re
from collections.abc import Sequence

from remediation.context import UnitKind, UnitRole

INSPECTED_CHARS = 20_000  # enough to judge by, and a bound on the work for a message of a megabyte
MIN_SHARE = 0.5  # of the lines that are not blank

CODE_ENDINGS = ("{", "}", ";", "};", "):", "],", "),", ");")
CODE_STARTS = (
    "def ", "class ", "import ", "from ", "return", "async def ", "@", "if (", "for (", "while (", "const ", "let ",
    "var ", "function ", "export ", "public ", "private ", "static ", "#include", "fn ", "impl ", "package ", "func ",
    "struct ", "SELECT ", "INSERT ", "UPDATE ", "CREATE TABLE", "elif ", "else:", "try:", "except ", "raise ", "</",
)  # fmt: skip
PLAN_STARTS = ("plan:", "## plan", "# plan", "todo:", "next steps:", "steps:", "milestones:", "to do list")

# Each pattern is anchored to one line and repeats no group inside another: linear on any input.
CHECKBOX = re.compile(r"[-*+] \[[ xX]\] ")
STEP = re.compile(r"(?:step|phase|milestone) \d{1,3}\b", re.IGNORECASE)
# An entry of a plan as texts name it, such as TODO-12 or PLAN#3: document C's type plan_ref.
PLAN_REFERENCE = re.compile(r"\b(?:TODO|PLAN|TASK|MILESTONE)[-#:]\d{1,6}\b")
TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b")
LOG_LEVEL = re.compile(r"\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:]? ?")
STACK_LINE = re.compile(
    r"File \"[^\"\n]{1,300}\", line \d|at [\w$.<>]{1,200}\(|Traceback \(most recent|\w{1,80}(?:Error|Exception): "
)

TAGS = re.compile(r"\[p([123])\]|(?<![\w#])#p([123])\b|\bpriority {0,3}[:=] {0,3}([123])\b", re.IGNORECASE)


def classify(text: str, role: UnitRole) -> UnitKind:
    """Code, plan, log or plain message. Tool output that is not code is a log."""
    lines = [line.strip() for line in text[:INSPECTED_CHARS].splitlines() if line.strip()]
    if not lines:
        return UnitKind.OTHER
    if role is UnitRole.TOOL:
        return UnitKind.CODE if _is_code(lines) and not _is_log(lines) else UnitKind.LOG
    if _is_log(lines):
        return UnitKind.LOG
    if _is_plan(lines):
        return UnitKind.PLAN_REF
    return UnitKind.CODE if _is_code(lines) else UnitKind.MESSAGE


def _is_log(lines: Sequence[str]) -> bool:
    logged = sum(bool(TIMESTAMP.match(line) or LOG_LEVEL.match(line) or STACK_LINE.match(line)) for line in lines)
    return len(lines) > 1 and logged / len(lines) >= MIN_SHARE


def _is_plan(lines: Sequence[str]) -> bool:
    if lines[0].lower().startswith(PLAN_STARTS) or any(PLAN_REFERENCE.search(line) for line in lines[:20]):
        return True
    if sum(bool(CHECKBOX.match(line)) for line in lines) >= 2:
        return True
    return sum(bool(STEP.match(line.lstrip("-*# 0123456789."))) for line in lines) >= 2


def _is_code(lines: Sequence[str]) -> bool:
    """Mostly inside fences, or mostly lines that look like a program's."""
    fenced, inside = 0, False
    for line in lines:
        if line.startswith("```"):
            inside = not inside
        elif inside:
            fenced += 1
    if fenced / len(lines) >= MIN_SHARE:
        return True
    coded = sum(line.startswith(CODE_STARTS) or line.endswith(CODE_ENDINGS) for line in lines)
    return len(lines) > 1 and coded / len(lines) >= MIN_SHARE


def priority_of(text: str, areas: Sequence[str], default: int, role: UnitRole = UnitRole.USER) -> tuple[int, str]:
    """The priority of a message, 1 to 3, and the area that gave it, if one did.

    The most important tag wins (``[P1]``, ``#p2``, ``priority: 1``), else an area that is named makes it 1, else
    ``default``. Tool output is data: neither tags nor areas in it count.
    """
    if role is UnitRole.TOOL:
        return default, ""
    head = text[:INSPECTED_CHARS]
    area = _area_in(head, areas)
    tags = [int(digit) for match in TAGS.finditer(head) for digit in match.groups() if digit]
    if tags:
        return min(tags), area
    return (1, area) if area else (default, "")


def has_tag(text: str) -> bool:
    """Whether somebody wrote a priority into the message, as ``priority_of`` reads it."""
    return TAGS.search(text[:INSPECTED_CHARS]) is not None


def _area_in(text: str, areas: Sequence[str]) -> str:
    lowered = text.lower()
    return next((area for area in areas if area.strip() and _names(lowered, area.strip().lower())), "")


def _names(lowered: str, area: str) -> bool:
    """The area stands in the text as words of its own: "Calendar" is not named by "calendars2"."""
    start = lowered.find(area)
    while start >= 0:
        before, after = lowered[start - 1 : start], lowered[start + len(area) : start + len(area) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        start = lowered.find(area, start + 1)
    return False
