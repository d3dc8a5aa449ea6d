"""What stands for a compacted conversation, and the text by which a program carries it."""

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

MARK = "dominds."
MOST_BYTES = 32 * 1024 * 1024  # of what is unpacked: as much as a request may have
ROLES = ("user", "tool", "system", "developer")


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation up to ``position`` of a dialog, with newer messages that the dialog does not hold yet (``tail``,
    as chat completions have them). ``text`` is what the model saw of it, for when the dialog is not kept any more."""

    dialog_id: UUID | None
    position: int
    text: str
    tail: tuple[dict[str, Any], ...] = ()

    def pack(self, *, with_text: bool = True) -> str:
        """Return it as one opaque text; without ``text`` where the program carries that beside it."""
        fields = {"dialog": self.dialog_id, "position": self.position, "tail": self.tail}
        whole = orjson.dumps({**fields, "text": self.text if with_text else ""})
        return MARK + base64.urlsafe_b64encode(zlib.compress(whole)).decode()


def unpack(packed: Any) -> Compacted | None:
    """Return what a text of ours stands for; None for any other."""
    if not isinstance(packed, str) or not packed.startswith(MARK):
        return None
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(base64.urlsafe_b64decode(packed.removeprefix(MARK)), MOST_BYTES)
        fields = orjson.loads(raw)
        dialog_id, position, text, tail = (fields[name] for name in ("dialog", "position", "text", "tail"))
        is_sound = isinstance(position, int) and isinstance(text, str) and isinstance(tail, list)
        if not is_sound or not all(isinstance(one, dict) and one.get("role") in ROLES for one in tail):
            return None
        return Compacted(UUID(dialog_id), position, text, tuple(tail))
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, AttributeError):
        return None
