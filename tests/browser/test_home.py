"""A dialog begins on the first page, and whatever can be done has a name that one can type."""

import re

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Dialog as Question
from playwright.sync_api import Page, Route, expect

from dialogs.actions import messages
from dialogs.models import Dialog, PromptTemplate
from tests.browser.conftest import LogIn, Opener, answered, check_axe, eventually_on, send
from tests.harness.stack import Stack, eventually


def test_a_lost_first_message_stays_and_makes_one_dialog(stack: Stack, person: User, page: Page, log_in: LogIn) -> None:
    """The first try is cut off after the server has taken it, the second before."""
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/?agent=short")
    tries: list[str] = []

    def cut(route: Route) -> None:
        tries.append(route.request.post_data or "")
        if len(tries) == 1:
            route.fetch(max_redirects=0)
        route.abort() if len(tries) < 3 else route.continue_()

    page.route("**/d/new/", cut)
    page.fill("#text", "Only once")
    page.keyboard.press("Enter")
    expect(page.locator("#sending-error")).to_contain_text("Your text is kept")
    page.reload()
    expect(page.locator("#text")).to_have_value("Only once")
    page.keyboard.press("Enter")
    expect(page.locator("#sending-error")).to_contain_text("Your text is kept")
    page.get_by_role("button", name="Retry").click()
    page.wait_for_url(re.compile("/d/[0-9a-f-]{36}/"))
    answered(page)
    page.goto(f"{stack.base_url}/")
    expect(page.locator("#text")).to_have_value("")
    assert Dialog.objects.filter(owner=person).count() == 1


# Two frames: what has changed is drawn.
DRAWN = "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
SHIFTS = """() => new Promise((resolve) => {
    let sum = 0;
    const add = (list) => { for (const entry of list.getEntries()) sum += entry.value; };
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 500);
})"""


def test_no_line_moves_when_the_font_comes_late(stack: Stack, person: User, page: Page, log_in: LogIn) -> None:
    log_in(page.context, person)
    waiting: list[Route] = []

    is_held = True

    def hold(route: Route) -> None:
        waiting.append(route) if is_held else route.continue_()

    page.route("**/static/fonts/*", hold)
    page.goto(f"{stack.base_url}/glossary/", wait_until="domcontentloaded")
    expect(page.get_by_role("heading", name="Glossary")).to_be_visible()
    assert page.evaluate("document.fonts.check('400 15px Inter')") is False
    eventually_on(page, lambda: waiting)
    page.evaluate(DRAWN)
    is_held = False
    for route in waiting:
        route.continue_()
    # Not by `wait_for_function`, whose second look the content policy forbids.
    eventually_on(page, lambda: page.evaluate("document.fonts.check('400 15px Inter')"))
    assert page.evaluate(SHIFTS) < 0.02  # 0.1 is called good


