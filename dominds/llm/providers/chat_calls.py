"""Tool calls of chat completions, which are put together from the pieces in which servers stream them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from dominds import budgets
from dominds.llm.json_text import is_whole
from dominds.llm.messages import ToolCall
from dominds.llm.providers.contents import arguments_in, whole_number


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a tool call. ``index`` is the server's number of the call, or None, and ``at`` counts in its chunk."""

    at: int
    index: int | None
    id: str
    name: str
    arguments: str
    extra: Any

    @classmethod
    def of(cls, given: dict[str, Any], at: int) -> Self:
        function = given.get("function") or given.get("custom") or given
        return cls(
            at,
            whole_number(given.get("index")),
            str(given.get("id") or ""),
            str(function.get("name") or ""),
            arguments_in(function.get("arguments", function.get("input"))),
            given.get("extra_content"),
        )

    @property
    def place(self) -> int:
        return self.at if self.index is None else self.index


@dataclass(slots=True)
class CallUnderWay:
    """A call as far as its pieces have come. ``extra`` is what the provider wants back with it."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    chars: int = 0  # characters of the arguments
    extra: Any = None

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    def is_continued_by(self, piece: CallPiece, offered: Collection[str]) -> bool:
        """Check whether a piece at this call's place continues it. If not, the piece begins another call.

        Some servers number all parallel calls 0, give them no ids, or send the name with each piece, even with a new id
        each time.
        """
        if not piece.name or not self.name:
            return True
        if is_whole(self.text):
            return False
        if piece.id and self.id and piece.id != self.id:
            return piece.name == self.name and bool(self.text) and piece.arguments.lstrip()[:1] not in ("", "{")
        return piece.name == self.name or bool(self._grown_name(piece.name, offered))

    def is_repeated_by(self, piece: CallPiece) -> bool:
        """Check whether a piece repeats this whole call, since some servers repeat everything at the end."""
        is_alike = (piece.id, piece.name, len(piece.arguments)) == (self.id, self.name, self.chars)
        return is_alike and piece.arguments == self.text and is_whole(piece.arguments)

    def add(self, piece: CallPiece, offered: Collection[str]) -> str:
        """Add a piece, and return its text."""
        is_named_now = bool(piece.name) and not self.name
        if piece.name and self.name not in ("", piece.name):
            self.name = self._grown_name(piece.name, offered)
        self.name = self.name or piece.name
        self.arguments.append(piece.arguments)
        self.chars += len(piece.arguments)
        self.extra = piece.extra or self.extra
        return piece.name + piece.arguments if is_named_now else piece.arguments

    def _grown_name(self, name: str, offered: Collection[str]) -> str:
        """Return this call's name with a further piece of it, or an empty text if the piece is another name.

        Gemini and some gateways send names in pieces, as they send arguments.
        """
        if self.name in offered and name in offered:
            return ""
        grown = name if name.startswith(self.name) else self.name + name
        is_begun = bool(self.text) and name not in offered  # amid arguments no unknown tool begins
        return grown if is_begun or any(one.startswith(grown) for one in offered) else ""


class CallAssembly:
    """The calls of one answer, in the order in which they began. ``offered`` are the names of the offered tools."""

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = offered
        self._calls: list[CallUnderWay] = []
        self._newest_at: dict[int, CallUnderWay] = {}  # the newest call of each place
        self._by_id: dict[str, CallUnderWay] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[CallUnderWay]:
        return iter(self._calls)

    def add(self, chunk: Iterable[dict[str, Any]]) -> list[str]:
        """Add the pieces of one chunk, and return their texts."""
        texts = []
        named: set[int] = set()  # places of the calls that this chunk has named: a second name begins another call
        for at, given in enumerate(chunk):
            piece = CallPiece.of(given, at)
            if piece.id and any(call.is_repeated_by(piece) for call in self._calls):
                continue
            call = self._known_call_of(piece)
            is_named_again = bool(piece.name) and piece.place in named
            if call is None or is_named_again or not call.is_continued_by(piece, self._offered):
                call = self._begin(piece)
            if piece.id and not call.id:
                call.id, self._by_id[piece.id] = piece.id, call
            if piece.name:
                named.add(piece.place)
            texts.append(call.add(piece, self._offered))
        return texts

    def calls(self) -> list[ToolCall]:
        return [ToolCall(call.id, call.name, call.text) for call in self._calls]

    def _known_call_of(self, piece: CallPiece) -> CallUnderWay | None:
        """Return the call that a piece names by its index, else by its id, else by its place in the chunk.

        The id decides as well where a server numbers all calls 0 and tells their pieces apart by ids.
        """
        call = self._newest_at.get(piece.place)
        is_of_another_id = call is not None and not piece.name and call.id != piece.id
        return self._by_id.get(piece.id, call) if piece.index is None or is_of_another_id else call

    def _begin(self, piece: CallPiece) -> CallUnderWay:
        call = self._newest_at[piece.place] = CallUnderWay()
        self._calls.append(call)
        budgets.CALLS.check(len(self._calls))
        return call
