"""A listing of the values in a tool's result, each behind the name that its row gives it.

`flight_number HAT069, date 2024-05-20; HAT083, 2024-05-21`: rows end with a semicolon, and a name is left out where it
follows the same name as before.
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
VALUE_CHARS = 4, 80  # the least and the greatest length of a value
NAME_CHARS = 32  # the greatest length of a name: "scheduled_departure_time_est" has 28
ROW_END = re.compile(r"\n|(?<=\})\s*,")
KEY_END = re.compile(r'"\s*:\s*')  # of JSON
ARGUMENT = re.compile(r'"\s*:\s*(?:"((?:[^"\\]|\\.)+)|(-?\d[\d.]*))')  # of JSON
ARGUMENTS_CHARS = 80  # the greatest length of the arguments that are shown of a call
NAMED = "\x1f "  # stands for KEY_END: the word before it is a name, even if it looks like a value
RULED = re.compile(r"[\s|+:-]*--[\s|+:-]*")  # the line below the names of a table's columns
JOINTS = " \t\x1f:=-'([{"  # signs between a name and its value
PARTS = re.compile(r"[,;{}\[\]|()<>\"\x1f]+")
SAYS = re.compile(r"(?<![:\w])[^\W\d_]{2}")  # the beginning of a word, without which a name says nothing
LINE = re.compile(r":\d+\b")  # the number of a line behind a path, as search tools and compilers print it
REMEMBERED = 64  # results, since one rewrite reads each of them several times
PLACES = frozenset({"path", "windows path", "url", "email"})
SWITCH = re.compile(r"[=:]\s?(?:true|false|on|off|yes|no)$")  # a value without a digit that is listed nevertheless


class _Value(NamedTuple):
    """A value with the number of its row and the name before it, which may be empty."""

    row: int
    name: str
    text: str


def listing(text: str, room: int, count: Callable[[str], int], known: Shown | None = None) -> str:
    """Return the values of a result's rows in their order, as far as they fit into ``room`` tokens.

    A row whose values are all ``known`` is left out.
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
    """Yield each value with its text in the listing."""
    follows: dict[str, str] = {}
    last = ""
    for value in values:
        name = "" if follows.get(last) == value.name else value.name
        yield value, f"{name} {value.text}".strip()
        if value.name:
            follows[last], last = value.name, value.name


@lru_cache(maxsize=REMEMBERED)
def _values_of(text: str) -> tuple[_Value, ...]:
    """Return each value of a result once, with the name that it has first."""
    values: dict[str, _Value] = {}
    for value in _read_values(text):
        values.setdefault(value.text, value)
    return tuple(values.values())


def _read_values(text: str) -> Iterator[_Value]:
    """Yield the values of a result.

    The name of a value is the heading of its column in a table; otherwise the text between the value before and it.
    """
    columns: list[str] = []
    above = rest = ""  # the line before, and the part of it behind its last value
    for number, line in enumerate(ROW_END.split(KEY_END.sub(NAMED, redact(text)).replace('"', " "))):
        if MARK.match(line.strip()):  # a notice of the runtime holds no values of the result
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
    """Check whether a value is worth a place: neither short nor long, and a place, a number or a switch."""
    least, most = VALUE_CHARS
    if not least <= len(value) <= most:
        return False
    return shape in PLACES or any(map(str.isdigit, value)) or (shape in ASSIGNED and bool(SWITCH.search(value)))


def _name_in(before: str) -> str:
    """Return the name at the end of the text before a value, or an empty text."""
    name = " ".join(PARTS.split(before.rstrip(JOINTS))[-1].split()).lstrip(" *#+:.@/'-")
    name = name if len(name) <= NAME_CHARS else name[-NAME_CHARS:].partition(" ")[2]
    return name if SAYS.search(name) else ""


def arguments_in_short(arguments: str) -> str:
    """Return the texts and numbers among a call's arguments that fit, separated by commas. The arguments are JSON."""
    chosen: list[str] = []
    room = ARGUMENTS_CHARS
    for text, number in ARGUMENT.findall(redact(arguments[:INSPECTED_CHARS])):
        entry = number or " ".join(text.replace("\\n", " ").replace('\\"', '"').split())
        if 0 < len(entry) <= room:
            chosen.append(entry)
            room -= len(entry) + 2
    return ", ".join(chosen)
