"""Every address that the URL configuration holds, asked by nobody, by a stranger,
by another site's form and by its owner."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from dialogs.accounts import api_keys
from dialogs.actions import messages, reminders, sharing
from dialogs.actions.questions import ASK_HUMAN
from dialogs.extras.notices import web_push
from dialogs.models import ApiKey, Dialog, Question
from remediation.models import CleanupTask
from tests.dialogs.conftest import Script
from tests.dialogs.factories import PASSWORD, UserFactory, make_dialog, send
from tests.harness.stack import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

PUBLIC = {
    "livez",
    "readyz",
    "metrics",
    "login/",
    "setup/",
    "api/openapi.json",
    "api/docs",
    "push-worker.js",
    "scripts.js",
}
STREAMS = re.compile(r"/events$")  # their answers do not end by themselves


def patterns(resolver: Any, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if not route.startswith("admin/"):  # Django's, with checks of its own; tests/dialogs/admin/test_admin.py
                yield from patterns(entry, route)
        else:
            yield route, entry


ROUTES = sorted({route for route, _ in patterns(get_resolver("dominds.urls"))})
NAMED = [
    route for route in ROUTES if re.search(r"<\w+:(dialog_id|question_id|task_id|key_id|run_id|reminder_id)>", route)
]


def fill(route: str, values: dict[str, Any]) -> str:
    """The address with its placeholders filled; what nobody named gets something harmless."""
    filler = {"provider": "test", "model": "model", "kind": "prune", "action": "fail", "seq": 1, "run_id": 1}
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda value: str((filler | values).get(value[1], 1)), route)


@pytest.fixture
def belongings(script: Script) -> dict[str, Any]:
    """One of everything that an address can name, all of one person, and the dialog shared with their group."""
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which?"}}]}, {"text": "ok"})
    dialog = make_dialog()
    dialog.owner.groups.add(Group.objects.create(name="Harbour"))
    sharing.share(dialog.pk, "Harbour", dialog.owner)
    reminder = reminders.add(dialog.pk, "keep")
    send(dialog, "Hi")
    messages.post_message(dialog.pk, "queued")
    api_keys.create_key(dialog.owner, name="mine")
    return {
        "dialog_id": dialog.pk,
        "question_id": Question.objects.get(dialog=dialog).pk,
        "reminder_id": reminder.pk,
        "key_id": ApiKey.objects.get().pk,
        "task_id": CleanupTask.objects.create(dialog=dialog, reason="x").pk,
        "seq": 1,
    }


def client_of(person: Any, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(person)
    return client


def everything() -> dict[str, Any]:
    """Every row of every table; sessions come and go."""
    result = {}
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            if model is not Session:
                cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" t ORDER BY 1')
                result[model._meta.label] = cursor.fetchall()
    return result


def test_the_walk_sees_the_whole_product() -> None:
    assert {"ops/", "q4h/<uuid:question_id>/", "v1/models"} <= {route.rstrip("$") for route in ROUTES}
    assert len(ROUTES) > 70
    assert len(NAMED) > 40


def test_nobody_gets_in_without_a_login(belongings: dict[str, Any]) -> None:
    UserFactory.create(is_superuser=True)
    before, client = everything(), Client()
    for route in ROUTES:
        if route in PUBLIC:
            continue
        for method in ("get", "post"):
            answer = getattr(client, method)(fill(route, belongings))
            refused = answer.status_code in (401, 404, 405) or (
                answer.status_code == 302 and answer.headers["Location"].startswith("/login/")
            )
            assert refused, (method, route, answer.status_code)
    assert everything() == before


def test_a_member_of_another_group_finds_nothing_and_changes_nothing(belongings: dict[str, Any]) -> None:
    before, stranger = everything(), make_dialog().owner
    stranger.groups.add(Group.objects.create(name="Mountain"))
    after_login, client = None, client_of(stranger)
    after_login = everything()
    assert len(after_login["auth.User"]) == len(before["auth.User"]) + 1
    for route in NAMED:
        for method in ("get", "post", "patch", "delete"):
            answer = getattr(client, method)(fill(route, belongings), content_type="application/json", data={})
            allowed: tuple[int, ...] = (404, 405)
            if "key_id" in route:
                allowed = (404, 405, 302)  # revoking what is not one's own: back to the page, nothing revoked
            if route.startswith("api/"):
                allowed = (400, 404, 405)  # a body that fits no call is refused before anything is looked up
            assert answer.status_code in allowed, (method, route, answer.status_code)
    assert everything() == after_login


def test_a_member_of_its_group_reads_all_that_its_owner_reads(belongings: dict[str, Any]) -> None:
    owner, member = Dialog.objects.get(pk=belongings["dialog_id"]).owner, UserFactory.create()
    member.groups.set(owner.groups.all())
    theirs, owners = client_of(member), client_of(owner)
    read = 0
    for route in NAMED:
        path = fill(route, belongings)
        if not STREAMS.search(path) and "key_id" not in route:
            answers = [client.get(path).status_code for client in (theirs, owners)]
            assert answers[0] == answers[1], path
            read += answers[0] == 200
    assert read > 20


def test_another_sites_form_changes_nothing(belongings: dict[str, Any]) -> None:
    """It carries the cookie, and not the token."""
    owner = Dialog.objects.get(pk=belongings["dialog_id"]).owner
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client = client_of(owner, enforce_csrf_checks=True)
    before = everything()
    for route in ROUTES:
        if route in ("livez", "readyz", "metrics"):
            continue
        for method in ("post", "put", "patch", "delete"):
            answer = getattr(client, method)(fill(route, belongings), data="text=x", content_type="text/plain")
            assert answer.status_code in (401, 403, 404, 405), (method, route, answer.status_code)
    assert everything() == before


def test_looking_changes_nothing_and_every_page_is_armoured(belongings: dict[str, Any]) -> None:
    owner = Dialog.objects.get(pk=belongings["dialog_id"]).owner
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client, seen = client_of(owner), 0
    web_push.public_key()  # made once for the site, by the first look at any person's settings
    before = everything()
    for route in ROUTES:
        path = fill(route, belongings)
        if STREAMS.search(path):
            continue
        answer = client.get(path)
        assert answer.status_code < 500, path
        assert answer["X-Content-Type-Options"] == "nosniff", path
        assert answer["X-Frame-Options"] == "DENY", path
        assert answer["Referrer-Policy"] == "same-origin", path
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin", path
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            seen += 1
            _check_page(answer, path)
    assert seen > 10
    assert everything() == before


def _check_page(answer: Any, path: str) -> None:
    html, policy = answer.content.decode(), answer["Content-Security-Policy"]
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert "unsafe" not in policy, path
    assert allowed["default-src"] == allowed["frame-ancestors"] == allowed["base-uri"] == "'none'", path
    for name in ("script-src", "style-src", "img-src", "connect-src", "form-action"):
        assert not re.search(r"https?:|\*", allowed[name]), (path, name)
    assert allowed["connect-src"] == "'self' ws://testserver", path
    nonce = re.search(r"'nonce-([^']+)'", allowed["script-src"])
    for tag in re.findall(r"<script[^>]*>", html):
        assert " src=" in tag or 'type="application/json"' in tag, (path, tag)
        if 'nonce="' in tag:
            assert nonce, (path, "a nonce on the page, none in its policy")
            assert f'nonce="{nonce[1]}"' in tag, (path, tag)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", html), path


def test_a_nonce_is_used_once(belongings: dict[str, Any]) -> None:
    client = client_of(Dialog.objects.get(pk=belongings["dialog_id"]).owner)
    policies = [client.get("/")["Content-Security-Policy"] for _ in range(3)]
    assert len({nonce for policy in policies for nonce in re.findall(r"nonce-[^']+", policy)[:1]}) == 3


def test_a_login_gets_a_session_of_its_own() -> None:
    """A session that somebody slipped to a visitor is not the one they are logged in with (S23)."""
    user, client = UserFactory.create(is_superuser=True), Client()
    planted = client.session
    planted["planted"] = True
    planted.save()
    client.cookies["sessionid"] = str(planted.session_key)
    answer = client.post("/login/", {"username": user.username, "password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    assert client.cookies["sessionid"].value != planted.session_key
    assert not Session.objects.filter(pk=planted.session_key).exists()


@pytest.mark.parametrize("header", ["X-Forwarded-Proto", "X_Forwarded_Proto", "X-Forwarded-Ssl", "Forwarded"])
def test_a_visitor_cannot_pretend_to_come_over_https(client: Client, settings: Any, header: str) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get("/login/", headers={header: "proto=https" if header == "Forwarded" else "https"})
    assert answer.status_code == 301


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost:80@evil"]
)
def test_other_names_are_refused(client: Client, host: str) -> None:
    """Also what keeps another site from reaching a Dominds on somebody's own machine by rebinding its name (S27)."""
    assert client.get("/login/", headers={"host": host}).status_code == 400
    assert client.get("/login/", headers={"X-Forwarded-Host": host}).status_code in (200, 302)


