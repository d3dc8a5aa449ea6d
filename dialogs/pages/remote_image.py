"""An image that an answer names by its address, fetched once somebody asked for it: never by itself."""

from http.client import HTTPException

from django.conf import settings
from django.utils.html import escape

from dialogs.actions.attachments import Attached, checked
from dialogs.errors import Invalid, NotFound
from dialogs.models import Dialog, Turn
from dialogs.pages.markdown import render
from dominds import outbound_http
from dominds.budgets import ATTACHMENT_BYTES

TIMEOUT_SECONDS = 10


def remote_image(dialog: Dialog, seq: int, address: str) -> Attached:
    """The image at ``address``, which turn ``seq`` of this dialog names, by the server: the image's host learns neither the
    reader's address nor their cookies. Raises ``NotFound`` and ``Invalid``."""
    turn = dialog.turns.filter(seq=seq, role=Turn.Role.ASSISTANT).first()
    if turn is None or f'class="image" href="{escape(address)}"' not in render(turn.text):
        raise NotFound("This answer names no such image.")
    try:
        status, content = outbound_http.get(
            address,
            {"Accept": "image/png, image/jpeg, image/webp, image/gif", "User-Agent": "Dominds"},
            timeout_seconds=TIMEOUT_SECONDS,
            most_bytes=ATTACHMENT_BYTES.most + 1,
            allow_private=settings.PRIVATE_IMAGES,
            allow_loopback=settings.PRIVATE_IMAGES,
        )
    except (outbound_http.Refused, OSError, HTTPException) as error:
        raise Invalid(f"The image was not fetched: {error}.") from error
    if status != 200:
        raise Invalid(f"The image was not fetched: its server answered {status}.")
    (image,) = checked([(address.rpartition("/")[2], content)])
    if image.pixels is None:
        raise Invalid("What its server sent is no image.")
    return image
