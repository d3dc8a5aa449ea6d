"""Login: the first administrator, logging in and out, and telling open pages when a session has ended."""

import hashlib
import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import Any

import orjson
import redis
import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db import connection, transaction
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from dialogs.accounts.names import skeleton
from dialogs.live.hub import session_mark
from dialogs.models import Identity, PersonSettings, SiteSettings
from dialogs.store.wakeups import client, user_channel
from dominds.db.prepared import Select
from dominds.web.middleware import address_of

log = structlog.get_logger(__name__)

ATTEMPTS_OF_ADDRESS = 10  # failed attempts from one address within the window
ATTEMPTS_OF_ACCOUNT = 20  # failed attempts at one account, from all addresses together
ATTEMPTS_AT_PROVIDER = 30  # failed sign-ins from one address, which a whole office may share
MOST_NAME_CHARS = 150  # the length of Django's column
WINDOW_SECONDS = 60  # counted from the first attempt
HASHES_AT_ONCE = 2  # a hash takes a third of a second of a processor, which pages need as well
WAIT_SECONDS = 15  # fifty people who come at once need ten
TOO_MANY, BUSY = 429, 503  # HTTP statuses
_hashing = threading.BoundedSemaphore(HASHES_AT_ONCE)


def needs_setup() -> bool:
    """Check whether nobody administers this server yet."""
    return not User.objects.filter(is_superuser=True).exists()


LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
PROXY_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip")


def is_at_this_machine(request: HttpRequest) -> bool:
    """Check whether the browser runs on the server's machine, and no proxy brought its request."""
    behind_proxy: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if behind_proxy or any(header in request.headers for header in PROXY_HEADERS):
        return False
    name = re.sub(r":\d+$", "", request.get_host())
    return name in LOCAL_NAMES and request.META.get("REMOTE_ADDR") in ("127.0.0.1", "::1")


def lacks_a_way_in(user: User) -> bool:
    """Check whether this administrator, set up without a password, has nothing but this browser's session."""
    return user.is_superuser and not user.has_usable_password() and not Identity.objects.filter(user=user).exists()


def free_username(name: str) -> str:
    """Return the name, with a number appended if somebody has it or a name that looks like it."""
    taken = {skeleton(username) for username in User.objects.values_list("username", flat=True).iterator()}
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if skeleton(name) not in taken)


def create_first_administrator(user: User) -> bool:
    """Save the prepared account as administrator, once, and return ``False`` if somebody else was faster."""
    with transaction.atomic():
        SiteSettings.objects.get_or_create(singleton=True)
        SiteSettings.objects.select_for_update().get(singleton=True)  # locks, so that only one setup runs at a time
        if not needs_setup():
            return False
        user.is_staff = user.is_superuser = True
        user.save()
    return True


def settings_of(user: User) -> PersonSettings:
    """Return this person's settings of the pages, or the defaults if they have chosen none."""
    return _settings.first(user.pk) or PersonSettings(user=user)


@Select
def _settings(user_id: int) -> QuerySet[PersonSettings]:
    return PersonSettings.objects.filter(user=user_id)


# -- Throttle ----------------------------------------------------------------------------------------------------------


class LoginRefused(Exception):
    """Raised before a password is checked. ``status`` is 429 after many attempts, 503 while many checks are running."""

    def __init__(self, status: int, seconds: int) -> None:
        tried = "Too many attempts." if status == TOO_MANY else "The server is checking other passwords."
        super().__init__(f"{tried} Try again in {seconds} seconds.")
        self.status, self.seconds = status, seconds


@contextmanager
def password_check() -> Iterator[None]:
    """Hold one of the few places for hashing a password. Raises ``LoginRefused`` if none becomes free in time."""
    if not _hashing.acquire(blocking=False):
        if not connection.in_atomic_block:
            connection.close()  # other requests need it meanwhile
        if not _hashing.acquire(timeout=WAIT_SECONDS):
            raise LoginRefused(BUSY, WAIT_SECONDS)
    try:
        yield
    finally:
        _hashing.release()


