"""Kind and priority of a context unit, by evidence: who spoke, which tool on which file, fences, the look of lines."""

import re
from collections.abc import Sequence

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Unit, UnitKind, UnitRole
from remediation.text.reading import is_code_line

INSPECTED_CHARS = 20_000  # enough to judge by, and a bound on the work for a message of a megabyte
MIN_SHARE = 0.5  # of the lines that are not blank: most of them, a choice; 0.25 and 0.9 change nothing on the sets

PLAN_STARTS = ("plan:", "## plan", "# plan", "todo:", "next steps:", "steps:", "milestones:", "to do list")

# Endings of files that hold a program, by what it says about a tool's output that it was read from one. Data and
# settings are no program: their values are facts.
CODE_FILES = frozenset(
    """asm bash bat c cc clj cljs coffee cpp cs css csx cxx dart diff ejs elm erl ex exs f90 fish fs go gradle
    graphql groovy h haml handlebars hbs hpp hrl hs htm html hxx java jinja jl js jsx kt kts less lisp lua m mjs
    ml mli mm nim nix patch php pl pm po pot proto ps1 pug py pyi pyx r rb rs sass scala scm scss sh sol sql
    svelte swift tcl tf thrift ts tsx v vb vbs vhd vim vue xsd xsl xslt zig zsh""".split()
)
CODE_FILE = re.compile(
    rf"[\w)-]\.(?:{'|'.join(CODE_FILES)})\b(?!\.\w)"
    r"|\b(?:make|docker|jenkins|rake|gem|vagrant)file\b|\bcmakelists\.txt\b",
    re.I,
)
# Commands whose output is the file itself, and some whose output is not.
READING_COMMAND = re.compile(r"\b(?:cat|sed|head|tail|nl|less|more|bat|type|show|awk|tac)\s")
RUNNING_COMMAND = re.compile(
    r"(?:^|[\"\[;&|])\s*(?:sudo )?(?:python[\d.]*|pytest|node|ruby|make|go|cargo|npm|grep|rg|find|ls"
    r"|git (?:log|status|push|commit)|psql)\b"
)
READING_TOOL = re.compile(r"read|view|open|cat|fetch|get|show|load|file|source|content|artifact|download", re.I)
WRITING_TOOL = re.compile(
    r"write|edit|create|delete|remove|append|patch|replace|update|save|move|rename|run|exec", re.I
)
LONGEST_CALL = 2_000  # characters of arguments that may be a path or a command

# Each pattern is anchored to one line and repeats no group inside another: linear on any input.
CHECKBOX = re.compile(r"[-*+] \[[ xX]\] ")
STEP = re.compile(r"(?:step|phase|milestone) \d{1,3}\b", re.IGNORECASE)
# An entry of a plan at the head of a line: "TODO-12: add tests". Named in passing, it is a reference to work, not a
# plan. TODO is what people write in theirs; nothing of this module is left to do.
PLAN_ENTRY = re.compile(r"(?:[-*+] |\d{1,3}[.)] )?(?:TODO|PLAN|TASK|MILESTONE)[-#:]\d{1,6}\s*(?:[:–—-]|$)")
TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b")
LOG_LEVEL = re.compile(r"\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:]? ?")
STACK_LINE = re.compile(
    r"File \"[^\"\n]{1,300}\", line \d|at [\w$.<>]{1,200}\(|Traceback \(most recent|\w{1,80}(?:Error|Exception): "
)

DATA = re.compile(r"\"[^\"]*\"(?:\s*:|,?$)|[\[\]{}],?$")  # a line of JSON

# A tag stands alone at the beginning or the end of a message, or is all that its first or last line says.
TAG = r"(?:\[p([123])\]|(?<![\w#])#p([123])\b|\bpriority {0,3}[:=] {0,3}([123])\b(?=\s*(?:$|[.,;:)\]–—-])))"
FIRST_TAG = re.compile(rf"\W{{0,8}}{TAG}", re.IGNORECASE)
LAST_TAG = re.compile(rf"{TAG}[\s.!)\]]{{0,8}}\Z", re.IGNORECASE)
TAG_CHARS = 40  # within which a tag and the signs around it stand


def kind_of(unit: Unit) -> UnitKind:
    """Return the kind of a unit. What a tool printed is judged together with the calls that it answers."""
    if unit.role is not UnitRole.TOOL:
        return classify(unit.text, unit.role)
    calls = {call.id: call for message in unit.messages for call in message.tool_calls}
    sizes: dict[UnitKind, int] = {}
    for message in unit.messages:
        if message.role is Role.TOOL and message.text.strip():
            kind = _kind_of_result(message, calls.get(message.tool_call_id))
            sizes[kind] = sizes.get(kind, 0) + len(message.text)
    return max(sizes, key=lambda kind: sizes[kind]) if sizes else UnitKind.LOG


