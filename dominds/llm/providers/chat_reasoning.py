"""Reasoning in chat completions, which has no standard field: what is shown of it, and what goes back unchanged."""

from typing import Any

from dominds.llm.providers.contents import text_inside

REASONING_FIELDS = (
    "reasoning_content",  # most
    "reasoning",  # vLLM, OpenRouter
    "thinking",  # Ollama
    "reasoning_text",  # Copilot
)
GROWING = ("text", "summary", "data", "signature")  # fields of a detail that arrive in pieces


class Reasoning:
    """The reasoning of one answer as far as it has come, in fields of text and in ``reasoning_details``."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}  # pieces by field; an empty field counts as well
        self._details: list[dict[str, Any]] = []

    def add(self, delta: dict[str, Any]) -> str:
        """Add what a delta holds, and return its new text. Some gateways send it in several fields: one is shown."""
        shown = ""
        for name in REASONING_FIELDS:
            if (piece := delta.get(name)) is not None:
                text = text_inside(piece)
                self.add_text(text, name)
                shown = shown or text
        for detail in delta.get("reasoning_details") or ():
            if isinstance(detail, dict):
                added = self._add_detail(detail)
                shown = shown or added
        return shown

    def add_text(self, text: str, name: str = REASONING_FIELDS[0]) -> None:
        """Add a piece to the field ``name``."""
        self._texts.setdefault(name, []).append(text)

    def fields(self) -> dict[str, str]:
        return {name: "".join(pieces) for name, pieces in self._texts.items()}

    def details(self) -> list[dict[str, Any]]:
        return self._details

    def _add_detail(self, detail: dict[str, Any]) -> str:
        """Add a piece to its detail, and return its new text. MiniMax repeats the earlier text in each piece."""
        place = (detail.get("index"), detail.get("type"))
        known = next((each for each in self._details if (each.get("index"), each.get("type")) == place), None)
        if known is None:
            self._details.append(dict(detail))
            return _visible_text(detail)
        before = _visible_text(known)
        for name, value in detail.items():
            old = known.get(name)
            if name in GROWING and isinstance(old, str) and isinstance(value, str):
                known[name] = value if len(value) > len(old) and old and value.startswith(old) else old + value
            elif value is not None:
                known[name] = value
        return _visible_text(known)[len(before) :]


def _visible_text(detail: dict[str, Any]) -> str:
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""
