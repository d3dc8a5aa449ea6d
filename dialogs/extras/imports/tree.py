"""The path through a tree of messages that a conversation shows now, even if the export has lost some of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dialogs.extras.imports.conversation import Item

NO_MESSAGE = "00000000-"  # how the parent's id of a first message begins in Claude's and LibreChat's exports


@dataclass(frozen=True, slots=True)
class Node:
    """A message of a tree. A node that does not ``speak``, such as a placeholder or a damaged piece, ends no path."""

    name: str
    parent: object
    at: datetime | None = None
    speaks: bool = True

    @property
    def is_first(self) -> bool:
        return not self.parent or str(self.parent).startswith(NO_MESSAGE)


def parents_in(entries: Mapping[str, Item], parent: str, children: str) -> dict[str, object]:
    """Map the name of each entry to its parent: the one that it names in the field ``parent``, or else the entry that
    lists it in ``children``.
    """
    below = {name: entry.get(children) for name, entry in entries.items()}
    listed = {str(child): name for name, names in below.items() if isinstance(names, list) for child in names}
    return {name: entry.get(parent) or listed.get(name) for name, entry in entries.items()}


def current_path(nodes: Iterable[Node], end: object = None) -> list[Node]:
    """Return the nodes from the first one to ``end``, or to the newest message if there is no node of that name.

    If a parent is missing, or is on the path already, the path goes on with the message that was said before. Messages
    below ``end`` belong to the path, since they are newer than the mark that names it.
    """
    ordered = _by_time([*nodes])
    if len(ordered) > 2 and not any(node.parent for node in ordered):
        return ordered  # no tree, but a list
    known = {node.name: (place, node) for place, node in enumerate(ordered)}
    place, node = known.get(str(end), (0, None))
    if node is None or (not node.speaks and str(node.parent) not in known):
        place, node = _newest_end(ordered)
    else:
        place, node = _newest_below(ordered, place)
    path: dict[str, Node] = {}
    unseen = len(ordered)
    has_mark = any(str(node.parent).startswith(NO_MESSAGE) for node in ordered)
    while node is not None:
        path[node.name] = node
        parent = str(node.parent)
        if parent in known and parent not in path:
            place, node = known[parent]
        elif node.is_first and (node.parent or not has_mark):
            break
        else:
            unseen = place = _spoken_before(ordered, min(place, unseen), path)
            node = ordered[place] if place >= 0 else None
    return list(path.values())[::-1]


def _by_time(nodes: list[Node]) -> list[Node]:
    """Sort by time if all nodes that speak have one; otherwise the order of the export holds."""
    times = [node.at for node in nodes if node.speaks]
    if None in times:
        return nodes
    return sorted(nodes, key=lambda node: node.at.timestamp() if node.at else 0)


def _newest_below(ordered: Sequence[Node], place: int) -> tuple[int, Node]:
    """Return the end of the newest branch below a message."""
    newest_child = {str(node.parent): at for at, node in enumerate(ordered)}
    seen = set()
    while (below := newest_child.get(ordered[place].name)) is not None and place not in seen:
        seen.add(place)
        place = below
    return place, ordered[place]


def _newest_end(ordered: Sequence[Node]) -> tuple[int, Node | None]:
    parents = {str(node.parent) for node in ordered}
    places = [place for place, node in enumerate(ordered) if node.speaks]
    ends = [place for place in places if ordered[place].name not in parents]
    newest = max(ends or places, default=-1)
    return newest, ordered[newest] if newest >= 0 else None


def _spoken_before(ordered: Sequence[Node], place: int, path: dict[str, Node]) -> int:
    """Return the place of the newest message before ``place`` that is not on the path, or -1."""
    places: Iterator[int] = iter(range(place - 1, -1, -1))
    return next((at for at in places if ordered[at].speaks and ordered[at].name not in path), -1)
