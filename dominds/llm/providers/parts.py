"""Images and files in messages: their encoding, their sizes in tokens, and the refusal by models that take none."""

import base64
import re
import struct
from collections.abc import Iterator, Set
from itertools import takewhile
from math import ceil, sqrt

from dominds.llm.messages import FilePart, ImagePart, Message, Part, Request, Role
from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import RequestRefused

PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")  # a page of a PDF
CHARS_PER_TOKEN = 4
FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers of a JPEG that state its size
WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xDA)})  # markers of a JPEG without a segment


def in_order(message: Message) -> Iterator[str | Part]:
    """Yield the pieces of a message's text and its parts, in order. The line break between two pieces is left out."""
    said, text = 0, message.text
    for part in (*message.parts, None):
        at = part.at if isinstance(part, ImagePart) and part.at is not None else len(text)
        piece = text[said:at].removeprefix("\n" if said else "")
        if piece.strip():
            yield piece
        if part is not None:
            yield part
        said = max(said, at)


def base64_of(given: Part) -> str:
    return base64.b64encode(given.content).decode()


def data_url(given: Part) -> str:
    return f"data:{given.media_type};base64,{base64_of(given)}"


def ends_with_files(request: Request) -> bool:
    """Check for images or files after the last answer: if they are too large, no shorter conversation helps."""
    newest = takewhile(lambda message: message.role is not Role.ASSISTANT, reversed(request.messages))
    return any(message.parts for message in newest)


def unseen_reason(request: Request, model: ModelInfo) -> str:
    """Explain to people why the model cannot take a request's images or files; empty if it can."""
    return blindness({modality_of(given) for message in request.with_parts for given in message.parts}, model)


def blindness(wanted: Set[str], model: ModelInfo) -> str:
    """Explain to people why the model cannot take these modalities (``image``, ``file``); empty if it can."""
    blind = sorted(wanted - set(model.modalities))
    if not blind:
        return ""
    return (
        f"{model.provider_id}/{model.model_id} takes no {' and no '.join(blind)}. "
        "Choose a model that does, or leave it out; where the model does, add it to its modalities in the server's "
        "configuration."
    )


def refuse_unseen(request: Request, model: ModelInfo) -> None:
    """Raise ``RequestRefused`` if the model cannot take the request's images or files."""
    if reason := unseen_reason(request, model):
        raise RequestRefused(reason)


def modality_of(given: Part) -> str:
    return "image" if isinstance(given, ImagePart) else "file"


def part_tokens(given: Part, model: ModelInfo) -> int:
    """Return the tokens of an image or file by the provider's rule, or the most possible if its size is unknown."""
    sizes = model.kind.part_sizes
    if isinstance(given, FilePart):
        if given.media_type.startswith("text/"):
            return ceil(len(given.content) / CHARS_PER_TOKEN)
        return sizes.page * max(1, len(PAGE.findall(given.content)))
    if model.image_tokens is not None:
        return model.image_tokens
    size = given.pixels or pixels_of(given.content)
    if size is None:
        return sizes.most_patches
    return min(sizes.most_patches, _patches(*size, sizes.patch, sizes.most_patches))


def _patches(width: int, height: int, patch: int, most: int) -> int:
    """Return the number of squares with sides of ``patch`` pixels. A larger picture is first scaled down."""
    squares = ceil(width / patch) * ceil(height / patch)
    if squares <= most:
        return squares
    scale = sqrt(most * patch * patch / (width * height))
    return ceil(width * scale / patch) * ceil(height * scale / patch)


def pixels_of(content: bytes) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG, GIF, WebP or JPEG, or None for any other or damaged file."""
    try:
        size = _pixels(content)
    except (struct.error, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _pixels(content: bytes) -> tuple[int, int] | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack_from(">II", content, 16)
    elif content.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack_from("<HH", content, 6)
    elif content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return _webp_pixels(content)
    elif content.startswith(b"\xff\xd8"):
        return next(_jpeg_frames(content), None)
    else:
        return None
    return width, height


def _webp_pixels(content: bytes) -> tuple[int, int] | None:
    match content[12:16]:
        case b"VP8X":
            width, high_byte, height, higher_byte = struct.unpack_from("<HBHB", content, 24)
            return (width | high_byte << 16) + 1, (height | higher_byte << 16) + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", content, 21)
            return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", content, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_frames(content: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            yield width, height
            return
        if marker == 0xFF:  # padding
            at += 1
        elif marker in WITHOUT_LENGTH:
            at += 2
        else:
            (length,) = struct.unpack_from(">H", content, at + 2)
            at += 2 + length
