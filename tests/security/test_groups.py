"""Two groups on one server: what people of one share among themselves is not seen, found,
answered or counted by the other."""

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import access, folders, forks, messages, questions, sharing
from dialogs.errors import Forbidden, NotFound, Refusal
from dialogs.extras.v1.conversations import begin
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.live.frames import badges_of, frames_after
from dialogs.models import ApiKey, Dialog
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_operator
from tests.harness.stack import ROOT
from tests.security.conftest import Camp

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = ("/", "/dialogs/", "/q4h/", "/q4h/?tab=answered", "/settings/", "/models/", "/api/dialogs", "/api/questions")


def test_lists_of_one_group_know_nothing_of_another(camps: tuple[Camp, Camp]) -> None:
    for own, other in (camps, camps[::-1]):
        client = browser_of(own.member)
        for address in LISTS:
            page = client.get(address).content.decode()
            assert not [mark for mark in other.marks if mark in page], address
        assert str(own.dialog.pk) in client.get(f"/dialogs/?q={own.word}").content.decode()
        assert str(other.dialog.pk) not in client.get(f"/dialogs/?q={other.word}").content.decode()
        assert [row["dialog"] for row in client.get(f"/api/search?q={own.word}").json()] == [str(own.dialog.pk)]
        assert client.get(f"/api/search?q={other.word}").json() == []
        assert [row["id"] for row in client.get("/api/questions").json()] == [str(own.question.pk)]
        exported = client.post("/d/selected/", {"action": "export", "dialog": [own.dialog.pk, other.dialog.pk]})
        text = b"".join(_chunks(exported)).decode()
        assert (own.word in text, other.word in text) == (True, False)
        badges = (badges_of(own.member.pk) or {})["en"]
        assert (badges["questions"], [row[0] for row in badges["dialogs"]]) == (1, [str(own.dialog.pk)])


def _chunks(answer: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in answer]

    return async_to_sync(read)()


def test_members_act_in_a_dialog_and_others_find_none(camps: tuple[Camp, Camp], script: Script) -> None:
    own, other = camps
    dialog = own.dialog.pk
    for stranger in (other.owner, other.member, UserFactory.create()):
        with pytest.raises(NotFound):
            access.writable_dialog(dialog, stranger)
        with pytest.raises(NotFound):
            questions.answer(own.question.pk, stranger, "EUR")
        assert frames_after(dialog, stranger.pk, 0) is None
    questions.answer(own.question.pk, own.member, "EUR")
    client = browser_of(own.member)
    client.post(f"/d/{dialog}/messages/", {"text": "And then?"})
    turns = client.get(f"/api/dialogs/{dialog}/turns").json()
    assert (turns[-1]["text"], turns[-1]["author"]) == ("And then?", own.member.username)
    assert f"{own.member} answered the question." in [turn["text"] for turn in turns]
    assert frames_after(dialog, own.member.pk, 0)


