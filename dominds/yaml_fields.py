"""Readers of the fields in files that people write. Bad fields are reported with file, path and reason, and ignored."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from dominds.yaml_file import BadYaml, read_yaml

Field = Callable[[Any], Any]  # raises Bad
SHOWN_CHARS = 60


class Severity(IntEnum):
    """The effect of a problem, worst first."""

    UNUSABLE = 1  # the whole entry is unusable
    IGNORED = 2  # the field is ignored
    REMARK = 3  # no effect, since the field is for people


SEVERITIES = {
    Severity.UNUSABLE: "cannot be used",
    Severity.IGNORED: "ignored",
    Severity.REMARK: "remark without effect",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that is not used, with the reason.

    ``path`` leads to it inside the file. ``pattern`` is the path with ``*`` for names that people chose. Problems of
    one pattern belong to one class.
    """

    file: str
    path: str
    reason: str
    pattern: str = ""
    severity: Severity = Severity.IGNORED

    def __str__(self) -> str:
        return f"{self.file}: {self.path}: {self.reason}" if self.path else f"{self.file}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ProblemClass:
    """Problems that differ only in the names of their entries, reported in one line."""

    problems: tuple[Problem, ...]

    @property
    def severity(self) -> Severity:
        return self.problems[0].severity

    def __str__(self) -> str:
        first, more = self.problems[0], len(self.problems) - 1
        where = f"{first.pattern} ({more + 1} times, first {first.path})" if more else first.path
        place = f"{first.file}: {where}" if where else first.file
        return f"{SEVERITIES[first.severity]}: {place}: {first.reason}"


def classes_of(problems: Iterable[Problem]) -> list[ProblemClass]:
    """Group problems into classes, the worst first."""
    classes: dict[tuple[Severity, str, str], list[Problem]] = {}
    for problem in problems:
        key = (problem.severity, problem.file, problem.pattern or problem.path)
        classes.setdefault(key, []).append(problem)
    return [ProblemClass(tuple(same)) for _, same in sorted(classes.items(), key=lambda entry: entry[0][0])]


class Bad(ValueError):
    """Raised for a value that cannot be used. The text says what was found and what was expected."""


class Reading:
    """One file while its fields are read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.usable = True
        self.document: Any = None

    @classmethod
    def of(cls, path: Path) -> "Reading":
        """Read a file. A missing file is empty; ``usable`` is false if the file cannot be read."""
        reading = cls(str(path))
        if not path.exists():
            return reading
        try:
            content = read_yaml(path)
        except BadYaml as error:
            reading.usable = False
            reading.report("", f"the file {error}; it is ignored", severity=Severity.UNUSABLE)
            return reading
        reading.document = content.document
        for key in content.double_keys:
            reading.report(key, "the key occurs twice; the last one holds")
        return reading

    def report(self, path: str, reason: str, pattern: str = "", severity: Severity = Severity.IGNORED) -> None:
        self.problems.append(Problem(self.file, path, reason, pattern, severity))

    def entries(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a mapping with their keys as text, since YAML reads some keys as numbers."""
        if not isinstance(value, Mapping):
            if value is not None:
                self.report(path, f"expected a mapping, found {quote_value(value)}")
            return
        for key, item in value.items():
            if isinstance(key, str | int | float) and not isinstance(key, bool):
                yield str(key), item
            else:
                self.report(path, f"expected text as key, found {quote_value(key)}")

    def fields(
        self,
        value: Any,
        path: str,
        known: Mapping[str, Field],
        pattern: str = "",
        severities: Mapping[str, Severity] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Return the sound fields of one entry, and report the others. A field without a value is left out.

        ``pattern`` is the path with ``*`` for chosen names. ``severities`` is that of each key's problems, by default
        ``IGNORED``.
        """
        sound: dict[str, Any] = {}
        for key, item in self.entries(value, path or "the file"):
            here, alike = f"{path}.{key}" if path else key, f"{pattern}.{key}" if pattern else ""
            severity = severities.get(key, Severity.IGNORED)
            if severity is Severity.REMARK:
                self.report(here, "a remark for people, which Dominds does not read", alike, severity)
            elif key not in known:
                self.report(here, f"the key means nothing here; known are {', '.join(known)}", alike, severity)
            elif item is not None:
                try:
                    sound[key] = known[key](item)
                except Bad as bad:
                    self.report(here, str(bad), alike, severity)
        return sound


def quote_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def anything(value: Any) -> Any:
    """Accept any value, for entries that are checked elsewhere."""
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Bad(f"expected text, found {quote_value(value)}")
    return value.strip()


def text_or_empty(value: Any) -> str:
    return "" if value == "" else text(value)


def text_up_to(most_chars: int) -> Field:
    def read(value: Any) -> str:
        result = text(value)
        if len(result) > most_chars:
            raise Bad(f"expected at most {most_chars} characters, found {len(result)}")
        return result

    return read


def texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item.strip() for item in value):
        raise Bad(f"expected a list of texts, found {quote_value(value)}")
    return list(dict.fromkeys(item.strip() for item in value))


def web_address(value: Any) -> str:
    address = text(value)
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise Bad(f"expected an address that begins with http:// or https://, found {quote_value(value)}")
    return address


def environment_name(value: Any) -> str:
    name = text(value)
    if not name.isidentifier():
        # The usual slip is to put the key itself here, so the value is not shown.
        raise Bad("expected the name of an environment variable, such as OPENAI_API_KEY; keys do not belong here")
    return name


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Bad(f"expected true or false, found {quote_value(value)}")
    return value


def one_of(choices: Sequence[str]) -> Field:
    def read(value: Any) -> str:
        if value not in choices:
            raise Bad(f"expected one of {', '.join(choices)}, found {quote_value(value)}")
        return str(value)

    return read


def amount(least: int, most: int) -> Field:
    """Return a reader of money. It reads 0.1 as exactly a tenth, and not as the nearest binary fraction."""

    def read(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not least <= value <= most:
            raise Bad(f"expected an amount from {least:,} to {most:,}, found {quote_value(value)}")
        return Decimal(str(value))

    return read


def number(least: float, most: float) -> Field:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise Bad(f"expected a number from {least} to {most}, found {quote_value(value)}")
        return value

    return read


def whole_number(least: int, most: int) -> Field:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Bad(f"expected a whole number from {least:,} to {most:,}, found {quote_value(value)}")
        return value

    return read