def _kind_of_result(message: Message, call: ToolCall | None) -> UnitKind:
    lines = _lines_of(message.text)
    if call is not None and not _is_log(lines):
        if RUNNING_COMMAND.search(call.arguments[:LONGEST_CALL]):
            return UnitKind.CODE if _is_code(lines) else UnitKind.LOG
        if _reads_code(call):
            return UnitKind.CODE
    return classify(message.text, UnitRole.TOOL)


def classify(text: str, role: UnitRole) -> UnitKind:
    """Tell code, plan, log and plain message apart by the text alone. Tool output that is not code is a log."""
    lines = _lines_of(text)
    if not lines:
        return UnitKind.OTHER
    if _is_log(lines):
        return UnitKind.LOG
    if role is not UnitRole.TOOL and _is_plan(lines):
        return UnitKind.PLAN_REF
    if _is_code(lines):
        return UnitKind.CODE
    return UnitKind.LOG if role is UnitRole.TOOL else UnitKind.MESSAGE


def _lines_of(text: str) -> list[str]:
    return [line.strip() for line in text[:INSPECTED_CHARS].splitlines() if line.strip()]


def _reads_code(call: ToolCall) -> bool:
    """Check whether the call prints a file whose name says that it holds code."""
    reads = READING_TOOL.search(call.name) and not WRITING_TOOL.match(call.name)
    is_path = len(call.arguments) <= LONGEST_CALL and CODE_FILE.search(call.arguments)
    return bool(is_path and (reads or READING_COMMAND.search(call.arguments)))


def _is_log(lines: Sequence[str]) -> bool:
    logged = sum(bool(TIMESTAMP.match(line) or LOG_LEVEL.match(line) or STACK_LINE.match(line)) for line in lines)
    return len(lines) > 1 and logged / len(lines) >= MIN_SHARE


def _is_plan(lines: Sequence[str]) -> bool:
    if lines[0].lower().startswith(PLAN_STARTS):
        return True
    if sum(bool(CHECKBOX.match(line)) for line in lines) >= 2:
        return True
    if sum(bool(PLAN_ENTRY.match(line)) for line in lines) >= min(2, len(lines)):
        return True
    return sum(bool(STEP.match(line.lstrip("-*# 0123456789."))) for line in lines) >= 2


def _is_code(lines: Sequence[str]) -> bool:
    """Check whether most of the text is inside fences, or most of its lines look like a program's."""
    fenced, inside = 0, False
    for line in lines:
        if line.startswith("```"):
            inside = not inside
        elif inside:
            fenced += 1
    if fenced / len(lines) >= MIN_SHARE:
        return True
    return (
        len(lines) > 1 and sum(is_code_line(line) and not DATA.match(line) for line in lines) / len(lines) >= MIN_SHARE
    )


def priority_of(text: str, areas: Sequence[str], default: int, role: UnitRole = UnitRole.USER) -> tuple[int, str]:
    """The priority of a message, 1 to 3, and the area that gave it, if one did.

    A person's tag at the beginning or the end wins (``[P1]``, ``#p2``, ``priority: 1``), the most important where there
    are two; else an area that is named makes it 1, else ``default``. Tool output is data: neither tags nor areas in it
    count.
    """
    if role is UnitRole.TOOL:
        return default, ""
    area = _area_in(text[:INSPECTED_CHARS], areas)
    tags = tags_of(text) if role is not UnitRole.ASSISTANT else []
    if tags:
        return min(tags), area
    return (1, area) if area else (default, "")


def tags_of(text: str) -> list[int]:
    """Return the priorities that someone wrote at the beginning and the end of the message."""
    text = text.strip()
    first, last = text[:INSPECTED_CHARS].partition("\n")[0], text[-TAG_CHARS:]
    results = (FIRST_TAG.match(first[:TAG_CHARS]), LAST_TAG.search(last))
    return [int(digit) for match in results if match for digit in match.groups() if digit]


def _area_in(text: str, areas: Sequence[str]) -> str:
    lowered = text.lower()
    return next((area for area in areas if area.strip() and _names(lowered, area.strip().lower())), "")


def _names(lowered: str, area: str) -> bool:
    """Check whether the text names the area in words of its own: "calendars2" does not name "Calendar"."""
    return area in lowered and bool(re.search(rf"(?<![^\W_]){re.escape(area)}(?![^\W_])", lowered))
