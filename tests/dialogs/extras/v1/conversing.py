"""Conversations of a program with an agent: what both said in turn, sent, answered and stored."""

from typing import Any

from dialogs.extras.v1 import conversations, runs
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive

ANSWER = {"text": "You said {{last_user}}, and that is noted in the log of this voyage.", "usage": "estimate"}


def noted(text: str) -> str:
    return f"You said {text}, and that is noted in the log of this voyage."


def posted(key: ApiKey, agent: str, *texts: str, **fields: Any) -> Dialog:
    """What the user and the agent said in turn, sent and answered."""
    lines = [ClientMessage(("user", "assistant")[number % 2], text) for number, text in enumerate(texts)]
    run = conversations.begin(key, ChatRequest(model=agent, messages=tuple(lines), **fields))
    drive(run.dialog_id)
    dialog = Dialog.objects.get(pk=run.dialog_id)
    runs.note_answer(run, dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq").text)
    return dialog


def as_history(*asked: str) -> list[str]:
    """Messages of the user's with the agent's answers."""
    return [text for one in asked for text in (one, noted(one))]


def texts_in(dialog: Dialog) -> list[str]:
    return list(dialog.turns.filter(position__isnull=False).order_by("position").values_list("text", flat=True))


def conversation(key: ApiKey, agent: str, *asked: str, **fields: Any) -> Dialog:
    """A conversation sent back as it was."""
    return [posted(key, agent, *as_history(*asked[:number]), text, **fields) for number, text in enumerate(asked)][-1]


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": "", "parameters": {"type": "object"}}
