"""Texts of a wanted length, and the requests for summaries of them."""

from typing import Any


def prose(number: int, tokens: int = 500) -> str:
    """A text of about so many tokens, and no sentence of it twice."""
    line = "The clerk of office {n} wrote that the {k}th cart of wool came late because the bridge was closed again. "
    return "".join(line.format(n=number, k=k) for k in range(tokens // 23))


def is_summary(messages: list[dict[str, Any]]) -> bool:
    return str(messages[0]["content"]).startswith("You write the hand-off summary")
