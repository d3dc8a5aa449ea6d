"""A slow tool on the page: how long it runs, what it reports, and its end by a person. The tool is one of a real MCP server."""

import re
import time

from playwright.sync_api import Page, expect

from dialogs.models import Turn
from tests.browser.conftest import SHIFTS, Opener, assert_nothing_moved, send
from tests.harness.stack import eventually


def test_a_running_tool_says_how_long_and_what_and_is_stopped(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    dialog = open_dialog("counts")
    send(page, "Count")
    cards = page.locator(".tool")
    expect(cards).to_have_count(2)
    first, second = cards.nth(0), cards.nth(1)
    expect(first.locator(".tool-line")).to_have_text(re.compile(r"^step \d of 8, Authorization: Bearer \[redacted\]$"))
    expect(second).to_contain_text("waiting")
    page.evaluate(SHIFTS)
    shown = set()
    for _ in range(6):
        shown.add(first.locator(".tool-line").text_content())
        time.sleep(0.3)
    assert len(shown) > 2  # it is live
    expect(first.locator(".elapsed")).to_have_text(re.compile(r"^[1-5] s$"))
    assert_nothing_moved(page, 0.0005)  # of the text beside it
    other = page.context.new_page()  # a page that comes later has the newest line as well
    other.goto(page.url)
    expect(other.locator(".tool-line").first).to_contain_text("step")
    other.close()
    second = page.locator(".turn-assistant .tool[data-status=pending]")
    expect(second.locator(".tool-line")).to_contain_text("of 60", timeout=20_000)  # the first has ended
    expect(second.locator(".elapsed")).to_have_text(re.compile(r"^[0-2] s$"))  # since it runs, not since it was called
    stop = page.get_by_role("button", name="Stop desk_count, and with it the answer")
    stop.focus()
    pressed = time.monotonic()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_attribute("data-state", re.compile("idle|failed"))
    assert time.monotonic() - pressed < 5  # of the thirty seconds that it would have run
    expect(page.locator(".tool[data-status=unknown]")).to_have_count(1)
    texts = list(Turn.objects.filter(dialog=dialog, role="tool").order_by("seq").values_list("status", "text"))
    assert texts[0] == ("ok", "counted to 8") and texts[1][0] == "unknown" and "A person pressed stop" in texts[1][1]
    assert not Turn.objects.filter(dialog=dialog, text__contains="step").exists()
    eventually(lambda: page.locator("#activity").text_content() == "")
