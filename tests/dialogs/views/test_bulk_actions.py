"""Several dialogs at once from the list, and a dialog's new name."""

import json
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, User

from dialogs.actions import messages, sharing
from dialogs.models import Dialog
from dialogs.store import events
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

SELECTED = "/d/selected/"


def titled(title: str, owner: User | None = None) -> Dialog:
    return messages.create_dialog(owner or UserFactory.create(), AgentFactory.create().pk, title)


async def whole(answer: Any) -> bytes:
    return b"".join([piece async for piece in answer.streaming_content])


def listed(client: Any, query: str = "") -> str:
    return str(
        in_one_line(
            client.get(f"/dialogs/{query}", headers={"HX-Request": "true", "HX-Target": "dialog-rows"}).content.decode()
        )
    )


def test_archived_dialogs_leave_the_list_and_come_back() -> None:
    away = titled("Put away")
    other = titled("Stays here", away.owner)
    client = browser_of(away.owner)
    answer = client.post(SELECTED, {"action": "archive", "dialog": [str(away.pk)], "back": "/dialogs/?q=a"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/dialogs/?q=a")
    assert "Put away" not in listed(client)
    assert other.title in listed(client)
    assert "Put away" in listed(client, "?state=archived")
    assert client.get(f"/d/{away.pk}/").status_code == 200
    client.post(SELECTED, {"action": "restore", "dialog": [str(away.pk)]})
    assert "Put away" in listed(client)


def test_a_message_brings_an_archived_dialog_back(script: Script) -> None:
    script({"text": "Still here."})
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    client.post(SELECTED, {"action": "archive", "dialog": [str(dialog.pk)]})
    dialog.refresh_from_db()
    assert dialog.archived_at is not None
    assert "archived until the next message" in client.get(f"/d/{dialog.pk}/").content.decode()
    messages.post_message(dialog.pk, "Still there?")
    assert "archived until the next message" not in client.get(f"/d/{dialog.pk}/").content.decode()
    dialog.refresh_from_db()
    assert dialog.archived_at is None


def test_the_export_holds_what_was_ticked_and_nothing_of_others(script: Script) -> None:
    script({"text": "Hello."})
    first = titled("First")
    second, foreign = titled("Second", first.owner), titled("Foreign")
    messages.post_message(first.pk, "Hello [world], {you}")
    ticked = [str(dialog.pk) for dialog in (first, second, foreign)]
    answer = browser_of(first.owner).post(SELECTED, {"action": "export", "dialog": ticked})
    dialogs = json.loads(async_to_sync(whole)(answer))
    assert {one["dialog"]["title"] for one in dialogs} == {"First", "Second"}
    assert 'filename="dialogs.json"' in answer["Content-Disposition"]


def test_nobody_archives_what_is_not_theirs_not_even_staff() -> None:
    dialog = make_dialog()
    for somebody in (UserFactory.create(), make_operator()):
        browser_of(somebody).post(SELECTED, {"action": "archive", "dialog": [str(dialog.pk)]})
    assert Dialog.objects.get(pk=dialog.pk).archived_at is None


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "No dialog was ticked."),
        ({"action": "archive"}, "No dialog was ticked."),
        ({"action": "archive", "dialog": "no id"}, "Nothing was done."),
        ({"action": "burn", "dialog": "x"}, "Nothing was done."),
    ],
)
def test_a_selection_of_nothing_does_nothing_and_says_so(sent: dict[str, str], message: str) -> None:
    client = browser_of(UserFactory.create())
    answer = client.post(SELECTED, {**sent, "back": "https://evil.example/"}, follow=True)
    assert answer.redirect_chain == [("/dialogs/", 302)]
    assert message in in_one_line(answer.content.decode())


