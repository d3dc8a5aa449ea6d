"""Images of a request: which of them are sent, and their bytes, which views do without."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from dialogs.models import Attachment
from dominds.budgets import REQUEST_IMAGE_BYTES, REQUEST_IMAGES
from dominds.llm.messages import ImagePart, Message, Request
from dominds.llm.models.model import ModelInfo
from dominds.llm.providers.parts import blindness
from remediation.strategies.image_masking import NO_LONGER_SHOWN, without_images

IMAGE = "image"


def images_of(attachments: Sequence[Mapping[str, Any]] | None) -> tuple[ImagePart, ...]:
    """Those that a turn names, without their bytes."""
    return tuple(
        ImagePart(file["media_type"], b"", file["name"], file["sha256"], file["bytes"], (file["width"], file["height"]))
        for file in attachments or ()
        if "width" in file
    )


def unseen_images(model: ModelInfo) -> str:
    """Why the model takes no images, for people; empty where it does."""
    return blindness({IMAGE}, model)


def sendable(messages: tuple[Message, ...], model: ModelInfo) -> tuple[tuple[Message, ...], int]:
    """The messages with a line in place of each image that the model cannot see, and of the oldest where a request does
    not take them all; and how many messages were changed."""
    places = [at for at, message in enumerate(messages) if message.parts]
    if not places:
        return messages, 0
    is_blind = bool(unseen_images(model))
    left_out = len(places) if is_blind else oldest_beyond([_size(messages[at]) for at in places])
    changed = set(places[:left_out])
    if not changed:
        return messages, 0
    reason = "is not shown, since this model sees no images" if is_blind else NO_LONGER_SHOWN
    shown = (without_images(message, reason) if at in changed else message for at, message in enumerate(messages))
    return tuple(shown), left_out


def unsent(messages: tuple[Message, ...], model: ModelInfo) -> str:
    """Which images the model does not get, for people; empty where it gets all."""
    left_out = sendable(messages, model)[1]
    if not left_out:
        return ""
    said_with = f"of {left_out:,} message{'s' * (left_out != 1)}"
    if unseen_images(model):
        return f"This model sees no images: a line stands for each of those {said_with}."
    return (
        f"The model no longer sees the oldest images, those {said_with}: a request takes at most {REQUEST_IMAGES.most:,} "
        f"images and {REQUEST_IMAGE_BYTES.most:,} bytes of them. Attach one again to show it."
    )


def _size(message: Message) -> tuple[int, int]:
    images = [part for part in message.parts if isinstance(part, ImagePart)]
    return len(images), sum(image.size for image in images)


def oldest_beyond(
    sizes: Sequence[tuple[int, int]], most: tuple[int, int] = (REQUEST_IMAGES.most, REQUEST_IMAGE_BYTES.most)
) -> int:
    """How many of the oldest do not fit; each size is images and bytes. Half of the room is free then, so that the same
    ones are left out for a while as more are added."""
    first, images, size = 0, 0, 0
    for number, (more, longer) in enumerate(sizes):
        images, size = images + more, size + longer
        if images > most[0] or size > most[1]:
            while first < number and (images > most[0] // 2 or size > most[1] // 2):
                images, size, first = images - sizes[first][0], size - sizes[first][1], first + 1
    return first


def loaded(request: Request, dialog_id: UUID) -> Request:
    """The request with the bytes of its images."""
    keys = {part.key for message in request.messages for part in message.parts if isinstance(part, ImagePart)}
    if not keys:
        return request
    found = dict(Attachment.objects.filter(dialog_id=dialog_id, sha256__in=keys).values_list("sha256", "content"))
    messages = (_filled(message, found) if message.parts else message for message in request.messages)
    return replace(request, messages=tuple(messages))


def _filled(message: Message, found: Mapping[str, Any]) -> Message:
    if any(isinstance(part, ImagePart) and part.key not in found for part in message.parts):
        return without_images(message, "could not be read")
    parts = (replace(part, content=bytes(found[part.key])) for part in message.parts if isinstance(part, ImagePart))
    return replace(message, parts=tuple(parts))
