"""The ring and its details, questions of a suspension, and pruning by hand."""

from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dialogs.models import Question, Turn
from remediation.models import RemediationRun
from tests.browser.conftest import LogIn, Opener, answered, send
from tests.dialogs.factories import UserFactory, make_operator
from tests.harness.browser import open_details
from tests.harness.stack import Stack, eventually


def test_the_ring_goes_green_yellow_red_and_gray(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    open_dialog("lights")
    ring = page.locator("#ring")
    for times, (message, level, words) in enumerate(
        [
            ("none", "unknown", "unknown · usage not reported"),
            ("50", "healthy", "50 tok · under 1 % of 128,000 · Healthy"),
            ("100001", "caution", "100,001 tok · 78 % of 128,000 · Caution"),
            ("115201", "critical", "115,201 tok · 90 % of 128,000 · Critical"),
        ],
        start=1,
    ):
        send(page, message)
        answered(page, times)
        expect(ring).to_have_attribute("data-level", level)
        expect(ring).to_contain_text(words)
    expect(page.locator("#announcer")).to_contain_text("critical")
    colours = Image.open(BytesIO(page.locator("#strip").screenshot())).convert("RGB").getcolors() or []
    assert len(colours) > 2 and (0, 0, 0) not in {colour for _, colour in colours}, "the same parts below the header"
    ring.click()
    popover = page.locator("#context-popover")
    expect(popover.locator(".meter-lead")).to_have_text("The context is full: make room now.")
    expect(popover.get_by_text("Critical above 115,200 tokens.")).to_be_hidden()  # numbers are a click away
    popover.locator("summary", has_text="115,201 tok").click()
    expect(popover.get_by_text("Critical above 115,200 tokens.")).to_be_visible()


def test_the_ring_and_the_details_are_opened_and_closed_by_keys(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    open_dialog("short")
    ring, popover, side = page.locator("#ring-button"), page.locator("#context-popover"), page.locator("#side")
    expect(side).to_be_hidden()
    ring.press("Enter")
    expect(popover).to_be_visible()
    page.keyboard.press("Tab")
    expect(popover.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(popover).to_be_hidden()
    expect(ring).to_be_focused()
    page.keyboard.press("c")
    popover.get_by_role("button", name="Details").press("Enter")
    expect(popover).to_be_hidden()
    expect(side).to_be_visible()
    page.reload()
    expect(side).to_be_visible()
    ring.focus()
    page.keyboard.press("d")
    expect(side).to_be_hidden()
    page.set_viewport_size({"width": 360, "height": 740})
    ring.press("Enter")
    popover.get_by_role("button", name="Details").press("Enter")
    expect(side).to_be_visible()
    page.keyboard.press("Escape")
    expect(side).to_be_hidden()
    expect(ring).to_be_focused()


def test_an_operator_resolves_and_the_open_page_comes_back_to_life(
    open_dialog: Opener, page: Page, browser: Browser, stack: Stack, log_in: LogIn, complaints: list[str]
) -> None:
    dialog = open_dialog("refuses")
    send(page, "one")
    answered(page)
    send(page, "two")
    expect(page.locator("#state")).to_have_attribute("data-state", "suspended")
    expect(page.locator("#text")).to_be_disabled()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    expect(page.locator("#banner")).to_contain_text("An operator decides how it goes on")
    question = Question.objects.get(dialog=dialog)
    operator = browser.new_context()
    log_in(operator, make_operator())
    desk = operator.new_page()
    desk.goto(f"{stack.base_url}/q4h/{question.pk}/")
    expect(desk.locator("tbody tr")).to_have_count(3)
    desk.get_by_label("Close the dialog").check()
    desk.get_by_role("button", name="Apply").click()
    expect(page.locator("#state")).to_have_attribute("data-state", "closed")
    expect(page.locator("#banner")).to_contain_text("Closed")
    operator.close()


@pytest.mark.parametrize(("exit_taken", "then"), [("clear", "idle"), ("retry", "suspended")])
def test_an_exit_in_the_admin_reaches_the_open_page(
    open_dialog: Opener, page: Page, browser: Browser, stack: Stack, log_in: LogIn, exit_taken: str, then: str
) -> None:
    """The model refuses as long as it is this one and answers 950 of 1,000 tokens, so a retry is refused again."""
    dialog = open_dialog("relents")
    send(page, "one")
    answered(page)
    send(page, "two")
    expect(page.locator("#state")).to_have_attribute("data-state", "suspended")
    question = Question.objects.get(dialog=dialog)
    operator = browser.new_context()
    log_in(operator, UserFactory.create(is_staff=True, is_superuser=True))
    desk = operator.new_page()
    desk.goto(f"{stack.base_url}/admin/dialogs/question/")  # in a window of 1,280 px
    expect(desk.locator(".field-short_text").first).to_be_visible()
    assert desk.locator("#changelist .results").evaluate("table => table.scrollWidth <= table.clientWidth")
    desk.goto(f"{stack.base_url}/admin/dialogs/question/{question.pk}/change/")
    desk.locator(f"input[name=action][value={exit_taken}]").check()
    if exit_taken == "clear":
        desk.get_by_label("Hand-over note (re-entry package)", exact=True).fill("Goal: answer two. Fresh.")
    desk.get_by_role("button", name="Apply").click()
    eventually(lambda: Question.objects.get(pk=question.pk).action == exit_taken)
    if exit_taken == "retry":
        eventually(lambda: Question.objects.filter(dialog=dialog).count() == 2, seconds=30)
    expect(page.locator("#state")).to_have_attribute("data-state", then)
    if then == "idle":
        assert Turn.objects.get(dialog=dialog, text="two").status == "answered"
        expect(page.locator("#text")).to_be_enabled()
    operator.close()


def test_prune_now_prunes_once_on_a_double_click_and_undoes(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    dialog = open_dialog("fills")
    second = context.new_page()
    second.goto(page.url)
    open_details(page)
    open_details(second)
    panel = page.locator("#context-panel")
    for times in range(1, 5):  # four answers are more than 80% of the limit, a fifth has no room
        send(page, "More")
        answered(page, times)
    for either in (page, second):
        expect(either.locator("#context-panel")).to_contain_text("exceeds 80%")
    before = RemediationRun.objects.filter(dialog=dialog).count()
    page.on("dialog", lambda question: question.accept())
    panel.get_by_role("button", name="Prune Context Now").dblclick()
    expect(page.locator(".toast")).to_contain_text("Context pruned:")
    expect(page.locator(".run-line")).to_have_count(1)
    expect(second.locator(".run-line")).to_have_count(1)
    expect(panel).not_to_contain_text("exceeds 80%")
    expect(page.locator("#ring")).to_contain_text("awaiting report")
    assert RemediationRun.objects.filter(dialog=dialog).count() == before + 1
    page.locator(".run-line").get_by_role("button", name="Undo").click()
    expect(second.locator(".run-line")).to_contain_text("undone")
    expect(panel).to_contain_text("exceeds 80%")