def test_a_new_name_reaches_the_page_and_its_list() -> None:
    dialog = titled("Old")
    answer = browser_of(dialog.owner).post(f"/d/{dialog.pk}/rename/", {"title": "  New \x00 name "})
    assert answer.status_code == 302
    dialog.refresh_from_db()
    assert dialog.title == "New name"
    assert events.after(dialog.pk, 0, 50)[-1]["type"] == "title"
    browser_of(dialog.owner).post(f"/d/{dialog.pk}/rename/", {"title": "  "})
    browser_of(UserFactory.create()).post(f"/d/{dialog.pk}/rename/", {"title": "Mine now"})
    dialog.refresh_from_db()
    assert dialog.title == "New name"


def test_a_folder_is_its_owners_alone() -> None:
    dialog, operator = titled("Berths"), make_operator()
    client, move = browser_of(dialog.owner), f"/d/{dialog.pk}/folder/"
    titled("Elsewhere", dialog.owner)
    client.post(move, {"folder": "  Harbour   dues "})
    page = in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    nav = page[page.index('id="nav-dialogs"') : page.index("All dialogs")]
    assert (
        nav.index('data-folder="Harbour dues" open') < nav.index("Berths") < nav.index("Today") < nav.index("Elsewhere")
    )
    assert '<option value="Harbour dues">' in page and 'name="folder" value="Harbour dues"' in page
    for query in ("?folder=Harbour+dues", "?q=harbour"):
        assert "in Harbour dues" in listed(client, query) and "Elsewhere" not in listed(client, query)
        assert "Berths" not in listed(browser_of(operator), query)
    assert "Harbour dues" not in listed(browser_of(operator), "?q=berths")
    answer = client.post(move, {"folder": "x" * 61}, follow=True)
    assert "has 61 characters; at most 60" in in_one_line(answer.content.decode())
    assert "Only its owner" in in_one_line(
        browser_of(operator).post(move, {"folder": "Mine"}, follow=True).content.decode()
    )
    client.post(move, {"folder": " "})
    assert "data-folder" not in in_one_line(client.get("/").content.decode())


def in_folder(name: str, *titles: str) -> list[Dialog]:
    owner = UserFactory.create()
    made = [titled(title, owner) for title in titles]
    Dialog.objects.filter(owner=owner).update(folder=name)
    return made


def undone(client: Any, page: str) -> str:
    """What the page says after its button to undo was pressed."""
    match = re.search(r'name="token" value="([^"]+)"', page)
    assert match is not None, page
    return str(in_one_line(client.post("/d/undo/", {"token": match[1]}, follow=True).content.decode()))


def folders_of(dialogs: list[Dialog]) -> set[str | None]:
    return set(Dialog.objects.filter(pk__in=[dialog.pk for dialog in dialogs]).values_list("folder", flat=True))


def test_each_action_on_a_folder_can_be_undone() -> None:
    dialogs = in_folder("Harbour dues", "Berths", "Cranes")
    other = titled("Elsewhere", dialogs[0].owner)
    client = browser_of(other.owner)

    def act(action: str, folder: str = "Harbour dues", **more: str) -> str:
        answer = client.post("/d/folder/", {"action": action, "folder": folder, **more}, follow=True)
        return str(in_one_line(answer.content.decode()))

    assert "2 dialogs" in listed(client, "?folder=Harbour+dues") and "2 dialogs" not in listed(client)
    page = act("rename", name="  Harbour  fees ")
    assert folders_of(dialogs) == {"Harbour fees"} and 'id="folder-name"' in page
    assert "Undone, for 2 dialogs." in undone(client, page) and folders_of(dialogs) == {"Harbour dues"}

    page = act("remove")
    assert folders_of(dialogs) == {None} and "data-folder" not in page
    client.post(f"/d/{dialogs[0].pk}/folder/", {"folder": "Moved since"})
    assert "Undone, for 1 dialog." in undone(client, page)
    assert folders_of(dialogs) == {"Moved since", "Harbour dues"}

    page = act("archive")
    assert "Cranes" not in listed(client) and "Cranes" in listed(client, "?state=archived")
    assert "You have no folder" in act("archive")
    undone(client, page)
    assert "Cranes" in listed(client, "?folder=Harbour+dues")

    for name, why in (
        (" ", "is blank"),
        ("Moved since", "already"),
        ("x" * 61, "at most 60"),
        ("x" * 501, "at most 500"),
    ):
        assert why in act("rename", name=name)
    assert "You have no folder" in act("remove", folder="Never made")
    assert folders_of([*dialogs, other]) == {"Moved since", "Harbour dues", None}


