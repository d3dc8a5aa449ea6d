"""Files attached to a message: the type of each, told by its content alone, and how it is stored."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from dialogs.errors import Invalid
from dialogs.models import Attachment, Dialog, Turn
from dominds import documents
from dominds.budgets import ATTACHMENT_BYTES, ATTACHMENTS, IMAGE_PIXELS, OverBudget
from dominds.llm.providers.parts import pixels_of

MEDIA_TYPES = {b"\x89PNG": "image/png", b"GIF8": "image/gif", b"\xff\xd8": "image/jpeg", b"RIFF": "image/webp"}
# The end of a whole file. Providers would refuse one that was cut off, in each request from then on.
ENDS = {"image/png": b"IEND\xaeB`\x82", "image/gif": b";", "image/jpeg": b"\xff\xd9", "image/webp": b""}
PLAIN_TEXT = "text/plain"
NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # control characters, which text files do not have
LONGEST_NAME = 120
UNNAMED = "file"


@dataclass(frozen=True)
class Attached:
    """A checked file.

    An image has ``pixels``; any other file is text. Only the text of a document is stored, with its page numbers.
    ``detail`` and ``at`` are those of ``ImagePart``.
    """

    name: str
    media_type: str
    content: bytes = field(repr=False)
    pixels: tuple[int, int] | None = None
    detail: str = ""
    at: int | None = None

    @cached_property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()

    @property
    def block(self) -> str:
        """Return a text file in the form in which it follows what a person wrote, or an empty text for an image."""
        if self.pixels:
            return ""
        return f'\n\n<file name="{self.name}">\n{self.content.decode("utf-8-sig")}\n</file>'


def check_files(files: Iterable[tuple[str, bytes]]) -> tuple[Attached, ...]:
    """Check files, given by names and contents. Raises ``Invalid``."""
    try:
        attached = tuple(_check(_plain(name), content) for name, content in files)
        ATTACHMENTS.check(len(attached), "The message has")
    except OverBudget as error:
        raise Invalid(str(error)) from None
    return attached


def from_base64(name: str, data: str) -> tuple[str, bytes]:
    """Read a file as programs send it. Raises ``Invalid``."""
    if len(data) > ATTACHMENT_BYTES.most * 4 // 3 + 4:
        raise Invalid(ATTACHMENT_BYTES.sentence(f"“{_plain(name)}” has"))
    try:
        return name, base64.b64decode(data, validate=True)
    except ValueError:
        raise Invalid(f"“{_plain(name)}” is not base64.") from None


def _plain(name: str) -> str:
    """Return the name without its folder, and without characters that end lines or quotes, or change text direction."""
    bare = re.sub(
        r'[\x00-\x1f\x7f"<>\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]',
        " ",
        name.replace("\\", "/").rpartition("/")[2],
    )
    return " ".join(bare.split())[-LONGEST_NAME:] or UNNAMED


def _check(name: str, content: bytes) -> Attached:
    ATTACHMENT_BYTES.check(len(content), f"“{name}” has")
    if not content:
        raise Invalid(f"“{name}” is empty. Leave it out.")
    if (pixels := pixels_of(content)) is not None:
        IMAGE_PIXELS.check(max(pixels), f"“{name}” has")
        media_type = next(kind for opening, kind in MEDIA_TYPES.items() if content.startswith(opening))
        if not _is_whole(content, media_type):
            raise Invalid(f"“{name}” is damaged: the image breaks off. Save it anew.")
        return Attached(name, media_type, content, pixels)
    if kind := documents.kind_of(content):
        try:
            return Attached(name, PLAIN_TEXT, documents.text_of(content, kind).encode())
        except documents.UnreadableDocument as error:
            raise Invalid(f"“{name}” {error}.") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\x00"
    if NO_TEXT.search(text):
        raise Invalid(
            f"“{name}” is neither a PNG, JPEG, WebP or GIF image nor a PDF, Word, Excel or PowerPoint document nor "
            "text in UTF-8. Nothing else can be attached."
        )
    return Attached(name, PLAIN_TEXT, content)


def _is_whole(content: bytes, media_type: str) -> bool:
    if media_type == "image/webp":
        return len(content) >= int.from_bytes(content[4:8], "little") + 8
    return ENDS[media_type] in content[-1024:]  # cameras write some bytes behind the end


def text_with(text: str, attached: Sequence[Attached]) -> str:
    """Return the text to store for the turn, with the text files after it."""
    return text + "".join(file.block for file in attached)


def text_typed(text: str, attachments: Sequence[Mapping[str, Any]] | None) -> str:
    """Return the words of the person within a stored text, as the inverse of ``text_with``."""
    return text[: len(text) - sum(file.get("chars", 0) for file in attachments or ())]


def text_files(text: str, attachments: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, str]]:
    """Return names and texts of the text files within a stored text."""
    result, place = [], len(text_typed(text, attachments))
    for file in attachments or ():
        if chars := file.get("chars", 0):
            result.append((file["name"], text[place : place + chars].partition(">\n")[2].removesuffix("\n</file>")))
            place += chars
    return result


def digests(attachments: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    return tuple(file["sha256"] for file in attachments or ())


def file_digests(turns: Iterable[Turn]) -> set[str]:
    """Return the digests of these turns' files."""
    return {digest for turn in turns for digest in digests(turn.attachments)}


def store_images(dialog: Dialog, attached: Sequence[Attached]) -> list[dict[str, Any]] | None:
    """Store each image once in the dialog, in the caller's transaction, and return the description of all files."""
    images = {file.sha256: file for file in attached if file.pixels}
    if images:
        known = set(dialog.attachments.filter(sha256__in=images).values_list("sha256", flat=True))
        Attachment.objects.bulk_create(
            Attachment(dialog=dialog, name=file.name, media_type=file.media_type, sha256=digest, content=file.content)
            for digest, file in images.items()
            if digest not in known
        )
    return [_as_json(file) for file in attached] or None


def _as_json(file: Attached) -> dict[str, Any]:
    known = {"name": file.name, "media_type": file.media_type, "sha256": file.sha256, "bytes": len(file.content)}
    if file.pixels is None:
        return {**known, "chars": len(file.block)}
    detail = {"detail": file.detail} if file.detail else {}
    place = {} if file.at is None else {"at": file.at}
    return {**known, "width": file.pixels[0], "height": file.pixels[1], **detail, **place}
