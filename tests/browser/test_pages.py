"""Everything else that people do in a browser: health, questions, narrow screens, keys, no scripts at all."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import APIResponse, Browser, BrowserContext, Page, Route, expect

from dialogs.actions import messages
from dialogs.models import Dialog, Question, Turn
from remediation.models import RemediationRun
from tests.browser.conftest import LogIn, answered, send
from tests.dialogs.factories import UserFactory, make_operator
from tests.harness.browser import open_details
from tests.harness.stack import Stack, eventually

Opener = Callable[[str], Dialog]


def test_the_ring_goes_green_yellow_red_and_gray(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    open_dialog("lights")
    ring = page.locator("#ring")
    for times, (message, level, words) in enumerate(
        [
            ("none", "unknown", "unknown · usage not reported"),
            ("50", "healthy", "50 tok · 0 % of 128,000 · Healthy"),
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


def test_a_question_is_answered_in_the_composer_and_the_badge_follows(
    open_dialog: Opener, page: Page, context: BrowserContext, stack: Stack, complaints: list[str]
) -> None:
    open_dialog("asks")
    elsewhere = context.new_page()
    messages: list[object] = []
    elsewhere.on("websocket", lambda socket: socket.on("framereceived", lambda frame: messages.append(frame)))  # noqa: PLW0108 - Playwright marks it
    elsewhere.goto(f"{stack.base_url}/models/")
    eventually(lambda: (elsewhere.wait_for_timeout(20), messages)[1])  # what is new to it is new after that
    send(page, "Please ask")
    expect(page.locator("#banner")).to_contain_text("Which currency?")
    expect(elsewhere.locator(".toast")).to_contain_text("A question waits")
    expect(elsewhere.locator("#badge")).to_have_text("(1) Needs you")
    expect(elsewhere).to_have_title("(1) Models · Dominds")
    page.fill("#text", "EUR")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Thank you.")).to_be_visible()
    expect(page.locator("#banner")).to_have_text("")
    expect(elsewhere.locator("#badge")).to_have_text("Needs you")
    expect(elsewhere).to_have_title("Models · Dominds")


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


@pytest.mark.parametrize(
    ("exit_taken", "then"),
    [
        ("clear", "idle"),
        ("accept_draft", "idle"),
        ("retry", "suspended"),
        ("switch_model", "idle"),
        ("close", "closed"),
    ],
)
def test_each_exit_in_the_admin_reaches_the_open_page(
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
    desk.goto(f"{stack.base_url}/admin/dialogs/question/{question.pk}/change/")
    desk.locator(f"input[name=action][value={exit_taken}]").check()
    if exit_taken == "clear":
        desk.get_by_label("Hand-over note (re-entry package)", exact=True).fill("Goal: answer two. Fresh.")
    if exit_taken == "switch_model":
        desk.get_by_label("Model", exact=True).select_option("lab/short")
    desk.locator("#exits input[type=submit]").click()
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
    times = 0
    while "exceeds 80%" not in panel.inner_text():
        assert times < 12
        send(page, f"More, {times}")
        times += 1
        answered(page, times)
    expect(second.locator("#context-panel")).to_contain_text("exceeds 80%")
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


def test_each_tab_has_a_draft_of_its_own(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    open_dialog("short")
    page.fill("#text", "From the first tab")
    page.wait_for_timeout(700)  # drafts are kept half a second after the last key
    second = context.new_page()
    second.goto(page.url)
    expect(second.locator("#text")).to_have_value("")
    second.fill("#text", "From the second tab")
    page.reload()
    expect(page.locator("#text")).to_have_value("From the first tab")
    second.press("#text", "Enter")
    answered(second)
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
    page.route(f"**/d/{dialog.pk}/messages/", lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright marks it
    send(page, "The first")
    eventually(lambda: (page.wait_for_timeout(20), waiting)[1])
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
        route, answer = eventually(lambda: (page.wait_for_timeout(20), late)[1]).pop()
        route.fulfill(response=answer)
        expect(page.locator("#text")).to_have_value("")
        expect(page.locator("#state")).to_have_attribute("data-state", then)
    answered(page, 2)


def test_reminders_are_kept_while_being_written_and_shown_to_the_other_tab(
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
    eventually(lambda: (page.wait_for_timeout(20), held)[1])
    with stack.api_as(dialog.owner) as api:
        api.post(f"/api/dialogs/{dialog.pk}/reminders", json={"text": "From elsewhere"})
    expect(page.locator("#reminders-panel")).to_contain_text("From elsewhere")
    held.pop().abort()
    expect(page.locator(".toast")).to_have_text("No connection to the server. Nothing was changed.")


def long_dialog(person: User, turns: int, asked: str, answered: str) -> Dialog:
    """Of so many stored turns; the two texts are given each turn's number."""
    dialog = messages.create_dialog(person, "short")
    Turn.objects.bulk_create(
        Turn(
            dialog=dialog,
            seq=number,
            position=number,
            round_number=1,
            role="user" if number % 2 else "assistant",
            status="answered" if number % 2 else "complete",
            text=(asked if number % 2 else answered) % number,
        )
        for number in range(1, turns + 1)
    )
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=turns, last_position=turns)
    connection.close()
    return dialog