def test_a_dialog_is_pinned_and_renamed_from_the_navigation(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    """By keys from its row on, and while another page is open."""
    dialog = open_dialog("short")
    Dialog.objects.filter(pk=dialog.pk).update(title="Berths")
    page.goto(page.url.partition("/d/")[0] + "/settings/")
    row = page.locator(f"#recent-{dialog.pk} > a")
    row.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    menu = page.get_by_role("dialog", name="Actions for this dialog")
    menu.get_by_role("button", name="Pin").click()
    expect(page.locator("#nav-dialogs").get_by_role("heading", name="Pinned")).to_be_visible()
    expect(menu).to_be_hidden()
    row.hover()
    page.get_by_role("button", name="Actions: Berths").click()
    menu.get_by_text("Rename…").click()
    expect(menu.get_by_label("New title")).to_be_focused()
    page.keyboard.type("Harbour dues")
    page.keyboard.press("Enter")
    expect(row).to_have_text(re.compile("Harbour dues"))
    assert page.url.endswith("/settings/")


def test_what_a_page_can_do_is_found_by_name(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    dialog = open_dialog("short")
    field, listed = page.locator("#text"), page.get_by_role("listbox", name="Commands")
    field.press_sequentially("/ren")
    expect(listed.get_by_role("option")).to_have_count(1)
    field.press("Escape")
    expect(listed).to_be_hidden()
    field.fill("/rename Harbour dues")
    field.press("Enter")
    expect(page.locator("#new-title")).to_have_value("Harbour dues")
    expect(field).to_have_value("")
    page.keyboard.press("Enter")
    expect(page.locator("#heading")).to_have_text("Harbour dues")
    expect(page.locator(f"#recent-{dialog.pk}")).to_contain_text("Harbour dues")
    field.fill("/")
    expect(listed).to_contain_text("/room")
    expect(listed).to_contain_text("/happened")
    expect(listed).not_to_contain_text(re.compile("/(prune|summarize|clear|milestone)"))  # behind /room
    field.fill("/prune")
    expect(listed.get_by_role("option")).to_have_text("/prunePrune…")
    field.fill("/clear We go on.")
    field.press("Enter")
    expect(page.locator("#package")).to_have_value("We go on.")
    page.once("dialog", lambda question: question.accept())
    page.get_by_role("button", name="Clear its mind").click()
    expect(page.locator("#package")).to_be_hidden()
    expect(page.locator("#package")).to_have_value("")
    expect(page.locator("#round-2").get_by_role("button", name="Undo")).to_be_visible()
    field.fill("/undo")
    field.press("Enter")
    expect(page.locator(".run-line")).to_contain_text("Clear undone")
    page.keyboard.press("Control+k")
    page.keyboard.type("undo")
    page.keyboard.press("Enter")
    expect(page.locator(".run-line.undone")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("clear")
    action = page.locator("#palette-list").get_by_role("option", name="Clear…")
    expect(action.locator("span")).to_have_text(["Clear…", "/clear"])
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+k")
    page.keyboard.type("theme dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+k")
    page.keyboard.type("asks")
    page.get_by_role("option", name="Asks asks").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Agent: Asks")).to_be_visible()
    expect(page.locator("#text")).to_be_focused()  # the last thing that its scripts do
    page.keyboard.press("Control+k")
    page.keyboard.type("harbour")
    page.get_by_role("option", name="Harbour dues").click()
    page.wait_for_url(f"**/d/{dialog.pk}/")
    page.fill("#text", "/nothing of that name is a message")
    page.press("#text", "Enter")
    answered(page)


def test_a_template_is_typed_and_a_folder_kept_by_name(
    open_dialog: Opener, person: User, page: Page, complaints: list[str]
) -> None:
    PromptTemplate.objects.create(owner=person, name="weekly", text="What happened?\nThree things.")
    connection.close()
    dialog = open_dialog("short")
    field, folder = page.locator("#text"), page.locator(".nav-folder")
    field.press_sequentially("/wee")
    page.get_by_role("option", name="/weekly").wait_for()
    field.press("Enter")
    expect(field).to_have_value("What happened?\nThree things.")
    field.fill("/folder Harbour dues")
    field.press("Enter")
    expect(page.locator("#folder")).to_have_value("Harbour dues")
    page.keyboard.press("Enter")
    expect(folder.locator(f"#recent-{dialog.pk}")).to_be_visible()
    page.get_by_role("link", name="New dialog", exact=True).click()
    page.wait_for_url(lambda url: "/d/" not in url)
    expect(page.locator(f"#recent-{dialog.pk}")).to_be_visible()  # the folder is open, as it was left
    folder.locator("summary").click()
    expect(folder).not_to_have_attribute("open", "")
    page.reload()
    expect(folder).not_to_have_attribute("open", "")


def test_the_navigation_shows_what_is_new_elsewhere(
    open_dialog: Opener, stack: Stack, person: User, page: Page, complaints: list[str]
) -> None:
    other = messages.create_dialog(person, "short", "Elsewhere")
    asking = messages.create_dialog(person, "asks", "Asks there")
    connection.close()
    open_dialog("short")
    item = page.locator(f"#recent-{other.pk}")
    expect(item.locator(".news")).to_be_hidden()
    with stack.api_as(person) as api:
        api.post(f"/api/dialogs/{other.pk}/messages", json={"text": "Hello"})
    eventually(lambda: Dialog.objects.get(pk=other.pk).state == "idle")
    expect(item.locator(".news")).to_be_visible()
    with stack.api_as(person) as api:
        api.post(f"/api/dialogs/{asking.pk}/messages", json={"text": "Please ask"})
    mark = page.locator(f"#recent-{asking.pk} .state-dot")
    expect(mark).to_have_attribute("data-state", "waiting")
    expect(mark).to_be_visible()  # although its question is new
    expect(page.locator(f"#recent-{asking.pk} a")).to_contain_text("new")
    item.get_by_role("link").click()
    expect(page.locator(f"#recent-{other.pk} .news")).to_be_hidden()
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Pin").click()
    expect(page.locator("#nav-dialogs h2").first).to_have_text("Pinned")
    expect(page.locator("#nav-dialogs ul").first.locator("li")).to_have_id(f"recent-{other.pk}")


def test_another_model_is_chosen_within_a_dialog_and_one_is_pinned(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    """By keys alone on a wide page, by touch size on a phone; what is pinned stands first in
    each list of this browser."""
    open_dialog("short")
    send(page, "Who are you?")
    answered(page)
    button, picker = page.locator("#model-button"), page.get_by_role("dialog", name="Model")
    search = picker.get_by_placeholder("Search models")
    page.fill("#text", "/model")
    page.press("#text", "Enter")
    expect(search).to_be_focused()
    page.keyboard.type("lights")
    expect(picker.locator(".option:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-label", "Model: lights")
    expect(picker).to_be_hidden()
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator(".notice-line")).to_contain_text("From here on lights answers")
    expect(page.locator("#ring")).to_contain_text("128,000")
    send(page, "50")
    answered(page, 2)
    expect(page.locator(".turn-assistant .body").last).to_have_text("Noted.")
    page.set_viewport_size({"width": 360, "height": 740})
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        button.click()
        expect(search).to_be_focused()
        expect(picker.locator("[aria-current]")).to_contain_text("lights")
        check_axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.keyboard.press("Escape")
    button.click()
    expect(search).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(picker.locator(".option").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    star = picker.locator(".star:focus")
    name = star.locator("..").locator("strong").text_content()
    page.keyboard.press("Enter")
    expect(star).to_have_attribute("aria-pressed", "true")
    page.reload()
    page.locator("#model-button").click()
    expect(picker.locator(".option strong").nth(1)).to_have_text(name or "")


def test_theme_and_text_size_are_in_reach_and_stay(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/models/")
    page.get_by_role("button", name="Appearance").click()
    page.get_by_text("Dark", exact=True).click()
    page.get_by_text("Large", exact=True).click()
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    expect(root).to_have_css("font-size", "19px")
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    expect(root).to_have_attribute("data-size", "large")
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Text size: small").click()
    expect(root).to_have_attribute("data-size", "small")
    page.get_by_role("button", name="Log out").click()
    expect(root).to_have_attribute("data-theme", "dark")  # as the last person's, also where nobody is logged in
    expect(root).to_have_attribute("data-size", "small")


def test_a_dialog_is_deleted_by_its_name_and_brought_back(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    dialog = open_dialog("short")
    Dialog.objects.filter(pk=dialog.pk).update(title="Berths")
    connection.close()
    page.reload()
    asked: list[str] = []

    def refuse(question: Question) -> None:
        asked.append(question.message)
        question.dismiss()

    page.once("dialog", refuse)
    page.fill("#text", "/delete")
    page.press("#text", "Enter")
    expect(page.locator("#text")).to_have_value("")
    assert asked == ["Delete “Berths”? It can be brought back for 30 days."]
    page.once("dialog", lambda question: question.accept())
    page.fill("#text", "/delete")
    page.press("#text", "Enter")
    expect(page.locator(".messages")).to_contain_text("1 dialog deleted")
    expect(page.locator(f"#recent-{dialog.pk}")).to_have_count(0)
    page.goto(page.url.partition("?")[0] + "?state=deleted")
    row = page.locator("#dialog-rows li", has_text="Berths")
    expect(row.get_by_role("link")).to_have_count(0)
    check_axe(page)
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Bring back").click()
    page.locator(f"#recent-{dialog.pk} > a").click()
    expect(page.locator("#heading")).to_have_text("Berths")


def test_the_list_is_filtered_by_one_menu(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    made = [messages.create_dialog(person, agent) for agent in ("short", "echo")]
    connection.close()
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/dialogs/")
    rows = page.locator(".dialog-row")
    expect(rows).to_have_count(2)
    expect(page.get_by_label("Agent", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Agent", exact=True).select_option("echo")
    expect(rows).to_have_count(1)
    expect(rows).to_have_attribute("href", f"/d/{made[1].pk}/")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Agent", exact=True)).to_be_hidden()
    expect(page.get_by_role("button", name="Filters")).to_be_focused()
