"""Token counts and prompt caches of the doubles: deterministic, and no model's own."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

BYTES_PER_TOKEN = 4
NOT_COUNTED = frozenset({"cache_control", "signature", "encrypted_content"})  # no model reads these


def count_text(text: str) -> int:
    """A token for each four bytes of UTF-8, at least one where there is text."""
    return max(1, len(text.encode()) // BYTES_PER_TOKEN) if text else 0


def canonical(value: Any) -> str:
    """The same text for the same content, whatever the order of its keys, without what a model does not read."""
    return json.dumps(_without(value, NOT_COUNTED), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(part, names) for name, part in value.items() if name not in names}
    if isinstance(value, list):
        return [_without(part, names) for part in value]
    return value


@dataclass(frozen=True)
class Unit:
    """A part of a prompt that a cache holds whole: a tool, the system prompt, a block or a message."""

    text: str
    tokens: int
    is_breakpoint: bool = False


@dataclass
class PromptCache:
    """What earlier requests of an account left in the provider's cache."""

    _held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def common(self, account: str, units: Sequence[Unit]) -> int:
        """Tokens of the longest beginning that an earlier request of the account had too. Remembers this one."""
        marks = list(_marks(units))
        read = max((tokens for mark, tokens, _ in marks if mark in self._held[account]), default=0)
        self._held[account].update(mark for mark, _, _ in marks)
        return read

    def marked(self, account: str, units: Sequence[Unit], minimum: int, look_back: int = 20) -> tuple[int, int]:
        """Tokens read and written where only beginnings that end in a breakpoint are kept, and only from ``minimum``.

        A breakpoint finds what was written up to ``look_back`` units before it.
        """
        marks = list(_marks(units))
        ends = [at for at, unit in enumerate(units) if unit.is_breakpoint]
        in_sight = {at for end in ends for at in range(max(0, end - look_back), end + 1)}
        held = self._held[account]
        read = max((marks[at][1] for at in in_sight if marks[at][0] in held), default=0)
        written = max((marks[at][1] for at in ends if marks[at][1] >= minimum), default=0)
        held.update(marks[at][0] for at in ends if marks[at][1] >= minimum)
        return read, max(0, written - read)


def _marks(units: Sequence[Unit]) -> Iterator[tuple[str, int, bool]]:
    """For each unit: what names the beginning that ends with it, its tokens, whether it may be kept."""
    digest, tokens = sha256(), 0
    for unit in units:
        digest.update(unit.text.encode() + b"\0")
        tokens += unit.tokens
        yield digest.hexdigest(), tokens, unit.is_breakpoint