def try_to_log_in(request: HttpRequest, check: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the response of ``check``, which checks a posted password. Raises ``LoginRefused`` in place of calling it,
    after too many attempts or while too many checks are running.

    An attempt counts before its password is hashed, and is forgotten if the password was right, so many attempts at
    once cannot pass the limits. Without Redis only the number of hashes at once is limited.
    """
    # Somebody who is logged in is changing their password.
    name = request.user.get_username() or request.POST.get("username", "")
    account = _account_of(name)
    limits = {
        f"dominds:login:address:{address_of(request)}": ATTEMPTS_OF_ADDRESS,
        f"dominds:login:account:{account}": ATTEMPTS_OF_ACCOUNT,
    }
    _refuse_over(limits, _counts("get", limits))
    with password_check():
        return _check_within(limits, check)


def _account_of(name: str) -> str:
    """Return the key under which attempts are counted: the person whom the login form finds, which strips and
    normalises the name, or else a hash that is the same for all names that look like this one.
    """
    name = unicodedata.normalize("NFKC", name.strip())[:MOST_NAME_CHARS]
    person = User.objects.filter(username=name).values_list("pk", flat=True).first() if name.isprintable() else None
    if person is not None:
        return str(person)
    return hashlib.sha256(skeleton(name).strip().encode(errors="replace")).hexdigest()[:24]


def try_to_sign_in(request: HttpRequest, check: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the response of ``check``, a step of a sign-in at a provider. Its attempts are counted apart, so that
    passwords still work while the provider is down. Raises ``LoginRefused``.
    """
    return _check_within({f"dominds:sign-in:address:{address_of(request)}": ATTEMPTS_AT_PROVIDER}, check)


def _check_within(limits: Mapping[str, int], check: Callable[[], HttpResponse]) -> HttpResponse:
    _refuse_over(limits, _counts("incr", limits), own=1)
    answer = check()
    if answer.status_code in (301, 302):
        _counts("decr", limits)
    return answer


def _refuse_over(limits: Mapping[str, int], counts: Sequence[tuple[int, int]], own: int = 0) -> None:
    """Raise ``LoginRefused`` if a count exceeds its limit. ``own`` of the counted attempts belong to this request."""
    pairs = zip(counts, limits.values(), strict=False)
    if waits := [seconds for (count, seconds), most in pairs if count - own >= most]:
        raise LoginRefused(TOO_MANY, max(waits))


def _counts(command: str, keys: Collection[str]) -> list[tuple[int, int]]:
    """Return the counts after ``command``, each with the seconds until it starts again, or none without Redis."""
    try:
        with client().pipeline() as pipe:
            for key in keys:
                pipe.set(key, 0, ex=WINDOW_SECONDS, nx=True)
                getattr(pipe, command)(key)
                pipe.ttl(key)
            result = pipe.execute()
        return [(int(count or 0), max(1, left)) for count, left in zip(result[1::3], result[2::3], strict=True)]
    except redis.RedisError as error:
        log.warning("login_throttle_off", error=str(error))
        return []


# -- Open pages --------------------------------------------------------------------------------------------------------


@receiver(user_logged_out)
def close_sockets_of_session(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    """Close the sockets that the ending session opened, wherever the person logs out."""
    if user is not None and request.session.session_key:
        _tell(user.pk, {"logout": session_mark(request.session.session_key)})


@receiver(user_logged_in)
def recheck_sockets_of_person(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Check a person's sockets again after a login, which may have replaced the session of older ones."""
    request_recheck(user)


def request_recheck(user: User) -> None:
    """Have this person's sockets check their session now instead of within a minute."""
    _tell(user.pk, {"recheck": True})


def _tell(user_id: int, frame: dict[str, Any]) -> None:
    try:
        client().publish(user_channel(user_id), orjson.dumps(frame))
    except redis.RedisError as error:
        log.warning("logout_not_announced", user_id=user_id, error=str(error))
