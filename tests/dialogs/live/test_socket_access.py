"""Who gets a socket, and when it is closed."""

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from dialogs.actions import messages, sharing
from dialogs.live.hub import SOCKETS_PER_PERSON
from dialogs.store import wakeups
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator
from tests.dialogs.live.sockets import (
    PATIENCE_SECONDS,
    answer,
    events_of,
    frames_until,
    go,
    is_state,
    listening,
    path_of,
    rows,
    socket,
)
from tests.harness.browser import session_key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("who", ["nobody", "a stranger", "nobody's dialog", "a forged session"])
def test_who_may_not_see_the_dialog_gets_no_socket(script: Script, who: str) -> None:
    dialog = make_dialog()
    path = path_of(dialog)
    if who == "nobody's dialog":
        path = "/ws/dialogs/00000000-0000-4000-8000-000000000000/"
    user = {"nobody": None, "a forged session": None}.get(who, UserFactory.create())
    page = socket(path, user, key="forged" if who == "a forged session" else "")

    async def scenario() -> None:
        connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
        assert not connected

    go(scenario)


def test_owner_and_staff_see_the_dialog(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    for user in (dialog.owner, make_operator()):

        async def scenario(user: User = user) -> None:
            async with listening(path_of(dialog), user) as page:
                frames = await frames_until(page, is_state("idle"))
            assert [frame["type"] for frame in events_of(frames)].count("turn") >= 2

        go(scenario)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1.evil.example", "http://127.0.0.1:81"]
)
def test_another_sites_page_gets_no_socket(script: Script, origin: str) -> None:
    dialog = make_dialog()
    page = socket(path_of(dialog), dialog.owner, origin=origin)

    async def scenario() -> None:
        connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
        assert not connected

    go(scenario)


def test_logging_out_closes_the_sockets_of_that_session_only(script: Script) -> None:
    dialog = make_dialog()
    browser, other = Client(), Client()
    browser.force_login(dialog.owner)
    other.force_login(dialog.owner)

    async def scenario() -> None:
        here = socket(path_of(dialog), None, key=browser.session.session_key or "")
        there = socket(path_of(dialog), None, key=other.session.session_key or "")
        for page in (here, there):
            assert (await page.connect(timeout=PATIENCE_SECONDS))[0]
            await frames_until(page, lambda frame: frame["type"] == "badges")
        await rows(browser.post, "/logout/")
        closed = await here.receive_output(timeout=5)
        while closed["type"] == "websocket.send":
            closed = await here.receive_output(timeout=5)
        assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
        await rows(messages.post_message, dialog.pk, "still here")
        await frames_until(there, lambda frame: frame["type"] == "turn")
        await here.disconnect()
        await there.disconnect()

    go(scenario)


def test_leaving_a_group_ends_its_dialogs_sockets(script: Script) -> None:
    dialog, member = make_dialog(), UserFactory.create()
    group = Group.objects.create(name="Harbour")
    group.user_set.set([dialog.owner, member])
    sharing.share(dialog.pk, "Harbour", dialog.owner)

    async def scenario() -> None:
        async with listening(path_of(dialog), member) as page:
            await rows(answer, dialog)
            await frames_until(page, is_state("idle"))
            await rows(group.user_set.remove, member)
            await rows(messages.post_message, dialog.pk, "among ourselves")
            closed = await page.receive_output(timeout=PATIENCE_SECONDS)
            while closed["type"] == "websocket.send":
                assert "among ourselves" not in closed["text"]
                closed = await page.receive_output(timeout=PATIENCE_SECONDS)
            assert (closed["type"], closed["code"]) == ("websocket.close", 4404)

    go(scenario)


def test_a_changed_password_closes_the_sockets_of_other_sessions(script: Script) -> None:
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, lambda frame: frame["type"] == "badges")

            def change_password() -> None:
                dialog.owner.set_password("another long password")
                dialog.owner.save()
                wakeups.client().publish(wakeups.user_channel(dialog.owner.pk), b'{"recheck": true}')

            await rows(change_password)
            closed = await page.receive_output(timeout=5)
            assert (closed["type"], closed["code"]) == ("websocket.close", 4401)

    go(scenario)


def test_open_sockets_of_a_person_are_limited(script: Script) -> None:
    user = UserFactory.create()

    async def scenario() -> None:
        pages = [await rows(socket, "/ws/me/", user) for _ in range(SOCKETS_PER_PERSON + 2)]
        for page in pages[:SOCKETS_PER_PERSON]:
            assert (await page.connect(timeout=PATIENCE_SECONDS))[0]
        assert not (await pages[-2].connect(timeout=PATIENCE_SECONDS))[0]
        await pages[0].disconnect(timeout=PATIENCE_SECONDS)
        assert (await pages[-1].connect(timeout=PATIENCE_SECONDS))[0]
        for page in [*pages[1:SOCKETS_PER_PERSON], pages[-1]]:
            await page.disconnect(timeout=PATIENCE_SECONDS)

    go(scenario)


def test_a_session_that_vanished_is_no_login(script: Script) -> None:
    dialog = make_dialog()
    key = session_key(dialog.owner)
    SessionStore(key).delete()
    page = socket(path_of(dialog), None, key=key)

    async def scenario() -> None:
        assert not (await page.connect(timeout=PATIENCE_SECONDS))[0]

    go(scenario)