def test_a_long_dialog_loads_older_pages_where_the_reader_is(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    dialog = long_dialog(person, 120, *["line %03d\n\nand more of it"] * 2)
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    expect(page.get_by_text("line 120")).to_be_in_viewport()
    assert page.locator(".turn").count() in (40, 80)
    page.locator("#transcript").hover()
    first = page.get_by_text("line 001")
    eventually(lambda: (page.mouse.wheel(0, -3000), page.wait_for_timeout(100), first.count())[2])
    expect(first).to_be_visible()
    positions = page.locator("[data-position]").evaluate_all("all => all.map(e => Number(e.dataset.position))")
    assert positions == sorted(positions)
    assert len(positions) == 120


def test_a_long_dialog_stays_light_wherever_one_scrolls(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    """What is far away leaves the document, in boxes that are laid out as one, and comes back before it is in sight."""
    code = "\n".join(f"def step_{n}(row: int) -> int:\n    return row + {n}  # {n}" for n in range(10))
    dialog = long_dialog(person, 360, "Question %03d?", f"Answer %03d:\n\n```python\n{code}\n```\n")
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")

    def is_light() -> bool:
        """Elements of the page, and what the browser lays out of the conversation, one by one."""
        counts = "[document.querySelectorAll('*').length, document.querySelectorAll('#entries > *').length]"
        elements, places = page.evaluate(counts)
        return bool(elements <= 4_000 and places <= 200)

    eventually(is_light)
    page.locator("#transcript").hover()
    first = page.locator("#turn-1 .body")
    eventually(lambda: (page.mouse.wheel(0, -4000), page.wait_for_timeout(100), first.count())[2], seconds=90)
    expect(first).to_have_text("Question 001?")
    at_top = "document.querySelector('#transcript').scrollTop === 0"
    eventually(lambda: (page.mouse.wheel(0, -4000), page.wait_for_timeout(100), page.evaluate(at_top))[2])
    top = "() => document.querySelector('#turn-1').getBoundingClientRect().top"
    place = page.evaluate(top)
    expect(page.locator(".turn")).to_have_count(360)
    eventually(is_light)
    assert page.locator(".far").count() >= 5 and page.evaluate(top) == place
    expect(page.locator("#turn-360 .body")).to_have_count(0)

    # A fling through all of it: nothing is blank when it is in sight, and a step lays out a few times, not once for each entry.
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable")

    def layouts() -> float:
        return next(
            one["value"] for one in cdp.send("Performance.getMetrics")["metrics"] if one["name"] == "LayoutCount"
        )

    before, blank = layouts(), 0
    for _ in range(60):
        page.mouse.wheel(0, 400)
        page.wait_for_timeout(20)
        blank += page.evaluate(BLANK_IN_SIGHT)
    assert blank == 0 and layouts() - before < 60 * 12
    eventually(is_light)

    # A link leads into a box.
    page.evaluate(
        "document.querySelector('header').insertAdjacentHTML('beforeend', '<a id=there href=\"#turn-1\">there</a>')"
    )
    page.locator("#transcript").evaluate("place => place.scrollTop = place.scrollHeight")
    expect(page.locator("#turn-360 .body")).to_contain_text("Answer 360")
    expect(page.locator("#turn-360")).to_be_in_viewport()
    eventually(lambda: is_light() and page.locator(".far #turn-1").count())
    page.locator("#there").click()
    expect(first).to_be_in_viewport()
    expect(first).to_have_text("Question 001?")
    eventually(is_light)


BLANK_IN_SIGHT = """() => {
    const { top, bottom } = document.querySelector("#transcript").getBoundingClientRect();
    const inSight = (place) => { const box = place.getBoundingClientRect(); return box.bottom > top && box.top < bottom; };
    return [...document.querySelectorAll("#entries > .far, #entries > .away")].filter(inSight).length;
}"""


@pytest.mark.parametrize(
    "path",
    ["/", "/dialogs/", "/q4h/", "/models/", "/settings/", "dialog", "context/", "archive/", "health/", "timeline/"],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone_and_none_breaks_the_content_policy(
    open_dialog: Opener, page: Page, stack: Stack, path: str, scheme: str, complaints: list[str]
) -> None:
    dialog = open_dialog("short")
    send(page, "A fairly long word: " + "x" * 200)
    answered(page)
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    own = f"/d/{dialog.pk}/"
    page.goto(stack.base_url + (path if path.startswith("/") else own + ("" if path == "dialog" else path)))
    widths = page.evaluate("[document.documentElement, ...document.querySelectorAll('main')].map(e => e.scrollWidth)")
    assert max(widths) <= 360  # the part that scrolls may be wider than the page
    assert page.locator("h1").count() == 1


def test_keys_alone_are_enough(open_dialog: Opener, page: Page, stack: Stack, complaints: list[str]) -> None:
    open_dialog("short")
    page.goto(stack.base_url + "/dialogs/")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Tab")
    page.locator("h1").click()
    page.keyboard.press("j")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("Hello")
    page.keyboard.press("Enter")
    answered(page)
    page.locator("#transcript").focus()
    page.keyboard.press("n")
    expect(page.locator("h1")).to_have_text("What would you like to do?")
    expect(page.locator("#text")).to_be_focused()
    page.locator(".choice").first.press("Enter")
    expect(page.locator("#agent-choice [data-narrow]")).to_be_focused()
    page.keyboard.type("asks")
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("Please ask")
    page.keyboard.press("Enter")
    expect(page.locator("#banner")).to_contain_text("Which currency?")


def test_everything_important_works_without_scripts(
    browser: Browser, stack: Stack, person: User, log_in: LogIn
) -> None:
    context = browser.new_context(java_script_enabled=False)
    log_in(context, person)
    page = context.new_page()
    page.goto(stack.base_url + "/")
    page.locator(".choice").first.click()
    page.locator("input[name=agent][value=asks]").check()
    page.keyboard.press("Escape")
    page.fill("#text", "Please ask")
    with page.expect_navigation():  # it must have ended before the page is loaded again
        page.get_by_role("button", name="Send").click()
    dialog = Dialog.objects.get(owner=person)
    eventually(lambda: Dialog.objects.get(pk=dialog.pk).state == "waiting")
    page.reload()
    expect(page.locator("#banner")).to_contain_text("Which currency?")
    page.fill("#text", "EUR")
    with page.expect_navigation():
        page.get_by_role("button", name="Answer").click()
    eventually(lambda: Dialog.objects.get(pk=dialog.pk).state == "idle")
    page.reload()
    expect(page.get_by_text("Thank you.")).to_be_visible()
    assert page.locator(".js-only").first.is_hidden()
    context.close()


def test_logging_out_in_one_tab_closes_the_other(open_dialog: Opener, page: Page, context: BrowserContext) -> None:
    open_dialog("short")
    second = context.new_page()
    second.goto(page.url)
    second.get_by_role("button", name="Log out").click()
    expect(page.locator("#id_username")).to_be_visible()


def test_dialogs_are_archived_and_renamed_by_keyboard(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    for title in ("One", "Two", "Three"):
        messages.create_dialog(person, "short", title)
    connection.close()
    log_in(page.context, person)
    page.goto(stack.base_url + "/dialogs/")
    page.get_by_label("Select Two").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Archive").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("1 dialog archived")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_label("All on this page").check()
    expect(page.locator(".tick :checked")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "dialogs.json"
    page.get_by_role("link", name="Three").last.click()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_text("Rename…").click()
    page.fill("#new-title", "Three and a half")
    page.keyboard.press("Enter")
    expect(page.locator("#heading")).to_have_text("Three and a half")


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


def test_pages_begin_at_one_edge_and_are_of_two_widths(
    stack: Stack, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in(page.context, make_operator())
    page.set_viewport_size({"width": 1800, "height": 900})
    edges, widths = set(), set()
    for address in (
        "/dialogs/",
        "/q4h/",
        "/models/",
        "/statistics/",
        "/settings/",
        "/settings/limits/",
        "/glossary/",
        "/ops/",
    ):
        page.goto(f"{stack.base_url}{address}")
        edges.add(page.locator("h1").evaluate("(title) => title.closest('.sheet').getBoundingClientRect().x"))
        narrow = page.locator(".sheet.narrow > :not(.sr-only)")
        widths |= {round(box) for box in narrow.evaluate_all("(all) => all.map((one) => one.offsetWidth)")}
    assert len(edges) == 1 and max(widths) == 780


def test_the_parts_of_the_settings_take_one_row_of_a_phone(
    stack: Stack, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in(page.context, make_operator())
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{stack.base_url}/settings/site/")
    row, chosen = page.locator(".settings-nav").bounding_box(), page.locator(".settings-nav [aria-current]")
    assert row is not None and row["height"] <= 64
    expect(chosen).to_be_in_viewport(ratio=1)
    people = page.get_by_label("Overdue questions also to")
    people.fill("\n".join(f"someone.{number}@example.org {number * 15}" for number in range(1, 12)))
    assert people.evaluate("(field) => field.scrollHeight <= field.clientHeight"), "eleven lines without scrolling"
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_in_viewport(ratio=1)
    save.click()
    expect(page.locator(".errorlist")).to_have_text("At most 10 people are asked one after another.")
    people.fill("lead@example.org 15\nboss@example.org")
    save.click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(people).to_have_value("lead@example.org 15\nboss@example.org")


def test_the_product_is_installed_as_an_app(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    """By what Chromium itself says: no worker that answers requests is needed, and none could show what is stale."""
    log_in(page.context, person)
    page.goto(stack.base_url)
    browser = page.context.new_cdp_session(page)
    read = browser.send("Page.getAppManifest")
    assert read["errors"] == [] and '"start_url": "/"' in read["data"]
    assert browser.send("Page.getInstallabilityErrors") == {"installabilityErrors": []}
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    manifest = page.request.get(read["url"])
    assert manifest.headers["content-type"] == "application/manifest+json"
    for icon in manifest.json()["icons"]:
        assert page.request.get(f"{stack.base_url}/static/{icon['src']}").headers["content-type"] == icon["type"]


def test_a_zone_that_was_chosen_holds_over_that_of_the_browser(
    stack: Stack, person: User, browser: Browser, log_in: LogIn
) -> None:
    context = browser.new_context(timezone_id="Asia/Shanghai", locale="en-GB")
    log_in(context, person)
    page = context.new_page()
    page.goto(f"{stack.base_url}/settings/")
    page.reload()
    expect(page.locator("#main")).to_contain_text("It is Asia/Shanghai now.")
    page.get_by_label("Time zone").select_option("Asia/Kolkata")
    page.locator("form:has(#id_zone)").get_by_role("button", name="Save").click()
    expect(page.locator("#main")).to_contain_text("It is Asia/Kolkata now.")
    moment = """() => import(document.querySelector("script[src*='js/app.js']").src.replace("app.js", "page.js"))
      .then(({ DATE }) => DATE.format(new Date("2026-03-08T18:45:00Z")))"""
    assert "9 Mar 2026, 00:15" in page.evaluate(moment)
    page.get_by_label("Time zone").select_option("")
    page.locator("form:has(#id_zone)").get_by_role("button", name="Save").click()
    expect(page.locator("#main")).to_contain_text("It is Asia/Shanghai now.")
    assert "9 Mar 2026, 02:45" in page.evaluate(moment)
    context.close()
