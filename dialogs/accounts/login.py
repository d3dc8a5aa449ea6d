"""People: the first administrator, logging in and out, and telling open pages when a session has ended."""

import time
from typing import Any

import orjson
import redis
import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from dialogs.live.hub import session_mark
from dialogs.models import PersonSettings, SiteSettings
from dialogs.store.wakeups import client, user_channel

log = structlog.get_logger(__name__)

FAILURES_ALLOWED = 10  # of one address, within the window
WINDOW_SECONDS = 60


def needs_setup() -> bool:
    """Whether nobody administers this server yet."""
    return not User.objects.filter(is_superuser=True).exists()


def create_first_administrator(user: User) -> bool:
    """Save the prepared account as administrator, once; ``False`` when somebody was faster."""
    with transaction.atomic():
        SiteSettings.objects.get_or_create(singleton=True)
        SiteSettings.objects.select_for_update().get(singleton=True)  # one setup at a time
        if not needs_setup():
            return False
        user.is_staff = user.is_superuser = True
        user.save()
    return True


def settings_of(user: User) -> PersonSettings:
    """How this person wants the pages; the defaults while nothing was chosen."""
    return PersonSettings.objects.filter(user=user).first() or PersonSettings(user=user)


# -- Throttle -----------------------------------------------------------------------------------------------------------


def wait_before_login(request: HttpRequest) -> int:
    """How many seconds this address must wait, 0 for none. Without Redis nobody is kept out."""
    try:
        failures = int(client().get(_failures_key(request)) or 0)
    except redis.RedisError as error:
        log.warning("login_throttle_off", error=str(error))
        return 0
    return WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS if failures >= FAILURES_ALLOWED else 0


def count_failed_login(request: HttpRequest) -> None:
    try:
        with client().pipeline() as pipe:
            pipe.incr(_failures_key(request))
            pipe.expire(_failures_key(request), WINDOW_SECONDS * 2)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("login_throttle_off", error=str(error))


def _failures_key(request: HttpRequest) -> str:
    return f"dominds:login:{_address(request)}:{int(time.time()) // WINDOW_SECONDS}"


def _address(request: HttpRequest) -> str:
    """The client's address; a proxy's header counts only where the operator says that there is a proxy."""
    behind_proxy: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if behind_proxy:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


# -- Open pages ---------------------------------------------------------------------------------------------------------


@receiver(user_logged_out)
def close_sockets_of_session(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    """Sockets that the ending session opened close at once, wherever the person logs out."""
    if user is not None and request.session.session_key:
        _tell(user.pk, {"logout": session_mark(request.session.session_key)})


@receiver(user_logged_in)
def recheck_sockets_of_person(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """A new login may have replaced the session that older sockets came with."""
    request_recheck(user)


def request_recheck(user: User) -> None:
    """Sockets of this person ask whether their session still stands, now instead of within a minute."""
    _tell(user.pk, {"recheck": True})


def _tell(user_id: int, frame: dict[str, Any]) -> None:
    try:
        client().publish(user_channel(user_id), orjson.dumps(frame))
    except redis.RedisError as error:
        log.warning("logout_not_told", user_id=user_id, error=str(error))
