"""What a tool's result says in few words: its values, each with the name that its row gives it.

`flight_number HAT069, date 2024-05-20; HAT083, 2024-05-21`: a name that follows the same one as before is left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from remediation.text.coverage import Shown
from remediation.text.exact_tokens import ASSIGNED, EXACT, NAMES, places_of_tokens
from remediation.text.marks import disarm
from remediation.text.reading import MARK, without_routine
from remediation.text.secret_masking import redact

INSPECTED_CHARS = 20_000  # of a result
VALUE_CHARS = 4, 80  # of a value at least and at most
NAME_CHARS = 32  # of what stands before a value in its row: "scheduled_departure_time_est" has 28
ROW_END = re.compile(r"\n|(?<=\})\s*,")
KEY_END = re.compile(r'"\s*:\s*')  # of JSON
ARGUMENT = re.compile(r'"\s*:\s*(?:"((?:[^"\\]|\\.)+)|(-?\d[\d.]*))')  # of JSON
ARGUMENTS_CHARS = 80  # of the arguments of a call, that stand beside its values
NAMED = "\x1f "  # put in its place: what stands before it is a name, whatever it looks like
RULED = re.compile(r"[\s|+:-]*--[\s|+:-]*")  # the line below the names of a table's columns
JOINTS = " \t\x1f:=-'([{"  # between a name and its value
PARTS = re.compile(r"[,;{}\[\]|()<>\"\x1f]+")
SAYS = re.compile(r"(?<![:\w])[^\W\d_]{2}")  # a word
LINE = re.compile(r":\d+\b")  # behind a path, as search tools and compilers print it
REMEMBERED = 64  # results, which one rewrite looks through several times
PLACES = frozenset({"path", "windows path", "url", "email"})
SWITCH = re.compile(r"[=:]\s?(?:true|false|on|off|yes|no)$")  # the one value without a digit that nobody guesses


class _Value(NamedTuple):
    row: int
    name: str
    text: str


def listing(text: str, room: int, count: Callable[[str], int], known: Shown | None = None) -> str:
    """Return the values of a result's rows in their order, as far as they fit into ``room`` tokens. A row of which all
    is ``known`` elsewhere is left out.
    """
    values = _values_of(text[:INSPECTED_CHARS])
    new_rows = {value.row for value in values if known is None or not known.has_value(value.text)}
    rows: dict[int, list[str]] = {}
    for value, entry in _entries(value for value in values if value.row in new_rows):
        room -= count(f", {entry}")
        if room < 0:
            break
        rows.setdefault(value.row, []).append(entry)
    return disarm("; ".join(map(", ".join, rows.values())))


def _entries(values: Iterable[_Value]) -> Iterator[tuple[_Value, str]]:
    """Write each value behind its name, unless the name follows the one that it followed before."""
    follows: dict[str, str] = {}
    last = ""
    for value in values:
        name = "" if follows.get(last) == value.name else value.name
        yield value, f"{name} {value.text}".strip()
        if value.name:
            follows[last], last = value.name, value.name


@lru_cache(maxsize=REMEMBERED)
def _values_of(text: str) -> tuple[_Value, ...]:
    """Return each value once, with its first name."""
    values: dict[str, _Value] = {}
    for value in _read_values(text):
        values.setdefault(value.text, value)
    return tuple(values.values())


def _read_values(text: str) -> Iterator[_Value]:
    """Yield what cannot be guessed again. Its name is that of its column in a table, else what stands before it in its
    row, since the value before it.
    """
    columns: list[str] = []
    above = rest = ""  # the line before, and what of it stands behind its last value
    for number, line in enumerate(ROW_END.split(KEY_END.sub(NAMED, redact(text)).replace('"', " "))):
        if MARK.match(line.strip()):  # the runtime's own: what was cut, and how much is left out
            continue
        if RULED.fullmatch(line):
            columns = [" ".join(name.split()) for name in above.strip(" |").split("|")]
        elif "|" not in line:
            columns = []
        above, read = line, 0
        row = f"{rest if NAMED in rest else ''}{without_routine(line.strip(' |'))}"
        for key, start, end in places_of_tokens(row):
            value, shape = " ".join(row[start:end].split()).strip(" .,;:)}]"), NAMES[key]
            if shape == "path" and (number_of_line := LINE.match(row, end)):
                value += number_of_line[0]
            if key not in EXACT or row.startswith(NAMED, end):
                continue
            before, column = row[read:start], row.count("|", 0, start)
            name = columns[column] if column < len(columns) else _name_in(before)
            if not _is_telling(value, shape):
                continue
            yield _Value(number, "" if shape in ASSIGNED else name, value)
            read = end
        rest = row[read:][-NAME_CHARS:]


def _is_telling(value: str, shape: str) -> bool:
    least, most = VALUE_CHARS
    if not least <= len(value) <= most:
        return False
    return shape in PLACES or any(map(str.isdigit, value)) or (shape in ASSIGNED and bool(SWITCH.search(value)))


def _name_in(before: str) -> str:
    name = " ".join(PARTS.split(before.rstrip(JOINTS))[-1].split()).lstrip(" *#+:.@/'-")
    name = name if len(name) <= NAME_CHARS else name[-NAME_CHARS:].partition(" ")[2]
    return name if SAYS.search(name) else ""


def arguments_in_short(arguments: str) -> str:
    """Return the short texts and numbers among a call's arguments, as far as they fit."""
    chosen: list[str] = []
    room = ARGUMENTS_CHARS
    for text, number in ARGUMENT.findall(redact(arguments[:INSPECTED_CHARS])):
        entry = number or " ".join(text.replace("\\n", " ").replace('\\"', '"').split())
        if 0 < len(entry) <= room:
            chosen.append(entry)
            room -= len(entry) + 2
    return ", ".join(chosen)
