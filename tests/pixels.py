"""Images for tests, of any size and format, each of one colour."""

import base64
import io
from functools import cache

from PIL import Image


@cache
def picture(kind: str = "PNG", size: tuple[int, int] = (64, 48), colour: str = "teal") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, kind)
    return out.getvalue()


def coded(content: bytes) -> str:
    return base64.b64encode(content).decode()
