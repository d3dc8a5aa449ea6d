"""The composer and its forms: answers to questions, drafts of each tab, and slow or failed requests."""

import re

from playwright.sync_api import APIResponse, BrowserContext, Page, Route, expect

from dialogs.models import Turn
from tests.browser.conftest import Opener, answered, eventually_on, kept, send
from tests.harness.browser import open_details
from tests.harness.stack import Stack


def test_a_question_is_answered_in_the_composer_and_the_badge_follows(
    open_dialog: Opener, page: Page, context: BrowserContext, stack: Stack, complaints: list[str]
) -> None:
    open_dialog("asks")
    elsewhere = context.new_page()
    messages: list[object] = []

    def note(frame: object) -> None:  # not the method itself: Playwright marks it
        messages.append(frame)

    elsewhere.on("websocket", lambda socket: socket.on("framereceived", note))
    elsewhere.goto(f"{stack.base_url}/models/")
    eventually_on(elsewhere, lambda: messages)  # what is new to it is new after that
    send(page, "Please ask")
    expect(page.locator("#banner")).to_contain_text("Which currency?")
    expect(elsewhere.locator(".toast")).to_contain_text("A question waits")
    expect(elsewhere.locator("#badge")).to_have_text("Needs you 1")
    expect(elsewhere).to_have_title("(1) Models · Dominds")
    waits = page.locator("main").get_by_text(re.compile("wait|needs you", re.I)).filter(visible=True)
    said = waits.evaluate_all("all => all.filter(one => !one.closest('[data-card]')).map(one => one.id)")
    assert said == ["state"] and page.locator(".foot:not(.card-away) [data-card]").count() == 1
    expect(page.locator(".turn-usage")).to_have_count(0)  # no number between cards
    page.fill("#text", "EUR")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Thank you.")).to_be_visible()
    expect(page.locator("#banner")).to_have_text("")
    expect(elsewhere.locator("#badge")).to_have_text("Needs you")
    expect(elsewhere).to_have_title("Models · Dominds")


