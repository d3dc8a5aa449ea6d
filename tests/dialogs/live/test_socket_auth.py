"""Who is behind a session, as the sockets ask."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from dialogs.live.socket_auth import may_see, person_of
from tests.dialogs.factories import UserFactory, make_dialog, make_operator
from tests.harness.browser import session_key

pytestmark = pytest.mark.django_db


def test_a_session_is_the_persons_until_they_are_locked_out() -> None:
    person = UserFactory.create()
    key = session_key(person)
    assert person_of(key) == person
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert person_of(key) is None


@pytest.mark.parametrize("key", ["", "0" * 32, "a'b", "x" * 500])
def test_what_is_no_session_is_nobodys(key: str) -> None:
    assert person_of(key) is None


def test_a_session_of_nobody_and_an_expired_one_are_nobodys() -> None:
    anonymous, expired = SessionStore(), SessionStore(session_key(UserFactory.create()))
    anonymous["theme"] = "dark"
    anonymous.save()
    expired.set_expiry(-1)
    expired.save()
    assert person_of(anonymous.session_key or "") is None
    assert person_of(expired.session_key or "") is None


def test_a_session_from_before_the_secret_key_was_changed_still_stands(settings: Any) -> None:
    person = UserFactory.create()
    key = session_key(person)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, as long as it should be, for all that is signed from now on"
    assert person_of(key) == person
    settings.SECRET_KEY_FALLBACKS = []
    assert person_of(key) is None


def test_a_dialog_is_seen_by_its_owner_and_by_staff() -> None:
    dialog = make_dialog()
    assert may_see(dialog.owner, dialog.pk)
    assert may_see(make_operator(), dialog.pk)
    assert not may_see(UserFactory.create(), dialog.pk)
