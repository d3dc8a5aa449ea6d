"""Bodies of chat completions made from those of another protocol, so that one reader judges them all."""

import re
from dataclasses import dataclass, field
from typing import Any

from dialogs.openai_api.errors import ApiError, invalid
from dialogs.openai_api.parsing import ChatRequest, chat_request

MESSAGE = re.compile(r"messages\[(\d+)\]")


@dataclass(slots=True)
class ChatBody:
    """``sources`` names the place in the client's own body from which each message came."""

    options: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def say(self, role: str, content: Any, source: str, **more: Any) -> None:
        self.messages.append({"role": role, "content": content, **more})
        self.sources.append(source)

    def request(self, dialog_header: str, policy: str) -> ChatRequest:
        """Raises ``ApiError``; its ``param`` names the client's own field."""
        try:
            body = {**self.options, "messages": self.messages, "tools": self.tools}
            return chat_request(body, dialog_header, policy)
        except ApiError as error:
            if error.param:
                error.param = MESSAGE.sub(lambda found: self.sources[int(found[1])], error.param)
            raise


def mapping(found: Any, param: str) -> dict[str, Any]:
    """What may be left out, and is an object otherwise."""
    if found is not None and not isinstance(found, dict):
        raise invalid(f"{param} must be an object.", param)
    return found or {}


def listed(found: Any, param: str) -> list[Any]:
    if found is not None and not isinstance(found, list):
        raise invalid(f"{param} must be a list.", param)
    return found or []
