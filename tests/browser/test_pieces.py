"""What an open tab shows after each event is what a tab that is opened now shows. And settings reach every tab."""

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Opener, answered, send
from tests.dialogs.html_tree import ENTRIES, NOT_ENTRIES, PIECES, elements
from tests.harness.stack import Stack, eventually

ALSO = ("breaking", "badge", "text", "sending-error")


def shown(page: Page) -> dict[str, str]:
    """The pieces as the browser holds them. Which parts are folded open is the reader's own,
    and drawing details too."""
    html = page.evaluate(
        """() => {
            const root = document.documentElement.cloneNode(true);
            for (const open of root.querySelectorAll("[open]")) open.removeAttribute("open");
            for (const marked of root.querySelectorAll("[data-decorated]")) marked.removeAttribute("data-decorated");
            for (const placed of root.querySelectorAll(".settled")) placed.classList.remove("settled");
            for (const classes of root.querySelectorAll("[class='']")) classes.removeAttribute("class");
            root.querySelectorAll("svg").forEach((drawing) => drawing.remove());
            return root.outerHTML;
        }"""
    )
    result = elements(html.replace(' disabled=""', " disabled"))
    return {
        name: text
        for name, text in result.items()
        if name in PIECES + ALSO or (name.startswith(ENTRIES) and not name.startswith(NOT_ENTRIES))
    }


def differences(page: Page, context: BrowserContext) -> dict[str, tuple[str | None, str | None]]:
    fresh_page = context.new_page()
    fresh_page.goto(page.url)
    expect(fresh_page.locator("#connection")).to_have_attribute("data-state", "live")
    old, fresh = shown(page), shown(fresh_page)
    fresh_page.close()
    return {
        name: (old.get(name), fresh.get(name)) for name in old.keys() | fresh.keys() if old.get(name) != fresh.get(name)
    }


def test_an_open_tab_is_a_fresh_tab(
    open_dialog: Opener, page: Page, context: BrowserContext, stack: Stack, person: User, complaints: list[str]
) -> None:
    dialog = open_dialog("asks")

    def same(after: str) -> None:
        result: dict[str, object] = {}

        def none() -> bool:
            result.clear()
            result.update(differences(page, context))
            return not result

        try:
            eventually(none, seconds=30)
        except (AssertionError, TimeoutError):
            raise AssertionError(f"after {after}: {result}") from None

    send(page, "Hello")
    answered(page)
    same("an answer")
    send(page, "Please ask")
    expect(page.locator("#banner")).to_contain_text("Which currency?")
    same("a question")
    page.fill("#text", "EUR")
    page.keyboard.press("Enter")
    answered(page, 3)
    expect(page.locator("#text")).to_have_value("")
    same("its answer")
    with stack.api_as(person) as api:
        connection.close()
        api.post(f"/api/dialogs/{dialog.pk}/reminders", json={"text": "Mind the gap"})
        same("a reminder")
        api.post(f"/api/dialogs/{dialog.pk}/clear", json={"reminder_content": "Go on with step 3."})
        expect(page.locator("#round-2")).to_be_visible()
        same("a clear")
    page.locator("#round-2").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast", has_text="are back")).to_be_visible()
    same("its undo")
    page.get_by_label("More").click()
    page.get_by_role("button", name="Close dialog").wait_for()
    page.on("dialog", lambda question: question.accept())
    page.get_by_role("button", name="Close dialog").click()
    expect(page.locator("#state")).to_have_attribute("data-state", "closed")
    same("the end")


def test_settings_reach_every_open_tab(
    open_dialog: Opener, page: Page, context: BrowserContext, stack: Stack, complaints: list[str]
) -> None:
    open_dialog("short")
    other = context.new_page()
    other.goto(f"{stack.base_url}/settings/")
    other.locator("#main").get_by_label("Dark").check()
    other.locator("section", has_text="Look and notifications").get_by_role("button", name="Save").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(other.locator(".messages")).to_contain_text("Saved")  # the next tick is for the page that comes
    other.get_by_role("link", name="Context display").click()
    other.get_by_label("Show context breaking progress").uncheck()
    other.locator("section", has_text="Context display").get_by_role("button", name="Save").click()
    expect(page.locator("#breaking")).to_have_attribute("data-shown", "no")
