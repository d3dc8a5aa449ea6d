"""Images of a request: which of them are sent, and their bytes, which views do not hold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.models import Attachment
from dominds.budgets import REQUEST_IMAGE_BYTES, REQUEST_IMAGES
from dominds.llm.messages import ImagePart, Message, Request, with_parts
from dominds.llm.models.model import ImageBounds, ModelInfo
from dominds.llm.providers.parts import blindness
from remediation.strategies.image_masking import NO_LONGER_SHOWN, without_images

IMAGE = "image"


def images_of(attachments: Sequence[Mapping[str, Any]] | None) -> tuple[ImagePart, ...]:
    """Return the images that a turn names, without their bytes."""
    return tuple(
        ImagePart(
            file["media_type"],
            b"",
            file["name"],
            file["sha256"],
            file["bytes"],
            _pixels(file),
            file.get("detail", ""),
            file.get("at"),
        )
        for file in attachments or ()
        if "width" in file
    )


def _pixels(file: Mapping[str, Any]) -> tuple[int, int]:
    return file["width"], file["height"]


def unseen_images(model: ModelInfo) -> str:
    """Tell people why the model takes no images; empty where it does."""
    return blindness({IMAGE}, model)


def sendable(messages: tuple[Message, ...], model: ModelInfo) -> tuple[tuple[Message, ...], int]:
    """Replace images by lines of text: all of them if the model sees none, else the oldest that a request cannot take.

    Returns the messages, and how many of them were changed.
    """
    if not with_parts(messages):
        return messages, 0
    places = [at for at, message in enumerate(messages) if message.parts]
    is_blind = bool(unseen_images(model))
    bounds = bounds_of(model)
    left_out = len(places) if is_blind else oldest_beyond([_size(messages[at], bounds) for at in places], bounds)
    changed = set(places[:left_out])
    if not changed:
        return messages, 0
    reason = "is not shown, since this model sees no images" if is_blind else NO_LONGER_SHOWN
    shown = (without_images(message, reason) if at in changed else message for at, message in enumerate(messages))
    return tuple(shown), left_out


def unsent(messages: tuple[Message, ...], model: ModelInfo) -> str:
    """Tell people which images the model does not get; empty where it gets all."""
    left_out = sendable(messages, model)[1]
    if not left_out:
        return ""
    among = ngettext("of {number:,} message", "of {number:,} messages", left_out).format(number=left_out)
    if unseen_images(model):
        unseen = _("This model sees no images: a line stands for each of those {messages}.")
        return unseen.format(messages=among)
    return _(
        "The model no longer sees the oldest images, those {messages}: a request takes at most {bounds}. "
        "Attach one again to show it."
    ).format(messages=among, bounds=_bounds_in_words(bounds_of(model)))


def bounds_of(model: ModelInfo) -> ImageBounds:
    """Return the bounds of the model's server. Those of the settings hold if they are lower, or it states none."""
    stated = model.image_bounds
    most, most_bytes = REQUEST_IMAGES.within(stated.most), REQUEST_IMAGE_BYTES.within(stated.most_bytes)
    return replace(stated, most=most, most_bytes=most_bytes)


def _bounds_in_words(bounds: ImageBounds) -> str:
    fewer = bounds.most_with_large
    large = f" ({fewer:,} where one has a side over {bounds.large:,} pixels)" if fewer else ""
    return f"{bounds.most:,} images{large} and {bounds.most_bytes:,} bytes of them"


Size = tuple[int, int, int]
"""The number of images, their bytes, and how many of them are large."""


def _size(message: Message, bounds: ImageBounds) -> Size:
    images = [part for part in message.parts if isinstance(part, ImagePart)]
    large = sum(max(image.pixels or (0,)) > bounds.large for image in images) if bounds.large else 0
    return len(images), sum(image.size for image in images), large


def oldest_beyond(sizes: Sequence[Size], bounds: ImageBounds) -> int:
    """Return how many of the oldest messages with images do not fit. Half of the room is freed at once, so that the
    number stays the same for a while as images are added.
    """
    first, images, size, large = 0, 0, 0, 0
    for number, (more, longer, larger) in enumerate(sizes):
        images, size, large = images + more, size + longer, large + larger
        if _exceeds(images, size, large, bounds):
            while first < number and _exceeds(images, size, large, bounds, share=2):
                images, size, large = images - sizes[first][0], size - sizes[first][1], large - sizes[first][2]
                first += 1
    return first


def _exceeds(images: int, size: int, large: int, bounds: ImageBounds, share: int = 1) -> bool:
    most = min(bounds.most, bounds.most_with_large) if large else bounds.most
    return images > most // share or size > bounds.most_bytes // share


def with_image_bytes(request: Request, dialog_id: UUID) -> Request:
    """Return the request with the bytes of its images."""
    keys = {part.key for message in request.with_parts for part in message.parts if isinstance(part, ImagePart)}
    if not keys:
        return request
    contents = dict(Attachment.objects.filter(dialog_id=dialog_id, sha256__in=keys).values_list("sha256", "content"))
    messages = (_fill(message, contents) if message.parts else message for message in request.messages)
    return replace(request, messages=tuple(messages))


def _fill(message: Message, contents: Mapping[str, Any]) -> Message:
    if any(isinstance(part, ImagePart) and part.key not in contents for part in message.parts):
        return without_images(message, "could not be read")
    parts = (replace(part, content=bytes(contents[part.key])) for part in message.parts if isinstance(part, ImagePart))
    return replace(message, parts=tuple(parts))