def test_each_tab_has_a_draft_of_its_own(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    open_dialog("short")
    page.fill("#text", "From the first tab")
    kept(page, "From the first tab")
    second = context.new_page()
    second.goto(page.url)
    expect(second.locator("#text")).to_have_value("")
    second.fill("#text", "From the second tab")
    page.reload()
    expect(page.locator("#text")).to_have_value("From the first tab")
    second.press("#text", "Enter")
    answered(second)
    expect(second.locator("#text")).to_have_value("")
    page.reload()
    expect(page.locator("#text")).to_have_value("From the first tab")
    second.reload()
    expect(second.locator("#text")).to_have_value("")
    address = page.url
    second.close()
    page.close()
    third = context.new_page()
    third.goto(address)
    expect(third.locator("#text")).to_have_value("From the first tab")
    fourth = context.new_page()
    fourth.goto(address)
    expect(fourth.locator("#text")).to_have_value("")


def test_what_is_typed_while_a_message_is_on_its_way_stays(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    dialog = open_dialog("short")
    waiting: list[Route] = []
    sent = f"**/d/{dialog.pk}/messages/"
    page.route(sent, lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright marks it
    send(page, "The first")
    eventually_on(page, lambda: waiting)
    page.locator("#text").press_sequentially(" and then the next")
    waiting.pop().continue_()
    expect(page.locator("#text")).to_have_value("and then the next")
    page.unroute_all()
    page.press("#text", "Enter")
    answered(page, 2)
    expect(page.locator("#text")).to_have_value("")
    texts = Turn.objects.filter(dialog=dialog, role="user").order_by("position").values_list("text", flat=True)
    assert list(texts) == ["The first", "and then the next"]


def test_an_accepted_text_leaves_the_composer_when_the_socket_is_first(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    """By the time the server's word arrives, its pieces are old and the button that sent the text may have gone."""
    open_dialog("asks")
    late: list[tuple[Route, APIResponse]] = []
    page.route(re.compile("/messages/$|/answer/$"), lambda route: late.append((route, route.fetch())))
    for text, then in (("Please ask", "waiting"), ("EUR", "idle")):
        send(page, text)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        expect(page.locator("#state")).to_have_attribute("data-state", then)
        expect(page.locator("#text")).to_have_value(text)
        route, answer = eventually_on(page, lambda: late).pop()
        route.fulfill(response=answer)
        expect(page.locator("#text")).to_have_value("")
        expect(page.locator("#state")).to_have_attribute("data-state", then)
    answered(page, 2)


def test_reminders_survive_typing_and_show_in_the_other_tab(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    open_dialog("short")
    second = context.new_page()
    second.goto(page.url)
    open_details(page)
    page.get_by_text("Add a reminder").click()
    page.fill("#new-reminder", "Mind the gap")
    page.get_by_role("button", name="Add").click()
    expect(second.locator("#reminders-panel")).to_contain_text("Mind the gap")
    expect(page.locator("#reminders-panel")).to_contain_text("Mind the gap")


def test_a_failure_is_told_also_when_its_button_has_gone(open_dialog: Opener, page: Page, stack: Stack) -> None:
    dialog = open_dialog("short")
    held: list[Route] = []
    open_details(page)
    page.route("**/reminders/", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    page.get_by_text("Add a reminder").click()
    page.fill("#new-reminder", "Mind the gap")
    page.get_by_role("button", name="Add", exact=True).click()
    eventually_on(page, lambda: held)
    with stack.api_as(dialog.owner) as api:
        api.post(f"/api/dialogs/{dialog.pk}/reminders", json={"text": "From elsewhere"})
    expect(page.locator("#reminders-panel")).to_contain_text("From elsewhere")
    held.pop().abort()
    expect(page.locator(".toast")).to_have_text("No connection to the server. Nothing was changed.")


def test_a_questions_banner_is_short_while_its_card_is_visible(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    open_dialog("asks")
    page.set_viewport_size({"width": 360, "height": 740})
    for number in (1, 2):
        send(page, f"Go on\n{'line ' * 200}")
        answered(page, number)
    send(page, "Please ask")
    banner, card = page.locator("#banner"), page.locator(".asks")
    link = banner.get_by_role("link", name="Go to the question")
    expect(banner.get_by_role("alert")).to_contain_text("waits for your answer Which currency?", use_inner_text=False)
    expect(card).to_be_in_viewport()
    expect(link).to_be_hidden()
    before = banner.bounding_box()
    page.locator("#transcript").hover()
    page.mouse.wheel(0, -4_000)
    expect(link).to_be_visible()
    after = banner.bounding_box()
    assert before and after and before["height"] < 60 < after["height"]
    link.press("Enter")
    expect(card).to_be_in_viewport()
    expect(link).to_be_hidden()
    page.set_viewport_size({"width": 640, "height": 400})  # 1280 to 800 at a zoom of 200 %
    transcript = page.locator("#transcript").bounding_box()
    assert transcript and transcript["height"] > 180
    expect(card).to_be_in_viewport()
    page.fill("#text", "EUR")
    page.keyboard.press("Enter")
    expect(banner).to_have_text("")


def test_an_answer_links_to_its_question_which_scrolls_and_is_marked(
    open_dialog: Opener, page: Page, stack: Stack, complaints: list[str]
) -> None:
    dialog = open_dialog("asks")
    send(page, "Please ask")
    expect(page.locator("#banner")).to_contain_text("Which currency?")
    page.fill("#text", "EUR")
    page.keyboard.press("Enter")
    answered(page, 2)
    for number in range(3, 6):
        send(page, f"Go on\n{'line ' * 400}")
        answered(page, number)
    asking = page.locator(".turn", has=page.locator(".asks"))
    expect(asking).not_to_be_in_viewport()
    page.get_by_role("link", name="Go to the question").click()
    expect(asking).to_be_in_viewport()
    assert asking.evaluate("turn => turn.matches(':target')")
    seq = dialog.turns.filter(role="assistant").earliest("seq").seq
    page.goto(f"{stack.base_url}/models/")
    page.goto(f"{stack.base_url}/d/{dialog.pk}/#turn-{seq}")
    expect(asking).to_be_in_viewport()
