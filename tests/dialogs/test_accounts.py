"""Accounts: names that look alike are one, attempts count by the person, and rights come only from who has them."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client

from dialogs.accounts.login import ATTEMPTS_OF_ACCOUNT, free_username
from dialogs.accounts.names import check_name, skeleton
from dominds.oidc.id_token import Untrusted, verify
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import UserFactory

ALIKE = [
    ("admin", "аdmin"),
    ("admin", "ADMIN"),
    ("ann", "аnn"),
    ("paypal", "раураӏ"),
    ("bob", "b0b"),
    ("will", "wi11"),
    ("modern", "modem"),
    ("Ian", "lan"),
    ("jose", "josé"),
    ("grace", "ցrace"),
    ("otto", "ОТТО"),
    ("ada", "ａｄａ"),
]
APART = [("ann", "anna"), ("ann", "anne"), ("bob", "rob"), ("иван", "ivan"), ("李雷", "李磊"), ("a.b", "a-b")]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_have_one_skeleton(one: str, other: str) -> None:
    assert skeleton(one) == skeleton(other) or one.casefold() == other.casefold()


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_names_stay_apart(one: str, other: str) -> None:
    assert skeleton(one) != skeleton(other)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["аdmin", "Admin", "ad\u3164min", "\u3164", "ａdmin"])
def test_a_name_that_is_taken_for_another_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = UserFactory.create(username="admin", is_staff=True, is_superuser=True)
    Group.objects.create(name="admin")
    for own in (User(), Group()):
        with pytest.raises(ValidationError):
            check_name(name, own)
    client = browser_of(admin)
    client.post("/people/invite/", {"username": name, "email": ""})
    client.post("/people/groups/", {"name": name})
    client.post("/admin/auth/user/add/", {"username": name, "usable_password": "false"})
    monkeypatch.setenv("DOMINDS_PASSWORD", "correct horse battery")
    with pytest.raises(CommandError):
        call_command("createuser", name)
    assert (User.objects.count(), Group.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_a_sign_in_gets_a_name_that_is_nobodys() -> None:
    UserFactory.create(username="admin")
    assert free_username("аdmin") == "аdmin-2"


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_client")
def test_spellings_of_a_name_share_their_attempts() -> None:
    UserFactory.create(username="ann")
    names = ["ann", " ann ", "ａnn", "an\uff4e", "\u3000ann"] * ATTEMPTS_OF_ACCOUNT
    answers = [
        Client(REMOTE_ADDR=f"10.0.0.{number}").post("/login/", {"username": name, "password": "wrong"}).status_code
        for number, name in enumerate(names[: ATTEMPTS_OF_ACCOUNT + 1])
    ]
    assert answers[-2:] == [200, 429]


# -- The admin's pages -------------------------------------------------------------------------------------------------


def keeper(*more: str) -> User:
    person = UserFactory.create(is_staff=True)
    person.user_permissions.set(
        Permission.objects.filter(codename__in=["view_user", "change_user", "add_user", "delete_user", *more])
    )
    return person


@pytest.mark.django_db
def test_who_changes_people_gives_no_rights_that_they_lack() -> None:
    person, client = keeper(), browser_of(keeper())
    every = {
        "username": person.username,
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "groups": [Group.objects.create(name="x").pk],
        "user_permissions": list(Permission.objects.values_list("pk", flat=True)),
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
    }
    before = person.get_all_permissions()
    for row in (person, UserFactory.create()):
        client.post(f"/admin/auth/user/{row.pk}/change/", every | {"username": row.username})
        after = User.objects.get(pk=row.pk)
        assert (after.is_superuser, after.groups.count()) == (False, 0)
        assert after.get_all_permissions() == (before if row == person else set())


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["change", "password", "delete"])
def test_who_may_do_more_is_out_of_their_reach(path: str) -> None:
    client, boss = browser_of(keeper()), UserFactory.create(is_superuser=True)
    operator = UserFactory.create()
    operator.user_permissions.set(Permission.objects.filter(codename="operate"))
    for row in (boss, operator):
        password = row.password
        client.post(f"/admin/auth/user/{row.pk}/{path}/", {"password1": "tea-and-cake", "password2": "tea-and-cake"})
        assert User.objects.get(pk=row.pk).password == password


@pytest.mark.django_db
def test_a_group_gets_only_rights_that_its_keeper_has() -> None:
    group, strong = Group.objects.create(name="a"), Group.objects.create(name="b")
    operate = Permission.objects.get(codename="operate")
    strong.permissions.add(operate)
    client = browser_of(keeper("change_group", "view_group"))
    client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "a", "permissions": [operate.pk]})
    client.post(f"/admin/auth/group/{strong.pk}/change/", {"name": "c", "permissions": []})
    assert not group.permissions.exists()
    assert list(strong.permissions.all()) == [operate]


# -- ID tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [None, 7, True, [], {}, ["RS256"], {"RS256": 1}, "none", "HS256", ""])
def test_an_algorithm_of_any_type_proves_nothing(algorithm: Any) -> None:
    head = {"alg": algorithm, "typ": "JWT"}
    with pytest.raises(Untrusted):
        verify(token_of(head, {}), [{"kty": "RSA", "n": 7, "e": []}], issuer="i", client_id="c", nonce="n")


@pytest.mark.parametrize("key", [7, [], {}, {"kty": []}, {"kty": "RSA", "n": 7, "e": []}, {"kty": "RSA", "n": "x"}])
def test_a_key_of_any_shape_proves_nothing(key: Any) -> None:
    with pytest.raises(Untrusted):
        verify(token_of({"alg": "RS256"}, {"exp": 1e400}), [key], issuer="i", client_id="c", nonce="n")


def token_of(head: Any, claims: Any) -> str:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (head, claims)]
    return ".".join([*parts, "c2ln"])
