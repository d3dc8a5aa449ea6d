"""The timeline of a dialog in a browser: by pointer, by keyboard, and on a narrow page."""

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, expect

from dialogs.actions import messages
from tests.browser.conftest import LogIn
from tests.harness.stack import Stack, eventually

NOTES = "Week {} notes: the parser was rewritten, and exports were checked against the old ones. " * 30


def test_a_timeline_leads_to_any_request(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    dialog = messages.create_dialog(person, "plans")
    connection.close()
    with stack.api_as(person) as api:
        for number in range(7):
            api.post(f"/api/dialogs/{dialog.pk}/messages", json={"text": NOTES.replace("{}", str(number))})
            eventually(lambda: api.get(f"/api/dialogs/{dialog.pk}").json()["state"] == "idle", seconds=60)
        calls = [moment["generation"] for moment in api.get(f"/api/dialogs/{dialog.pk}/timeline").json()]
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/timeline/")
    newest = page.locator("#moment")
    expect(newest).to_contain_text(f"Call {calls[-1]}, kept")
    drawing, words = page.locator(".figure .plot").bounding_box(), newest.bounding_box()
    assert drawing is not None and words is not None
    assert drawing["width"] == 32 * len(calls), "few columns are not stretched"
    assert words["x"] > drawing["x"] + drawing["width"] and words["y"] < drawing["y"] + drawing["height"], "but beside"
    columns = page.locator(".timeline a")
    expect(columns).to_have_count(len(calls))
    columns.first.hover(force=True)
    expect(page.locator("#moment")).to_contain_text(f"Call {calls[0]}, kept")
    page.locator(".timeline").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#moment")).to_contain_text(f"Call {calls[-1]}, kept")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Request of one call")
    expect(page.locator(".message.success")).to_have_text("Equal to what was sent, byte for byte.")
    page.fill("#with", str(calls[0]))
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text("Two requests")
    page.set_viewport_size({"width": 360, "height": 700})
    for address in ("timeline/", f"calls/{calls[-1]}/", f"calls/{calls[-1]}/compare/?with={calls[0]}"):
        page.goto(f"{stack.base_url}/d/{dialog.pk}/{address}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
