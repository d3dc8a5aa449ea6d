"""Masking of images, which go before any words: a line says which image it was and how to get it back."""

from dataclasses import replace

from dominds.llm.messages import FilePart, Message, Part
from remediation.context import Toolbox, Unit, Units
from remediation.strategies.masking import shorten_oldest, with_messages

NO_LONGER_SHOWN = "is no longer shown"
GET_BACK = "The user can see it in the dialog; ask for it to be attached again if you have to look at it"


def mask_old_images(units: Units, target_tokens: int, toolbox: Toolbox) -> Units:
    """Mask images, oldest first, until the units fit into ``target_tokens``."""
    return shorten_oldest(units, target_tokens, lambda unit: _mask(unit, toolbox))


def _mask(unit: Unit, toolbox: Toolbox) -> Unit:
    if not any(message.parts for message in unit.messages):
        return unit
    turn = f" (turn {unit.source[-1]})" if unit.source else ""
    return with_messages(unit, [without_images(one, f"{NO_LONGER_SHOWN}{turn}") for one in unit.messages], toolbox)


def without_images(message: Message, reason: str) -> Message:
    """Replace each image of the message by a line; ``reason`` follows its name and size."""
    lines = (f"[{_label(part)} {reason}. {GET_BACK}.]" for part in message.parts)
    return replace(message, text="\n".join(filter(None, (message.text, *lines))), parts=())


def _label(part: Part) -> str:
    return f"File “{part.name}”" if isinstance(part, FilePart) else part.label
