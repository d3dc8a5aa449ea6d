"""Authentication and authorization of sockets: at their opening, at each read, and once a minute."""

from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.crypto import constant_time_compare

from dialogs import permissions
from dialogs.models import Dialog
from dominds.db.prepared import Select


def person_of(session_key: str) -> User | None:
    """Return the active person of a session that is valid and began after their last change of password."""
    stored = _session.first(session_key) if session_key else None
    session = SessionStore().decode(stored) if stored else {}
    number = str(session.get(SESSION_KEY, ""))
    if not number.isdecimal() or session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    person = active_person(int(number))
    if person is None:
        return None
    session_hash = session.get(HASH_SESSION_KEY, "")
    valid = (person.get_session_auth_hash(), *person.get_session_auth_fallback_hash())  # under SECRET_KEY_FALLBACKS
    return person if any(constant_time_compare(session_hash, valid_hash) for valid_hash in valid) else None


def active_person(user_id: int) -> User | None:
    return _people.first(user_id)


def may_see(person: User, dialog_id: UUID) -> bool:
    dialog = _dialog.first(dialog_id)
    return dialog is not None and permissions.may_see(person, dialog)


@Select
def _session(key: str) -> QuerySet[Session, str]:
    return Session.objects.filter(session_key=key, expire_date__gt=Now()).values_list("session_data", flat=True)


@Select
def _people(user_id: int) -> QuerySet[User]:
    return User.objects.filter(pk=user_id, is_active=True)


@Select
def _dialog(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.filter(pk=dialog_id).only("owner", "group")
