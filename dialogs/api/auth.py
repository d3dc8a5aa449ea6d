"""Authentication of callers: by API key, or by login session, which needs the CSRF token for unsafe calls."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from dialogs.accounts import api_keys
from dialogs.errors import Refusal
from dialogs.models import ApiKey
from dialogs.store.charging import charge


class PersonRequest(HttpRequest):
    """A request that passed ``AUTH``."""

    auth: User


class Unauthorized(Refusal):
    status, code = 401, "unauthorized"


class CsrfRefused(Refusal):
    status, code = 403, "csrf_failed"


class ScopeRefused(Refusal):
    status, code = 403, "key_scope"

    def __init__(self, key: ApiKey) -> None:
        super().__init__(f"The key {key} is for {key.get_scope_display()} alone. Make another for this.")


def _allows(key: ApiKey, method: str) -> bool:
    return key.scope == ApiKey.Scope.ALL or (key.scope == ApiKey.Scope.READ and method in ("GET", "HEAD"))


class KeyAuth(HttpBearer):
    """Authentication by ``Authorization: Bearer KEY``. A key that is not valid is refused, even beside a session."""

    def __call__(self, request: HttpRequest) -> User | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        token = bearer_of(header)
        user = self.authenticate(request, token)
        if user is None:
            raise Unauthorized(api_keys.refusal_of(token))
        return user

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        key = api_keys.key_of(token) if token else None
        if key is not None and not _allows(key, str(request.method)):
            raise ScopeRefused(key)
        if key is None:
            return None
        charge(key)
        return key.owner


class SessionAuth(APIKeyCookie):
    """Authentication by the session of the pages."""

    param_name = settings.SESSION_COOKIE_NAME

    def __call__(self, request: HttpRequest) -> User | None:
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = request.user
        if not isinstance(user, User) or not user.is_authenticated:
            raise Unauthorized("Send `Authorization: Bearer KEY`, or log in.")
        if check_csrf(request):
            raise CsrfRefused("A call with a login session needs the X-CSRFToken header. Or use an API key.")
        return user


AUTH = (KeyAuth(), SessionAuth())


def bearer_of(header: str) -> str:
    """Return the key in an Authorization header, or an empty text."""
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def recheck_of(request: PersonRequest) -> Callable[[], bool]:
    """Return a check for long streams, which asks the database whether their key or session is still valid."""
    user_id, key, session_key = request.auth.pk, bearer_of(request.headers.get("Authorization", "")), ""
    if not key:
        session_key = str(request.session.session_key)

    def holds() -> bool:
        session: Any = SimpleNamespace(session=SessionStore(session_key))  # get_user reads no more of a request
        owner = api_keys.owner_of(key) if key else get_user(session)
        return owner is not None and owner.pk == user_id and owner.is_active

    return holds