def test_what_stays_with_the_owner(camps: tuple[Camp, Camp]) -> None:
    own, _ = camps
    for attempt in (
        lambda: sharing.share(own.dialog.pk, "", own.member),
        lambda: sharing.make_link(own.dialog.pk, own.member),
        lambda: sharing.revoke_link(own.dialog.pk, own.member),
        lambda: folders.pin(own.dialog, own.member, pinned=True),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert folders.archive(own.member, [own.dialog.pk], away=True).undo == ""
    page = browser_of(own.member).get(f"/d/{own.dialog.pk}/sharing/").content.decode()
    assert "Only its owner changes that" in page
    assert 'name="action"' not in page
    assert Client().get(f"/d/{own.dialog.pk}/sharing/").status_code == 302


def test_a_key_of_a_member_does_not_write_by_v1(camps: tuple[Camp, Camp]) -> None:
    own, other = camps
    for person, refusal in ((own.member, Forbidden), (other.member, NotFound)):
        create_key(person)
        request = ChatRequest(
            model=own.dialog.agent_id, messages=(ClientMessage("user", "Hi"),), tools=[], dialog_id=own.dialog.pk
        )
        with pytest.raises(refusal):
            begin(ApiKey.objects.get(owner=person), request)


def test_a_dialog_is_shared_with_groups_of_who_shares_it_alone(camps: tuple[Camp, Camp]) -> None:
    own, other = camps
    client = browser_of(own.owner)
    address = f"/d/{own.dialog.pk}/sharing/"
    for name in ("Camp of azure", "No such group"):
        with pytest.raises(Refusal, match=f"You belong to no group '{name}'. Your groups: Camp of crimson."):
            sharing.share(own.dialog.pk, name, own.owner)
    client.post(address, {"action": "group", "group": "Camp of azure"})
    own.dialog.refresh_from_db()
    assert str(own.dialog.group) == "Camp of crimson"
    assert 'value="Camp of azure"' not in client.get(address).content.decode()
    client.post(address, {"action": "group", "group": ""})
    assert browser_of(own.member).get(f"/d/{own.dialog.pk}/").status_code == 404
    operator = make_operator()
    operator.groups.add(Group.objects.get(name="Camp of azure"))
    sharing.share(own.dialog.pk, "Camp of azure", operator)
    assert browser_of(other.member).get(f"/d/{own.dialog.pk}/").status_code == 200


def test_who_leaves_the_group_sees_nothing_from_then_on(camps: tuple[Camp, Camp]) -> None:
    own, _ = camps
    own.member.groups.clear()
    client = browser_of(own.member)
    assert client.get(f"/d/{own.dialog.pk}/").status_code == 404
    assert client.get("/api/dialogs").json() == []
    assert frames_after(own.dialog.pk, own.member.pk, 0) is None
    assert (badges_of(own.member.pk) or {})["en"]["questions"] == 0


def test_a_group_that_is_deleted_leaves_its_dialogs_to_their_owners(camps: tuple[Camp, Camp]) -> None:
    own, _ = camps
    Group.objects.get(name="Camp of crimson").delete()
    assert browser_of(own.member).get(f"/d/{own.dialog.pk}/").status_code == 404
    assert browser_of(own.owner).get(f"/d/{own.dialog.pk}/").status_code == 200


def test_a_members_branch_is_theirs_and_an_owners_answer_stays_shared(camps: tuple[Camp, Camp], script: Script) -> None:
    own, _ = camps
    questions.cancel(own.question.pk, own.owner)
    messages.stop(own.dialog.pk)
    theirs = forks.fork(forks.Branch(own.dialog.pk, 1, own.member))
    assert (theirs.owner, theirs.group) == (own.member, None)
    assert browser_of(own.owner).get(f"/d/{theirs.pk}/").status_code == 404
    again = forks.edit(forks.Branch(own.dialog.pk, 1, own.owner), "Import it all")
    assert Dialog.objects.get(pk=again.pk).group == own.dialog.group
    sharing.share(own.dialog.pk, "", own.owner)
    versions = browser_of(own.member).get(f"/api/dialogs/{theirs.pk}/turns/1/versions").json()
    assert str(own.dialog.pk) not in [version["dialog"] for version in versions]


def test_the_api_shares_a_dialog(camps: tuple[Camp, Camp]) -> None:
    own, other = camps
    owner, member, stranger = browser_of(own.owner), browser_of(own.member), browser_of(other.member)
    address = f"/api/dialogs/{own.dialog.pk}"

    def patch(client: Client, **body: object) -> tuple[int, Any]:
        answer = client.patch(address, body, content_type="application/json")
        return answer.status_code, answer.json()

    assert [row["group"] for row in member.get("/api/dialogs").json()] == ["Camp of crimson"]
    assert patch(member, group=None)[0] == 403
    assert patch(stranger, group=None)[0] == 404
    assert patch(owner)[0] == 400
    assert patch(owner, group="Camp of azure")[1]["error"]["code"] == "invalid"
    assert patch(owner, group=None)[1]["group"] is None
    assert member.get(address).status_code == 404
    assert patch(owner, group="Camp of crimson")[1]["group"] == "Camp of crimson"
    assert member.get(address).status_code == 200
    events = [row["data"] for row in owner.get(f"{address}/events?limit=1000").json() if row["type"] == "sharing"]
    assert events[-2:] == [{"group": None, "link": False}, {"group": "Camp of crimson", "link": False}]


# Who may see or act is asked of dialogs.permissions. These files compare owners for another reason.
COMPARES_OWNERS = {
    "dialogs/permissions.py": "the rule",
    "dialogs/actions/messages.py": "one's own to pin and to archive; rates count for the owner",
    "dialogs/actions/folders.py": "folders are their owner's",
    "dialogs/actions/forks.py": "whose branch takes the place of its origin",
    "dialogs/live/frames.py": "spares the owner a statement",
    "dialogs/context/spending.py": "a person's budget is spent by the calls of their own dialogs",
    "dialogs/extras/v1/placing.py": "only the owner's key writes by /v1",
    "dialogs/extras/v1/forks.py": "whose answers a newer one takes the place of",
    "dialogs/extras/imports/store.py": "an import is its owner's",
    "dialogs/pages/dialog_page.py": "the menu has what only its owner may do",
    "dialogs/pages/home.py": "the agent that a person chose last",
    "dialogs/pages/sidebar.py": "pinned by its owner; lists of one's own use their index",
    "dialogs/queries/person_export.py": "all that is a person's own",
    "dialogs/views/dialogs.py": "the folders that a dialog may be moved to are its owner's",
    "dialogs/views/questions.py": "the questions of one's own dialogs, of those that one may see",
}


def test_nowhere_else_is_it_asked_whose_a_dialog_is() -> None:
    asked = re.compile(r"\bowner_id [!=]=|\bDialog\.objects\.filter\([^)]*\bowner=|\bdialog__owner(_id)?=")
    results = {
        str(path.relative_to(ROOT)) for path in (ROOT / "dialogs").rglob("*.py") if asked.search(path.read_text())
    }
    assert results == set(COMPARES_OWNERS)
