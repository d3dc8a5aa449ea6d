"""Search through ``/api``: a dialog, all dialogs of the caller, the archive; and never what belongs to others."""

import pytest

from dialogs.actions import messages
from dialogs.context.retrieval import search
from dialogs.models import Dialog
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(script: Script) -> Caller:
    script({"text": "Noted."})
    return Caller(UserFactory.create())


def dialog_with(caller: Caller, *texts: str) -> Dialog:
    dialog = messages.create_dialog(caller.owner, AgentFactory.create().pk, "Birds")
    send(dialog, *texts)
    return dialog


def test_a_hit_says_where_it_stands_and_which_words_matched(caller: Caller) -> None:
    dialog = dialog_with(caller, "The heron nests in Larch Street.", "And the stork?")
    for path in (f"/dialogs/{dialog.pk}/search", "/search"):
        best, *_ = caller.get(f"{path}?q=where+do+herons+nest")
        assert (best["dialog"], best["title"], best["seq"]) == (str(dialog.pk), "Birds", 1)
        assert [best["text"][start:end] for start, end in best["marks"]] == ["heron", "nests"]
    assert caller.get(f"/dialogs/{dialog.pk}/search?q=herons")[0]["beside"][0]["seq"] == 2


def test_nobody_searches_what_belongs_to_another(caller: Caller, script: Script) -> None:
    dialog = dialog_with(caller, "The heron nests in Larch Street.")
    stranger, staff = Caller(UserFactory.create()), Caller(UserFactory.create(is_staff=True))
    assert code_of(stranger("GET", f"/dialogs/{dialog.pk}/search?q=heron")) == (404, "not_found")
    assert code_of(stranger("GET", f"/dialogs/{dialog.pk}/archive?q=heron")) == (404, "not_found")
    assert stranger.get("/search?q=heron") == []
    assert staff.get("/search?q=heron") == [], "one's own dialogs, for staff too"


def test_a_query_and_its_hits_are_bounded(caller: Caller) -> None:
    dialog = dialog_with(caller, "so")
    for query in (f"?q={'x' * 3_000}", "?q=x&limit=0", "?q=x&limit=1000"):
        assert code_of(caller("GET", f"/dialogs/{dialog.pk}/search{query}")) == (400, "invalid"), query
    assert caller.get("/search?q=zebra") == caller.get("/search") == []


def test_an_answer_says_whether_older_messages_were_looked_at(caller: Caller) -> None:
    dialog = dialog_with(caller, "The heron nests in Larch Street.")

    def searched(path: str) -> str:
        caller.get(path)
        return str(caller.headers["X-Dominds-Searched"])

    assert searched("/search?q=heron") == searched(f"/dialogs/{dialog.pk}/search?q=heron") == "all"
    Dialog.objects.filter(pk=dialog.pk).update(last_position=search.NEWEST_TURNS + 9)  # as one that long has
    assert (searched("/search?q=heron"), searched("/search?q=heron&all=true")) == ("newest", "all")
    described = caller.get("/openapi.json")["paths"]["/api/search"]["get"]
    assert "X-Dominds-Searched" in described["responses"]["200"]["headers"]


def test_prompts_beside_a_conversation_are_not_found_beside_it(caller: Caller) -> None:
    dialog = dialog_with(caller, "The heron nests in Larch Street.")
    prompt = dialog_with(caller, "Generate a title for this conversation: The heron nests in Larch Street.")
    Dialog.objects.filter(pk=prompt.pk).update(origin=Dialog.Origin.BACKGROUND)
    for query in ("?q=heron", "?q=heron&all=true"):
        assert {row["dialog"] for row in caller.get(f"/search{query}")} == {str(dialog.pk)}
    assert caller.get(f"/dialogs/{prompt.pk}/search?q=heron"), "who names it finds it"