def test_ids_cannot_be_guessed_or_bent(client: Client) -> None:
    client.force_login(UserFactory.create())
    for name in ("1", "0", "..", "%2e%2e", "null", "x" * 36, str(UUID(int=0)), f"{UUID(int=1)}%00"):
        assert client.get(f"/d/{name}/").status_code in (400, 404), name
        assert client.get(f"/q4h/{name}/").status_code in (400, 404), name


# -- What must not be written in the code -----------------------------------------------------------


FORBIDDEN = {
    r"\|\s*safe\b|autoescape off|safeseq": "a template that trusts text",
    r"^\s*(import|from) (pickle|marshal|shelve|dill)\b": "stored code",
    r"yaml\.(load|full_load|unsafe_load)\(": "YAML that makes objects",
    r"\beval\(|\bexec\(": "text that is run",
    r"shell=True|os\.system\(": "a shell",
    r"verify=False|CERT_NONE|_create_unverified_context": "TLS that trusts anybody",
    r"csrf_exempt": "a form without a token",
    r"\.extra\(|RawSQL\(": "SQL by hand",
}


KNOWN = {  # with their reasons
    "templates/accounts/_setup_form.html": "Django's own help for a password, written in HTML",
    "dialogs/extras/v1/calls.py": "/v1 knows API keys only, no cookies",
    "dialogs/extras/v1/mcp/views.py": "so does /mcp",
    "dialogs/api/urls.py": "the answer to an unknown address changes nothing",
}


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_the_code_does_without(pattern: str) -> None:
    code = [path for app in ("dominds", "dialogs", "health", "remediation") for path in (ROOT / app).rglob("*.py")]
    files = (
        [*ROOT.glob("templates/**/*.html"), *ROOT.glob("dialogs/extras/*/templates/**/*.html")]
        if "safe" in pattern
        else code
    )
    results = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line) and str(path.relative_to(ROOT)) not in KNOWN
    ]
    assert not results, FORBIDDEN[pattern]
