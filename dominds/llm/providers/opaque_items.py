"""What a provider wants back unchanged, marked with whose it is: signed reasoning means nothing to another model."""

from collections.abc import Iterable, Iterator
from typing import Any

from dominds.llm.json_text import NotJson, dumped, parsed


def kept(owner: str, items: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Store items; ``owner`` is provider and model."""
    return tuple(dumped({"of": owner, "item": item}).decode() for item in items)


def given_back(owner: str, stored: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The items that ``owner`` wrote, in order; everything else is passed over."""
    for text in stored:
        try:
            found = parsed(text)
        except NotJson:
            continue
        if isinstance(found, dict) and found.get("of") == owner and isinstance(found.get("item"), dict):
            yield found["item"]
