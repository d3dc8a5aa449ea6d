"""Administrators invite people, put them into groups, and remove them, without the admin."""

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from dialogs.accounts.api_keys import create_key, owner_of
from dialogs.permissions import OPERATE, VIEW_ALL, may
from dominds.redaction import redact
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import PASSWORD, UserFactory, make_dialog, make_operator

pytestmark = pytest.mark.django_db(transaction=True)
CHOSEN = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}


@pytest.fixture
def admin() -> User:
    return UserFactory.create(is_staff=True, is_superuser=True)


def link_on(page: Any) -> str:
    match = re.search(r'id="new-link">https?://[^/]+([^<]+)<', page.content.decode())
    assert match is not None
    assert page["Cache-Control"] == "no-store"
    return match[1]


def test_somebody_is_invited_and_comes_in_by_the_link_once(admin: User) -> None:
    group, client = Group.objects.create(name="Harbour"), browser_of(admin)
    page = client.post("/people/invite/", {"username": "grace", "email": "", "groups": [group.pk]})
    link = link_on(page)
    grace = User.objects.get(username="grace")
    assert (grace.is_superuser, grace.has_usable_password(), list(grace.groups.all())) == (False, False, [group])
    assert "invited" in client.get("/people/?q=grace").content.decode()
    visitor = Client()
    assert "Welcome, grace" in visitor.get(link).content.decode()
    assert visitor.post(link, {**CHOSEN, "new_password2": "other"}).status_code == 200
    assert visitor.post(link, CHOSEN)["Location"] == "/"
    assert visitor.get("/settings/").status_code == 200
    assert Client().get(link).status_code == 404
    assert Client().post(link, CHOSEN).status_code == 404
    assert Client().post("/login/", {"username": "grace", "password": CHOSEN["new_password1"]})["Location"] == "/"


def test_a_link_holds_for_its_person_and_a_while(admin: User, settings: Any) -> None:
    client, other = browser_of(admin), UserFactory.create()
    link = link_on(client.post(f"/people/{UserFactory.create().pk}/link/"))
    user_id, token = link.split("/")[2:4]
    for bent in (f"/invited/{other.pk}/{token}/", f"/invited/{user_id}/{token[:-1]}x/", f"/invited/999999/{token}/"):
        assert Client().get(bent).status_code == 404
    assert token not in redact(f"GET {link} 200")
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert Client().get(link).status_code == 404
    settings.PASSWORD_RESET_TIMEOUT = 259_200
    client.post(f"/people/{user_id}/switch/", {"on": "no"})
    assert Client().get(link).status_code == 404


def test_a_new_password_by_link_ends_other_sessions(admin: User) -> None:
    person = UserFactory.create()
    thief, link = browser_of(person), link_on(browser_of(admin).post(f"/people/{person.pk}/link/"))
    Client().post(link, CHOSEN)
    assert thief.get("/").status_code == 302
    assert Client().post("/login/", {"username": person.username, "password": PASSWORD}).status_code == 200


def test_who_is_removed_is_out_everywhere_and_may_be_brought_back(admin: User) -> None:
    dialog = make_dialog()
    person, key = dialog.owner, create_key(dialog.owner)
    theirs, client = browser_of(person), browser_of(admin)
    client.post(f"/people/{person.pk}/switch/", {"on": "no"})
    assert theirs.get("/").status_code == 302 and owner_of(key) is None
    assert Client().post("/login/", {"username": person.username, "password": PASSWORD}).status_code == 200
    assert client.get(f"/d/{dialog.pk}/").status_code == 200
    client.post(f"/people/{person.pk}/switch/", {"on": "yes"})
    assert theirs.get("/").status_code == 200 and owner_of(key) == person


def test_groups_are_made_filled_and_deleted(admin: User) -> None:
    client, person = browser_of(admin), UserFactory.create()
    address = client.post("/people/groups/", {"name": "Harbour"})["Location"]
    group = Group.objects.get()
    assert address == f"/people/groups/{group.pk}/"
    client.post(address, {"act": "join", "name": person.username})
    client.post(address, {"act": "save", "name": "Docks", "permissions": [OPERATE]})
    assert may(User.objects.get(pk=person.pk), OPERATE) and not may(User.objects.get(pk=person.pk), VIEW_ALL)
    page = client.get(address).content.decode()
    assert person.username in page and "Docks" in page
    assert "Nobody here is called" in html.unescape(client.post(address, {"act": "join", "name": "x"}).content.decode())
    assert "not in this group" in client.post(address, {"act": "leave", "person": "one"}).content.decode()
    client.post(address, {"act": "leave", "person": person.pk})
    assert not may(User.objects.get(pk=person.pk), OPERATE)
    assert client.post("/people/groups/", {"name": "Docks"}).status_code == 400
    client.post(address, {"act": "delete"})
    assert not Group.objects.exists()


def test_nobody_takes_the_last_administration_away(admin: User) -> None:
    client, address = browser_of(admin), f"/people/{admin.pk}/"
    assert "own administration" in client.post(address, {"username": admin.username}).content.decode()
    client.post(f"{address}switch/", {"on": "no"})
    admin.refresh_from_db()
    assert admin.is_superuser and admin.is_active
    other = UserFactory.create()
    client.post(f"/people/{other.pk}/", {"username": "ada", "email": "ada@example.org", "administers": "on"})
    other.refresh_from_db()
    assert (other.username, other.email, other.is_superuser, other.is_staff) == ("ada", "ada@example.org", True, True)
    assert client.post(f"/people/{other.pk}/", {"username": admin.username}).status_code == 400


@pytest.mark.parametrize("person", [UserFactory.create, make_operator])
def test_for_everybody_else_there_are_no_such_pages(person: Any) -> None:
    group, other = Group.objects.create(name="Harbour"), UserFactory.create()
    client = browser_of(person())
    for address in ("/people/", f"/people/{other.pk}/", f"/people/groups/{group.pk}/"):
        assert client.get(address).status_code == 404
    for address in (
        "invite/",
        "groups/",
        f"groups/{group.pk}/",
        f"{other.pk}/",
        f"{other.pk}/link/",
        f"{other.pk}/switch/",
    ):
        assert client.post(f"/people/{address}", {"name": "x", "username": "x"}).status_code == 404
