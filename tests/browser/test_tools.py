"""A slow tool on the page: how long it runs, what it reports, and its end by a person.
The tool is one of a real MCP server."""

import re
import time

from playwright.sync_api import Page, expect

from dialogs.models import Question, Turn
from tests.browser.conftest import SHIFTS, Opener, answered, assert_nothing_moved, check_axe, send
from tests.harness.stack import Stack, eventually

# What the first tool has shown from now on, and where another is and since when.
LINES = """() => {
    window.lines = new Set();
    const note = () => window.lines.add(document.querySelector(".tool .tool-line")?.textContent);
    new MutationObserver(note).observe(
      document.getElementById("entries"), { childList: true, subtree: true, characterData: true });
}"""
STEP_AND_SECONDS = """card => [
    Number(card.querySelector(".tool-line").textContent.match(/(\\d+) of 60/)[1]),
    parseInt(card.querySelector(".elapsed").textContent || "0"),
]"""


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
    page.evaluate(LINES)
    expect(first.locator(".elapsed")).to_have_text(re.compile(r"^[1-5] s$"))
    eventually(lambda: page.evaluate("window.lines.size") > 3)  # it is live
    assert_nothing_moved(page, 0.0005)  # of the text beside it
    other = page.context.new_page()  # a page that comes later has the newest line as well
    other.goto(page.url)
    expect(other.locator(".tool-line").first).to_contain_text("step")
    other.close()
    second = page.locator(".turn-assistant .tool[data-status=pending]")
    expect(second.locator(".tool-line")).to_contain_text("of 60", timeout=20_000)  # the first has ended
    step, seconds = second.evaluate(STEP_AND_SECONDS)
    # Since it runs, in steps of half a second, not since it was called: four seconds before that.
    assert seconds < step / 2 + 3
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
    expect(page.locator("#activity")).to_have_text("")


def test_a_person_allows_a_call_that_may_change_something(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    """Each way: once, refused in the composer with a reason, answered in its place, and for the whole dialog."""
    page.set_viewport_size({"width": 360, "height": 740})
    dialog = open_dialog("notes")
    send(page, "Note the boat")
    asks = page.locator(".asks[data-state=open]")
    expect(asks).to_contain_text("Allow desk_remember to run with these arguments?")
    expect(asks).to_contain_text('"text": "the boat leaves at nine"')
    expect(page.locator(".tool")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    check_axe(page)
    asks.get_by_text("Change the arguments").click()
    asks.get_by_role("textbox").fill('{"text": "the boat leaves at ten"}')
    asks.get_by_role("button", name="Allow", exact=True).click()
    answered(page, 2)
    expect(asks).to_have_count(0)
    expect(page.locator(".tool[data-status=ok] summary")).to_contain_text("the boat leaves at ten")
    page.locator(".tool summary").click()
    expect(page.locator(".tool-body")).to_contain_text(re.compile(rf"Allowed by {dialog.owner},\s.*Go to the question"))
    send(page, "Note the train")
    expect(asks).to_be_visible()
    page.fill("#text", "It goes by bus.")
    page.get_by_role("button", name="Refuse with this reason").click()
    answered(page, 4)
    expect(page.locator(".tool[data-status=refused] .tool-status")).to_have_text("refused")
    refused = Turn.objects.get(dialog=dialog, role="tool", status="error")
    assert refused.text.endswith("a person refused this call. Do not repeat it as it was. Their words: It goes by bus.")
    send(page, "Note the tram")
    asks.get_by_text("Answer instead of the tool").click()
    expect(asks).to_contain_text("The tool does not run. The agent gets these words as its result")
    asks.get_by_role("textbox", name="Result").fill("It stands in the paper book.")
    asks.get_by_role("button", name="Give this result").click()
    answered(page, 6)
    card = page.locator(".tool", has_text="answered by a person")
    card.locator("summary").click()
    expect(card).to_contain_text(f"Answered instead of the tool by {dialog.owner}")
    expect(card.locator(".tool-body")).to_contain_text("It stands in the paper book.")
    send(page, "Note the plane")
    asks.get_by_role("button", name="Always allow in this dialog").click()
    answered(page, 8)
    send(page, "Note the bus")
    answered(page, 10)
    expect(page.locator(".tool[data-status=ok]")).to_have_count(4)
    assert Question.objects.filter(dialog=dialog).count() == 4


def test_a_call_is_allowed_by_keys_alone(open_dialog: Opener, page: Page, stack: Stack, complaints: list[str]) -> None:
    """From the composer, which has the focus, and from the inbox."""
    dialog = open_dialog("notes")
    allow = page.locator(".asks[data-state=open]").get_by_role("button", name="Allow", exact=True)
    send(page, "Note the boat")
    expect(allow).to_be_visible()
    page.locator("#text").focus()
    for _ in range(15):
        page.keyboard.press("Shift+Tab")
        if allow.evaluate("button => button === document.activeElement"):
            break
    expect(allow).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_focused()
    answered(page, 2)
    send(page, "Note the train")
    expect(allow).to_be_visible()
    page.goto(f"{stack.base_url}/q4h/")
    page.keyboard.press("a")
    expect(page.locator("#answer")).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    expect(page.locator("#reader").get_by_role("button", name="Allow", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_contain_text("Nothing waits.")
    eventually(
        lambda: list(Turn.objects.filter(dialog=dialog, role="tool").values_list("status", flat=True)) == ["ok"] * 2
    )


def test_what_is_typed_while_a_call_waits_is_a_message(open_dialog: Opener, page: Page) -> None:
    dialog = open_dialog("notes")
    send(page, "Note the boat")
    asks = page.locator(".asks[data-state=open]")
    expect(asks).to_be_visible()
    page.fill("#text", "And what about the train?")
    page.locator("#text").press("Enter")
    eventually(lambda: Turn.objects.filter(dialog=dialog, role="user", text="And what about the train?").exists())
    expect(asks).to_be_visible()
    assert not Turn.objects.filter(dialog=dialog, role="tool", status="error").exists(), "nothing was refused"
    asks.get_by_role("button", name="Allow", exact=True).click()
    eventually(lambda: not Turn.objects.filter(dialog=dialog, status="queued").exists())


def test_refusing_without_a_reason(open_dialog: Opener, page: Page) -> None:
    dialog = open_dialog("notes")
    send(page, "Note the boat")
    asks = page.locator(".asks[data-state=open]")
    expect(asks).to_be_visible()
    page.fill("#text", "Allow!")
    page.get_by_role("button", name="Refuse with this reason").click()
    expect(page.get_by_text("These words allow the call, and the button refuses it.")).to_be_visible()
    page.fill("#text", "")
    asks.get_by_role("button", name="Refuse").click()
    answered(page, 2)
    assert Turn.objects.get(dialog=dialog, role="tool").text.endswith("Do not repeat it as it was.")
