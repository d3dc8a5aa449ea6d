"""Output items of a response, which are put together from the events in which servers stream them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from dominds import budgets
from dominds.llm.json_text import is_whole
from dominds.llm.messages import ToolCall
from dominds.llm.providers.contents import arguments_in, spoken_in, whole_number


@dataclass(slots=True)
class OutputItem:
    """An item as far as it has come: its newest fields and, beside them, the pieces of a call's arguments."""

    fields: dict[str, Any]
    arguments: list[str] = field(default_factory=list)
    is_done: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Read an item. One that calls a tool is a ``function_call``: some servers have other types for it."""
        if given.get("type") != "function_call" and not (given.get("name") and given.get("call_id")):
            return cls(given)
        fields = {**given, "type": "function_call"}
        arguments = fields.pop("arguments", given.get("input"))
        return cls(fields, [arguments_in(arguments)])

    @property
    def kind(self) -> str:
        return str(self.fields.get("type") or "message")

    @property
    def is_call(self) -> bool:
        return self.kind == "function_call"

    @property
    def call(self) -> ToolCall:
        call_id, name = self.fields.get("call_id"), self.fields.get("name")
        return ToolCall(str(call_id or ""), str(name or ""), "".join(self.arguments))

    @property
    def parts(self) -> list[Any]:
        """Return the parts of a message; they need not be objects."""
        content = self.fields.get("content") if self.kind == "message" else None
        return content if isinstance(content, list) else [content]

    @property
    def text(self) -> str:
        return "".join(text for part in self.parts for text, is_thought in spoken_in(part) if not is_thought)

    def is_continued_by(self, other: "OutputItem") -> bool:
        """Check whether a newer state at this item's place continues it. If not, another item begins there.

        Some servers number all items 0, or give them new ids in each event.
        """
        if (self.fields, self.call) == (other.fields, other.call):
            return not self.is_done or bool(other.fields.get("call_id") or other.fields.get("id"))
        if self.is_done or self.kind != other.kind:
            return False
        if not self.is_call or not (self.call.name or self.call.id):  # of a call without both, only arguments have come
            return True
        return self._has_id_of(other) and self._grows_into(other)

    def _has_id_of(self, other: "OutputItem") -> bool:
        """Compare the ids of two calls, or those of their items where one of the calls has none."""
        name = "call_id" if self.call.id and other.call.id else "id"
        mine, others = self.fields.get(name), other.fields.get(name)
        return not mine or not others or mine == others

    def _grows_into(self, other: "OutputItem") -> bool:
        """Check whether the arguments of a newer state may be these or go on from them."""
        before, after = self.call.arguments, other.call.arguments
        return not after or after.startswith(before) if other.is_done else not is_whole(before)


class ItemAssembly:
    """The items of one response, in the order in which they began."""

    def __init__(self) -> None:
        self._items: list[OutputItem] = []
        self._named: dict[tuple[str, Any], int] = {}  # places of items by what events call them: an id, or an index

    def __iter__(self) -> Iterator[OutputItem]:
        return iter(self._items)

    def put(self, document: dict[str, Any], newest: OutputItem) -> None:
        """Put the newest state of an item in the place where the item began, or at the end if another item begins."""
        names = _names_in(document, newest.fields.get("id"))
        known = [self._named[name] for name in names if name in self._named]
        if not names and self._items:
            known = [len(self._items) - 1]
        at = next((at for at in known if self._items[at].is_continued_by(newest)), len(self._items))
        self._named |= dict.fromkeys(names, at)
        if at == len(self._items):
            self._items.append(newest)
            budgets.CALLS.check(len(self._items) // 4)  # items of text and reasoning stand between calls
            return
        before = self._items[at]
        arguments = newest.arguments if newest.call.arguments else before.arguments  # pieces may come before their item
        self._items[at] = OutputItem(newest.fields, arguments, before.is_done or newest.is_done)

    def call_of(self, document: dict[str, Any]) -> OutputItem:
        """Return the call that a piece of arguments belongs to: the one that the event names, or else the newest."""
        names = _names_in(document, document.get("item_id"))
        at = next((self._named[name] for name in names if name in self._named), None)
        if at is not None:
            return self._items[at]
        if names or not self._items or not self._items[-1].is_call:
            self.put(document, OutputItem({"type": "function_call", "id": document.get("item_id")}))
        return self._items[-1]

    def settle(self, output: Iterable[dict[str, Any]]) -> None:
        """Take the items of the whole response. Some servers end with a part of them, or without any."""
        given = [OutputItem.of(each) for each in output]
        if _wholeness(given) >= _wholeness(self._items):
            self._items = given or self._items
        elif others := [item for item in given if not item.is_call]:
            self._items = [*others, *(item for item in self._items if item.is_call)]


def _names_in(document: dict[str, Any], item_id: Any) -> list[tuple[str, Any]]:
    """Return the names by which an event calls its item."""
    names = {"id": item_id, "output_index": whole_number(document.get("output_index"))}
    return [(name, value) for name, value in names.items() if value not in (None, "")]


def _wholeness(items: Iterable[OutputItem]) -> tuple[int, int]:
    """Return how many calls are complete, and how many there are."""
    calls = [item.call for item in items if item.is_call]
    return sum(bool(call.name) and is_whole(call.arguments) for call in calls), len(calls)
