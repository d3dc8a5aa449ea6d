"""What a server refuses: a rule is a name, what offends it, and the words of the refusal."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Offence = Mapping[str, Any] | None
"""What a rule's words need when something offends it; ``None`` when nothing does."""


@dataclass(frozen=True)
class Refusal:
    """A refusal as it was sent: the rule that spoke, the status, and the fields of the error."""

    rule: str
    status: int
    message: str
    type: str = "invalid_request_error"
    code: Any = None
    param: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of the error object


def too_long(request: Any) -> Offence:
    result = {"tokens": request.prompt_tokens, "window": request.family.window}
    return result if request.prompt_tokens > request.family.window else None


def choice_without_tools(request: Any) -> Offence:
    return {} if "tool_choice" in request.body and not request.body.get("tools") else None


def is_object(text: Any) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


class RequestRefused(Exception):
    """Raised where a refusal is found outside of the tables."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True)
class Rule:
    """``words``, ``param`` and ``code`` are format strings over what ``finds`` returned."""

    name: str
    finds: Callable[[Any], Offence]
    words: str
    status: int = 400
    type: str = "invalid_request_error"
    code: Any = None
    param: str | None = None

    def refusal(self, request: Any) -> Refusal | None:
        result = self.finds(request)
        if result is None:
            return None
        param = self.param.format(**result) if self.param else None
        code = self.code.format(**result) if isinstance(self.code, str) else self.code
        more = result.get("more", {})
        return Refusal(self.name, self.status, self.words.format(**result), self.type, code, param, more)


def check(rules: Iterable[Rule], request: Any) -> None:
    """Raises the first rule's refusal."""
    for rule in rules:
        if (refusal := rule.refusal(request)) is not None:
            raise RequestRefused(refusal)
