"""The chip that says what came back into a request, the list behind it, and a person's decisions. No browser."""

import pytest

from dialogs.actions import rewrite_requests
from dialogs.models import Dialog, Generation, RecallChoice
from dialogs.runtime.driver import drive
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "The <b>hives</b> of my aunt stand behind the old mill."


@pytest.fixture
def dialog(script: Script) -> Dialog:
    """One whose newest answer followed a request that brought turns back."""
    script({"text": "Noted."})
    dialog = make_dialog()
    send(dialog, FACT)
    rewrite_requests.clear(dialog.pk, "Go on.", dialog.owner)
    drive(dialog.pk)
    send(dialog, "Where do the hives stand?")
    return dialog


def newest(dialog: Dialog) -> Generation:
    return dialog.generations.latest("pk")


def test_the_chip_leads_to_what_came_back_with_its_words_marked(dialog: Dialog) -> None:
    browser, address = browser_of(dialog.owner), f"/d/{dialog.pk}/recalled/{newest(dialog).pk}/"
    page = in_one_line(browser.get(f"/d/{dialog.pk}/").content.decode())
    assert f"recalled {len(newest(dialog).recalled)} earlier passages" in page
    assert page.count("earlier passage") == 1, "the first answer recalled nothing"
    assert f'href="{address}"' in page
    shown = in_one_line(browser.get(address).content.decode())
    assert "<!doctype html>" in shown.lower()
    assert "&lt;b&gt;<mark>hives</mark>&lt;/b&gt;" in shown
    assert "Turn 1</a>" in shown and "#turn-1" in shown
    assert "matches hives, stand" in shown
    assert "stands beside a match" in shown, "the answer behind it"
    piece = in_one_line(browser.get(address, headers=HTMX).content.decode()).strip()
    assert piece.startswith("<ol") and "<mark>hives</mark>" in piece


def test_a_turn_is_pinned_dismissed_and_neither_by_plain_forms(dialog: Dialog) -> None:
    browser, address = browser_of(dialog.owner), f"/d/{dialog.pk}/recalled/{newest(dialog).pk}/"
    for choice, word in (("pinned", "Unpin"), ("dismissed", "Allow again")):
        answer = browser.post(f"{address}1/", {"choice": choice}, follow=True)
        assert word in in_one_line(answer.content.decode())
        assert RecallChoice.objects.get(dialog=dialog, seq=1).choice == choice
    send(dialog, "Where do the hives stand, again?")
    assert 1 not in newest(dialog).recalled
    assert "> Pin <" in in_one_line(browser.post(f"{address}1/", {"choice": ""}, headers=HTMX).content.decode())
    assert not RecallChoice.objects.exists()


def test_what_cannot_be_chosen_is_refused_and_strangers_find_nothing(dialog: Dialog) -> None:
    address = f"/d/{dialog.pk}/recalled/{newest(dialog).pk}/"
    browser, stranger = browser_of(dialog.owner), browser_of(UserFactory.create())
    assert browser.post(f"{address}1/", {"choice": "loved"}, headers=HTMX).status_code == 400
    assert browser.post(f"{address}999/", {"choice": "pinned"}, headers=HTMX).status_code == 404
    assert browser.get(f"/d/{dialog.pk}/recalled/999999/").status_code == 404
    assert stranger.get(address).status_code == 404
    assert stranger.post(f"{address}1/", {"choice": "pinned"}).status_code == 404
    assert not RecallChoice.objects.exists()
    assert browser.get(f"{address}1/").status_code == 405


def test_a_person_finds_passages_and_is_led_to_their_place(dialog: Dialog) -> None:
    browser, stranger = browser_of(dialog.owner), browser_of(UserFactory.create())
    here, everywhere = f"/d/{dialog.pk}/find/", "/find/"
    assert f'href="{here}"' in in_one_line(browser.get(f"/d/{dialog.pk}/").content.decode())
    assert f'href="{everywhere}?q=aunt"' in in_one_line(browser.get("/dialogs/?q=aunt").content.decode())
    for address in (here, everywhere):
        shown = in_one_line(browser.get(address, {"q": "my aunt"}).content.decode())
        assert "&lt;b&gt;hives&lt;/b&gt; of my <mark>aunt</mark> stand" in shown
        assert f'href="/d/{dialog.pk}/#turn-1"' in shown
        assert ("Next to it: Noted." in shown) is (address == here), (
            "of all dialogs only turns that hold a word are read"
        )
        assert "No message has these words." in in_one_line(browser.get(address, {"q": "zebra"}).content.decode())
        assert "No message has" not in in_one_line(browser.get(address).content.decode())
    assert stranger.get(here, {"q": "aunt"}).status_code == 404
    assert "aunt</mark>" not in in_one_line(stranger.get(everywhere, {"q": "aunt"}).content.decode())


def test_the_archive_page_marks_the_words_of_a_search(dialog: Dialog) -> None:
    run = dialog.remediations.create(
        round_number=2,
        policy="breaking",
        reason="test",
        est_before=2,
        est_after=1,
        base_position=1,
        view=[],
        removed=[],
    )
    dialog.removed_units.create(
        run=run, unit_id="u1", kind="message", role="user", est_tokens=1, text="Three <i>storks</i> sleep."
    )
    browser = browser_of(dialog.owner)
    shown = in_one_line(browser.get(f"/d/{dialog.pk}/context/?q=stork").content.decode())
    assert "&lt;i&gt;<mark>storks</mark>&lt;/i&gt;" in shown
    dialog.removed_units.create(
        run=run,
        unit_id="u2",
        kind="message",
        role="assistant",
        est_tokens=1,
        text="## Geese\nThey **sleep** in `reeds`.",
    )
    shown = in_one_line(browser.get(f"/d/{dialog.pk}/context/?q=geese").content.decode())
    assert "<mark>Geese</mark> They sleep in reeds." in shown
    assert "Nothing in the archive" in in_one_line(browser.get(f"/d/{dialog.pk}/context/?q=zebra").content.decode())
