"""The context over time in a browser: by pointer, by keyboard, on a narrow page, and beside a conversation."""

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, expect

from dialogs.actions import messages
from tests.browser.conftest import LogIn
from tests.harness.browser import open_details
from tests.harness.stack import Stack, eventually

NOTES = "Week {} notes: the parser was rewritten, and exports were checked against the old ones. " * 30


def test_any_request_is_reached_by_keys_and_pointer(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    dialog = messages.create_dialog(person, "plans")
    connection.close()
    with stack.api_as(person) as api:
        for number in range(7):
            api.post(f"/api/dialogs/{dialog.pk}/messages", json={"text": NOTES.replace("{}", str(number))})
            eventually(lambda: api.get(f"/api/dialogs/{dialog.pk}").json()["state"] == "idle", seconds=60)
        calls = [moment["generation"] for moment in api.get(f"/api/dialogs/{dialog.pk}/timeline").json()]
        every = api.get(f"/api/dialogs/{dialog.pk}/generations").json()
        last = 1 + sum(call["id"] < calls[-1] for call in every)
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/timeline/")
    expect(page.locator("h1")).to_have_text("Context")
    columns, moment = page.locator(".timeline a"), page.locator("#moment")
    expect(columns).to_have_count(len(calls) + 1)
    expect(moment.locator("h2")).to_have_text("What it would see now")
    page.locator(".timeline").focus()
    page.keyboard.press("ArrowLeft")
    expect(moment.locator("h2")).to_have_text(f"Call {last}, kept")
    expect(moment).to_contain_text("Equal to what was sent, byte for byte.")
    assert page.url.endswith(f"/context/?at={calls[-1]}"), "the address is a link to the moment"
    columns.first.click(force=True)
    expect(moment.locator("h2")).to_have_text("Call 1, kept")
    moment.locator("summary", has_text="User").click()
    expect(moment.locator(".piece[open] .plain")).to_contain_text("Week 0 notes")
    page.get_by_label("Compare with").select_option(str(calls[-1]))
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#moment h3")).to_have_text(f"From call 1 to call {last}")
    page.emulate_media(forced_colors="active")
    colours = page.locator("#moment .kind").evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
    assert len(set(colours)) > 2, "parts keep their colours where the system has its own"
    page.emulate_media(forced_colors="none")
    page.set_viewport_size({"width": 360, "height": 700})
    for address in ("", f"?at={calls[-1]}", f"?at={calls[-1]}&with={calls[0]}"):
        page.goto(f"{stack.base_url}/d/{dialog.pk}/context/{address}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address

    page.set_viewport_size({"width": 1280, "height": 800})
    dialog.generations.filter(pk=calls[-1]).update(recalled=[1])
    connection.close()
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    open_details(page)
    expect(page.locator("#side .timeline a")).to_have_count(len(calls) + 1)
    page.locator("#side .timeline").focus()
    page.keyboard.press("Home")
    expect(page.locator("#side #moment h2")).to_have_text("Call 1, kept")
    assert page.url.endswith(f"/d/{dialog.pk}/"), "beside a conversation its address stays"
    page.locator(".turn").last.get_by_text("recalled 1 earlier passage").click()
    page.locator(".recalled-list").get_by_role("button", name="Pin").click()
    expect(page.locator(".recalled-list").get_by_role("button", name="Unpin")).to_be_visible()

    page.emulate_media(forced_colors="active")
    marks = page.locator(".connection .dot, .turn .level-mark, .turn .state-dot, .ring > svg, #strip svg")
    shown = marks.evaluate_all("all => all.map(e => [e.className, getComputedStyle(e).forcedColorAdjust])")
    assert len(shown) > 3 and not [name for name, kept in shown if kept != "none"], shown
    foot = page.locator(".turn-assistant .turn-foot").last
    inside = "foot => foot.getBoundingClientRect().x >= foot.parentElement.getBoundingClientRect().x"
    assert foot.evaluate(inside), "buttons have borders then, which are not cut off"
