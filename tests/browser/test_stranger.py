"""The first two minutes of a stranger: the Guide shows what only this product has."""

import re
import time

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.conftest import LogIn, check_axe, send
from tests.harness.stack import Stack

SECONDS, ACTS = 120, 12


def test_a_stranger_sees_it_all_in_two_minutes_and_twelve_acts(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/?agent=demo")
    began, acts = time.monotonic(), 0
    last, rests = page.locator(".turn-assistant").last, page.locator("#state[data-state=idle]")

    def say(text: str) -> None:
        nonlocal acts
        send(page, text)
        acts += 1

    def click(role: str, name: str | re.Pattern[str]) -> None:
        nonlocal acts
        page.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]
        acts += 1

    click("button", "Show me around")
    click("button", "Send")
    expect(last).to_contain_text("Say go on")
    say("go on")
    click("button", re.compile("my boat is called Kittiwake"))  # a question
    expect(last).to_contain_text("day 1")
    expect(rests).to_be_attached()
    for shown in ("day 2", "Look above this answer"):
        say("go on")
        expect(last).to_contain_text(shown)
        expect(rests).to_be_attached()
    expect(page.locator(".run-line")).to_contain_text("removed")  # a rewrite
    say("What did I ask you to remember?")
    expect(last).to_contain_text("you said: “Remember: my boat is called Kittiwake”")
    expect(rests).to_be_attached()
    click("button", re.compile("Context health"))
    click("button", "Details")
    expect(page.locator("#side #moment")).to_contain_text("What it would see now")  # what the model sees
    expect(page.locator("#side #moment .piece").first).to_be_visible()
    page.locator(".run-line").get_by_role("button", name="Undo").click()
    acts += 1
    expect(page.locator(".run-line")).to_contain_text("undone")
    say("go on")
    expect(page.locator("#team-panel")).to_contain_text("1 side dialog")
    expect(last).to_contain_text("Mindful has answered")
    page.get_by_text("Who did what").click()
    acts += 1
    expect(page.locator(".team-member")).to_contain_text("Mindful")  # a team, with the colleague's own gauge
    expect(page.locator(".team-member .team-level")).to_have_attribute("data-level", "healthy")
    assert (acts <= ACTS, time.monotonic() - began < SECONDS) == (True, True), acts

    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark")
    summary = page.locator("#team-panel summary")
    summary.press("Enter")
    summary.press("Enter")  # the panel folds and unfolds by keys
    page.keyboard.press("Tab")
    member = page.locator(".team-member a")
    expect(member).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    check_axe(page)
    page.evaluate("document.getElementById('team-panel').dataset.old = ''")
    with stack.api_as(person) as api:
        api.post(f"/api/dialogs/{page.url.rstrip('/').rpartition('/')[2]}/reminders", json={"text": "Mind the gap"})
    expect(page.locator("#team-panel[data-old]")).to_have_count(0)  # it came anew
    expect(member).to_be_focused()
