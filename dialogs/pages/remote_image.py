"""Fetching of an image that an answer names by its address, once a person asks for it."""

from http.client import HTTPException

import redis
import structlog
from django.conf import settings
from django.utils.html import escape

from dialogs.actions.attachments import Attached, check_files
from dialogs.errors import Invalid, NotFound, RateLimited
from dialogs.models import Dialog, Turn
from dialogs.pages.markdown import render
from dialogs.store.wakeups import client
from dominds import outbound_http
from dominds.budgets import ATTACHMENT_BYTES, REMOTE_IMAGE_BYTES, REMOTE_IMAGES, Budget

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
WINDOW_SECONDS = 60  # the window of the rate limit, from a person's first image on


def remote_image(dialog: Dialog, seq: int, address: str, user_id: int) -> Attached:
    """Fetch the image at ``address``, which turn ``seq`` of this dialog names. Raises ``NotFound``, ``Invalid``, and
    ``RateLimited`` for a person who has fetched many.

    The server fetches it, so that the image's host learns neither the reader's address nor their cookies.
    """
    if not settings.REMOTE_IMAGES:
        raise NotFound("This server fetches no images: DOMINDS_REMOTE_IMAGES is off.")
    turn = dialog.turns.filter(seq=seq, role=Turn.Role.ASSISTANT).first()
    if turn is None or f'class="image" href="{escape(address)}"' not in render(turn.text):
        raise NotFound("This answer names no such image.")
    status, content = _fetch(address, user_id)
    if status != 200:
        raise Invalid(f"The image was not fetched: its server answered {status}.")
    (image,) = check_files([(address.rpartition("/")[2], content)])
    if image.pixels is None:
        raise Invalid("The image was not fetched: its server sent something else.")
    return image


def _fetch(address: str, user_id: int) -> tuple[int, bytes]:
    """Return the status and the body.

    The size of the largest image is charged first, and the difference is given back afterwards, so that simultaneous
    fetches together stay within the bound.
    """
    images, received = (f"dominds:images:{kind}:{user_id}" for kind in ("number", "bytes"))
    reserved = min(ATTACHMENT_BYTES.most, REMOTE_IMAGE_BYTES.most)
    _charge(images, 1, REMOTE_IMAGES)
    _charge(received, reserved, REMOTE_IMAGE_BYTES)
    content = b""
    try:
        status, content = outbound_http.get(
            address,
            {"Accept": "image/png, image/jpeg, image/webp, image/gif", "User-Agent": "Dominds"},
            timeout_seconds=TIMEOUT_SECONDS,
            most_bytes=reserved + 1,
            allow_private=settings.PRIVATE_IMAGES,
            allow_loopback=settings.PRIVATE_IMAGES,
        )
    except (outbound_http.Refused, OSError, HTTPException) as error:
        raise Invalid(f"The image was not fetched: {error}.") from error
    finally:
        _give_back(received, reserved - len(content))
    return status, content


def _charge(key: str, amount: int, bound: Budget) -> None:
    """Count an amount against the person's bound. Raises ``RateLimited`` if that is exceeded, or if Redis is down."""
    try:
        with client().pipeline() as pipe:
            pipe.set(key, 0, ex=WINDOW_SECONDS, nx=True)
            pipe.incrby(key, amount)
            pipe.ttl(key)
            _, charged, seconds = pipe.execute()
    except redis.RedisError as error:
        log.warning("remote_images_not_counted", error=str(error))
        raise RateLimited("Images cannot be counted now. Try again in a minute.", WINDOW_SECONDS) from error
    if charged > bound.most:
        _give_back(key, amount)
        raise RateLimited(
            f"{bound.sentence('Fetched for you would be')} Try again in {max(1, seconds)} s.", max(1, seconds)
        )


def _give_back(key: str, amount: int) -> None:
    try:
        if client().decrby(key, amount) < 0:  # the window has ended meanwhile
            client().delete(key)
    except redis.RedisError as error:
        log.warning("remote_images_not_counted", error=str(error))
