"""A reader of YAML files that people write. It bounds size, depth and aliases, and reports duplicate keys."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MAX_FILE_BYTES = 256 * 1024
MAX_ALIASES = 50
MAX_DEPTH = 30
MAX_NODES = 100_000  # with all aliases expanded, since 50 of them can double a list fifty times


# libyaml's parser takes a fraction of the time of Python's, and each process reads the catalog at its start. If it
# fails, Python's parser tries again: it takes some files that libyaml refuses, and its errors say more.
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadYaml(ValueError):
    """Raised for a file that cannot be used. The message says why and where."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A document, and the paths of keys that occur twice in it. The last of such keys is used."""

    document: Any
    double_keys: tuple[str, ...] = ()


def stamp_of(path: str | Path) -> tuple[int, int]:
    """Return a file's modification time in nanoseconds and its size in bytes; (0, -1) if there is no file."""
    try:
        stat = os.stat(path)  # noqa: PTH116  runs several times in each generation, and a Path would double the cost
    except OSError:
        return 0, -1
    return stat.st_mtime_ns, stat.st_size


def read_yaml(path: Path) -> YamlFile:
    """Read one document. Raises ``BadYaml``."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadYaml(f"cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadYaml(f"is larger than {MAX_FILE_BYTES // 1024} KB")
    return parse_yaml(content)


def parse_yaml(content: bytes) -> YamlFile:
    """Parse one document. Raises ``BadYaml``."""
    try:
        try:
            return _parse(content, _FAST)
        except yaml.YAMLError:
            return _parse(content, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadYaml(f"is not YAML{place}: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        if isinstance(error, BadYaml):
            raise
        raise BadYaml(f"is not YAML: {' '.join(str(error).split())[:200]}") from error


def _parse(content: bytes, loader: Any) -> YamlFile:
    _check_events(content, loader)
    node = yaml.compose(content, Loader=loader)
    if _expanded_nodes(node, {}) > MAX_NODES:
        raise BadYaml(f"expands to more than {MAX_NODES:,} values through its aliases")
    double_keys = tuple(_double_keys(node, ""))  # before merges of "<<" change the nodes
    return YamlFile(None if node is None else loader(b"").construct_document(node), double_keys)


def _check_events(content: bytes, loader: Any) -> None:
    """Bound depth and aliases before anything is built: a few lines can expand to gigabytes."""
    depth = aliases = 0
    for event in yaml.parse(content, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > MAX_DEPTH:
            raise BadYaml(f"nests deeper than {MAX_DEPTH} levels")
        if aliases > MAX_ALIASES:
            raise BadYaml(f"uses more than {MAX_ALIASES} aliases")


def _expanded_nodes(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Count the nodes that a walk would visit. ``known`` caches the counts of nodes by id, since aliases share them."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_NODES + 1  # while we are inside: a node that contains itself is endless
        children = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_expanded_nodes(child, known) for child in children)
    return known[id(node)]


def _double_keys(node: yaml.Node | None, path: str) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _double_keys(item, f"{path}[{position}]")
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        here = f"{path}.{name}" if path else name
        if name in seen and name != "<<":
            yield here
        seen.add(name)
        yield from _double_keys(value, here)