def test_a_whole_folder_is_exported_and_shared() -> None:
    dialogs = in_folder("Harbour dues", "Berths", "Cranes")
    owner, member = dialogs[0].owner, UserFactory.create()
    client = browser_of(owner)
    assert "Share all" not in listed(client, "?folder=Harbour+dues")
    for name in ("Pilots", "Tugs"):
        group = Group.objects.create(name=name)
        group.user_set.add(owner, *([member] if name == "Pilots" else []))
    sharing.share(dialogs[0].pk, "Tugs", owner)
    assert "Share all" in listed(client, "?folder=Harbour+dues")
    answer = client.post("/d/folder/", {"action": "export", "folder": "Harbour dues"})
    assert len(json.loads(async_to_sync(whole)(answer))) == 2
    share = {"action": "share", "folder": "Harbour dues", "group": "Pilots"}
    page = in_one_line(client.post("/d/folder/", share, follow=True).content.decode())
    assert "2 dialogs shared with Pilots." in page
    assert "Berths" in listed(browser_of(member)) and "Cranes" in listed(browser_of(member))
    assert browser_of(member).post("/d/folder/", {**share, "group": "", "action": "remove"}, follow=True)
    assert folders_of(dialogs) == {"Harbour dues"}  # which is another's
    undone(client, page)
    names = Dialog.objects.filter(owner=owner).values_list("group__name", flat=True)
    assert set(names) == {"Tugs", None}
    refused = in_one_line(client.post("/d/folder/", {**share, "group": "Admirals"}, follow=True).content.decode())
    assert "You belong to no group" in refused


def test_only_who_did_it_undoes_it_and_not_for_ever() -> None:
    dialog = titled("Put away")
    client = browser_of(dialog.owner)
    page = in_one_line(
        client.post(SELECTED, {"action": "archive", "dialog": [str(dialog.pk)]}, follow=True).content.decode()
    )
    assert "There is no such thing" in undone(browser_of(UserFactory.create()), page)
    for token in ("", "forged:token:x"):
        assert "for an hour" in in_one_line(client.post("/d/undo/", {"token": token}, follow=True).content.decode())
    dialog.refresh_from_db()
    assert dialog.archived_at is not None
    assert "Undone, for 1 dialog." in undone(client, page)
    dialog.refresh_from_db()
    assert dialog.archived_at is None


def test_the_menu_of_a_row_offers_what_its_reader_may_do() -> None:
    [dialog] = in_folder("Harbour dues", "Berths")
    owner, member, group = browser_of(dialog.owner), UserFactory.create(), Group.objects.create(name="Pilots")
    group.user_set.add(dialog.owner, member)
    sharing.share(dialog.pk, "Pilots", dialog.owner)
    address, script = f"/d/{dialog.pk}/menu/", {"HX-Request": "true"}
    page = in_one_line(owner.get(address, headers=script).content.decode())
    assert all(words in page for words in ("Pin", "Rename…", 'value="Harbour dues"', "Archive dialog"))
    page = in_one_line(browser_of(member).get(address, headers=script).content.decode())
    assert "Rename…" in page and "Export as Markdown" in page
    assert not any(words in page for words in ("Pin<", "Move to folder…", "Archive dialog"))
    assert browser_of(UserFactory.create()).get(address, headers=script).status_code == 404
    assert owner.get(address)["Location"] == f"/d/{dialog.pk}/"
    page = in_one_line(owner.get(f"/d/{dialog.pk}/").content.decode())
    assert "Archive dialog" in page and '<option value="Harbour dues">' in page
