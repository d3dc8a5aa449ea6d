"""What holds for every page: narrow screens, keys alone, no scripts, one edge, time zones."""

from collections.abc import Iterator
from itertools import cycle

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dialogs.actions import messages
from dialogs.models import Dialog
from tests.browser.conftest import LogIn, Opener, Scheme, answered, send
from tests.dialogs.factories import make_operator
from tests.harness.stack import Stack, eventually


def test_pages_fit_a_phone_and_the_content_policy(
    open_dialog: Opener, page: Page, stack: Stack, complaints: list[str]
) -> None:
    dialog = open_dialog("short")
    send(page, "A fairly long word: " + "x" * 200)
    answered(page)
    page.set_viewport_size({"width": 360, "height": 740})
    schemes: Iterator[Scheme] = cycle(("light", "dark"))  # colours have no width
    for path in ("/", "/dialogs/", "/q4h/", "/models/", "/settings/", f"/d/{dialog.pk}/", f"/d/{dialog.pk}/context/"):
        page.emulate_media(color_scheme=next(schemes))
        page.goto(stack.base_url + path)
        widths = page.evaluate(
            "[document.documentElement, ...document.querySelectorAll('main')].map(e => e.scrollWidth)"
        )
        assert max(widths) <= 360, path  # the part that scrolls may be wider than the page
        assert page.locator("h1").count() == 1, path


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
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Pin", exact=True).click()  # in a menu that came by the socket
    expect(page.locator("#nav-dialogs h2").first).to_have_text("Pinned")


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
    page.get_by_label("Time zone").fill("Kolkata")
    page.locator("form:has(#id_zone)").get_by_role("button", name="Save").click()
    expect(page.locator("#main")).to_contain_text("It is Asia/Kolkata now.")
    moment = """() => import("/static/js/page.js")
      .then(({ DATE }) => DATE.format(new Date("2026-03-08T18:45:00Z")))"""
    assert "9 Mar 2026, 00:15" in page.evaluate(moment)
    page.get_by_label("Time zone").fill("")
    page.locator("form:has(#id_zone)").get_by_role("button", name="Save").click()
    expect(page.locator("#main")).to_contain_text("It is Asia/Shanghai now.")
    assert "9 Mar 2026, 02:45" in page.evaluate(moment)
    context.close()
