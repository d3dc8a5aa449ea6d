"""Images in requests: what is wrong with one, and how many tokens it takes. Decoded for real, by Pillow."""

import base64
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Any

from PIL import Image, UnidentifiedImageError

MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.S)
MOST_BASE64 = 5_242_880  # bytes, of Anthropic's
MOST, MOST_OF_SMALL_WINDOWS, SMALL_WINDOW = 600, 100, 200_000  # images in a request, by Anthropic's windows
MANY = 20  # images in a request; the sides of each are bounded more closely then
MOST_PIXELS, MOST_PIXELS_OF_MANY = 8_000, 2_000
PATCH = 28


@dataclass(frozen=True)
class Seen:
    """An image as a server decodes it; ``problem`` is ``base64``, ``type``, ``broken`` or empty."""

    media_type: str  # as it was stated
    data: str
    problem: str = ""
    found_type: str = ""
    width: int = 0
    height: int = 0

    @property
    def tokens(self) -> int:
        return ceil(self.width / PATCH) * ceil(self.height / PATCH)


def seen(media_type: str, data: str) -> Seen:
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return Seen(media_type, data, "base64")
    if media_type not in MEDIA_TYPES:
        return Seen(media_type, data, "type")
    try:
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            return Seen(media_type, data, "", str(image.get_format_mimetype()), *image.size)
    except (UnidentifiedImageError, OSError, SyntaxError):
        return Seen(media_type, data, "broken")


def of_url(url: Any) -> Seen | None:
    """That of a data URL; nothing where it is another address."""
    match = DATA_URL.fullmatch(url) if isinstance(url, str) else None
    return seen(match[1], match[2]) if match else None


def image_in(part: Mapping[str, Any]) -> Seen | None:
    """The image of a content part, in any dialect."""
    match part.get("type"):
        case "image":
            source = part.get("source") or {}
            return (
                seen(str(source.get("media_type")), str(source.get("data"))) if source.get("type") == "base64" else None
            )
        case "image_url":
            return of_url((part.get("image_url") or {}).get("url"))
        case "input_image":
            return of_url(part.get("image_url"))
    return None


def images_in(body: Any) -> list[Any]:
    """Those of a request, in their order."""
    if isinstance(body, list):
        return [image for part in body for image in images_in(part)]
    if not isinstance(body, dict):
        return []
    return [image] if (image := image_in(body)) else [image for part in body.values() for image in images_in(part)]


def parted(content: Any) -> tuple[Any, int]:
    """The content with a digest in place of each image, and the images' tokens."""
    if isinstance(content, dict):
        if image := image_in(content):
            return {"image": sha256(image.data.encode()).hexdigest()}, image.tokens
        parts = {name: parted(value) for name, value in content.items()}
        return {name: value for name, (value, _) in parts.items()}, sum(tokens for _, tokens in parts.values())
    if isinstance(content, list):
        pairs = [parted(value) for value in content]
        return [value for value, _ in pairs], sum(tokens for _, tokens in pairs)
    return content, 0


def parts_with_images(contents: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Paths and parts, of contents with their paths."""
    for path, content in contents:
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if part.get("type") in ("image_url", "input_image"):
                yield f"{path}[{at}]", part
