"""A conversation that is branched by its turns' menus: by mouse, by keys alone, on a phone, day and night."""

import re

from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from dialogs.models import Dialog, Turn
from tests.browser.conftest import (
    SHIFTS,
    SOLUTION,
    LogIn,
    Opener,
    answered,
    assert_nothing_moved,
    check_axe,
    send,
)
from tests.pixels import picture

TARGET_PX = 44
PHONE: ViewportSize = {"width": 360, "height": 740}


def open_menu(page: Page, turn: str) -> Locator:
    page.locator(f"{turn} [data-turn-menu]").click()
    menu = page.get_by_role("dialog", name="Actions for this turn")
    expect(menu).to_be_visible()
    return menu


def test_a_turn_is_copied_answered_anew_edited_forked_and_rated(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first = open_dialog("short")
    send(page, "What do you say?")
    answered(page)
    copy_and_rate(page, first)
    regenerate(page, first)
    edit_by_keys_alone(page)
    fork_on_a_phone(page)
    assert list(Turn.objects.filter(dialog=first).values_list("text", flat=True)) == [
        "What do you say?",
        "A short answer.",
    ]


def test_code_is_wrapped_saved_and_copied(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_dialog("hostile")
    send(page, "Show me some code")
    answered(page)
    code, text = page.locator(".turn-assistant .code"), "<script>window.hacked = 1</script>"
    expect(code.locator("pre")).to_have_css("white-space-collapse", "preserve")
    code.get_by_role("button", name="Wrap").click()
    expect(code.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "true")
    expect(code.locator("pre")).to_have_css("text-wrap-mode", "wrap")
    with page.expect_download() as download:
        code.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "code.html"
    assert download.value.path().read_text().strip() == text
    code.get_by_role("button", name="Copy").click()
    expect(page.locator(".toast").last).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").strip() == text


def copy_and_rate(page: Page, dialog: Dialog) -> None:
    """Copied as it was written, and with its formatting; the mark of a rating stands under the answer at once, which is
    drawn anew once, or a click on it would be lost."""
    page.locator("#turn-2").get_by_role("button", name="Copy message").click()
    expect(page.locator(".toast").last).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").strip() == "A short answer."
    for button, formatted in (("Copy as Markdown", False), ("Copy with formatting", True)):
        open_menu(page, "#turn-2").get_by_role("button", name=button).click()
        expect(page.locator("#turn-menu")).to_be_hidden()  # it closes when all is done
        expect(page.locator(".toast").last).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()").strip() == "A short answer."
        kinds = "navigator.clipboard.read().then((items) => items[0].types.includes('text/html'))"
        assert page.evaluate(kinds) is formatted
    open_menu(page, "#turn-2").get_by_role("button", name="Good answer").click()
    expect(page.locator("#turn-2 .rated")).to_be_visible()
    rated = page.query_selector("#turn-2")
    expect(page.locator("#turn-menu")).to_be_hidden()
    newest = Dialog.objects.values_list("last_event_seq", flat=True).get(pk=dialog.pk)
    expect(page.locator("#dialog")).to_have_attribute("data-seq", str(newest))
    assert rated is not None and rated.evaluate("turn => turn.isConnected")


def regenerate(page: Page, first: Dialog) -> None:
    """In a dialog of its own, which leads back to the first, and from there again to the second."""
    page.locator("#turn-2").get_by_role("button", name="Regenerate").click()
    page.wait_for_url(lambda url: str(first.pk) not in url)
    answered(page)
    second = page.url
    expect(page.locator("#fork")).to_contain_text("Branches off What do you say?")
    expect(page.locator(".versions")).to_have_text("‹2/2")
    page.get_by_role("link", name="Previous version").click()
    expect(page.locator(".versions")).to_have_text("1/2›")
    assert str(first.pk) in page.url
    page.get_by_role("link", name="Next version").click()
    expect(page.locator(".versions")).to_have_text("‹2/2")
    page.goto(second)


def test_versions_switch_in_place_by_keys_alone(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """No page is loaded, the place stays where it was in the window, and the keyboard at its link; the history leads
    back, and what is sent then belongs to the branch that is shown. Nearer to the end than 80 px the page follows
    that."""
    first = open_dialog("fills")
    for number in range(1, 4):
        send(page, f"Question {number}")
        answered(page, number)
    page.locator("#turn-3").get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("New text of the message")).to_be_focused()
    page.keyboard.type(" in other words")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-3 .versions")).to_have_text("‹2/2")
    answered(page, 2)
    second = page.url.partition("#")[0]
    page.fill("#text", "A draft of the second")
    link = page.get_by_role("link", name="Previous version")
    link.scroll_into_view_if_needed()
    page.locator("#transcript").evaluate("place => place.scrollTop -= 200")
    place = "() => document.querySelector('#turn-3 .versions').getBoundingClientRect().top"
    before = page.evaluate(place)
    page.evaluate("window.isSame = true")
    page.evaluate(SHIFTS)

    def shows(version: str, link: str, address: str) -> None:
        expect(page.locator("#turn-3 .versions")).to_have_text(version)
        expect(page.get_by_role("link", name=link)).to_be_focused()
        expect(page.locator("#connection")).to_have_attribute("data-state", "live")
        assert page.url.startswith(address) and page.evaluate("window.isSame")
        assert abs(page.evaluate(place) - before) < 3
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    link.focus()
    page.keyboard.press("Enter")
    one, two = f"{second.partition('/d/')[0]}/d/{first.pk}/", second
    shows("1/2›", "Next version", one)
    expect(page.locator("#text")).to_have_value("")
    expect(page.locator(".turn-assistant")).to_have_count(3)
    expect(page.locator("#announcer")).to_contain_text("Version 1/2")
    check_axe(page)
    page.keyboard.press("Enter")
    shows("‹2/2", "Previous version", two)
    expect(page.locator("#turn-3 .body")).to_have_text("Question 2 in other words")
    expect(page.locator("#text")).to_have_value("A draft of the second")
    page.go_back()
    shows("1/2›", "Next version", one)
    page.go_forward()
    shows("‹2/2", "Previous version", two)
    page.go_back()
    shows("1/2›", "Next version", one)
    assert_nothing_moved(page)
    send(page, "Question 4")
    answered(page, 4)
    assert first.turns.get(role="user", text="Question 4")
    page.reload()
    expect(page.locator(".turn-assistant")).to_have_count(4)


def test_versions_are_plain_links_without_scripts(
    open_dialog: Opener, page: Page, browser: Browser, person: User, log_in: LogIn
) -> None:
    open_dialog("short")
    send(page, "What do you say?")
    answered(page)
    page.locator("#turn-2").get_by_role("button", name="Regenerate").click()
    expect(page.locator(".versions")).to_have_text("‹2/2")
    answered(page)
    plain = browser.new_context(java_script_enabled=False)
    log_in(plain, person)
    bare = plain.new_page()
    bare.goto(page.url)
    bare.get_by_role("link", name="Previous version").click()
    expect(bare.locator(".versions")).to_have_text("1/2›")
    plain.close()
    page.route("**/at/**", lambda route: route.abort() if route.request.resource_type == "fetch" else route.continue_())
    page.evaluate("window.isSame = true")
    page.get_by_role("link", name="Previous version").click()
    expect(page.locator(".versions")).to_have_text("1/2›")
    assert not page.evaluate("window.isSame")


def test_another_model_answers_anew_by_keys_alone(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """The first answer stays as a version; the select is reached, and the dialog then goes on with that model."""
    first = open_dialog("short")
    send(page, "What do you say?")
    answered(page)
    page.locator("#turn-2 [data-turn-menu]").focus()
    page.keyboard.press("Enter")
    more = page.locator("#turn-menu summary", has_text="Regenerate with another model…")
    expect(more).to_be_visible()
    while not more.evaluate("summary => summary === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    select = page.locator("#turn-menu").get_by_label("Model", exact=True)
    expect(select).to_be_focused()
    page.keyboard.type("echo (lab)")
    expect(select).to_have_value("lab/echo")
    check_axe(page)
    page.keyboard.press("Tab")
    expect(page.locator("#turn-menu button:focus")).to_have_text("Regenerate")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: str(first.pk) not in url)
    answered(page)
    expect(page.locator("#turn-2 .body")).to_have_text("What do you say?")
    expect(page.locator("#turn-2 .versions")).to_have_text("‹2/2")
    assert Turn.objects.get(dialog=first, seq=2).text == "A short answer."
    expect(page.locator("#model-button")).to_contain_text("echo")


class Keys:
    """A page without a mouse; nothing may stick out of it, and axe finds nothing at any step."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def check(self, what: str) -> None:
        assert self.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], what
        check_axe(self.page)

    def choose(self, turn: str, name: str) -> None:
        """By the turn's menu, whose entries are reached by Tab."""
        self.page.locator(f"{turn} [data-turn-menu]").focus()
        self.page.keyboard.press("Enter")
        expect(self.page.locator("#turn-menu :is(button, summary)").first).to_be_focused()
        self.check(name)
        wanted = self.page.locator("#turn-menu").get_by_role("button", name=name)
        while not wanted.evaluate("button => button === document.activeElement"):
            self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")


def test_a_conversation_by_keys_alone(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """By night on a small screen, where there is the least room. The tests around it are by day on a desk."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    open_dialog("solves")

    keys = Keys(page)
    attach_and_ask(keys)
    unfold_and_copy(keys)
    regenerate_edit_and_fork(keys)


# The height of each turn as it is placed, before anything is drawn.
HEIGHTS = """() => {
    window.heights = [];
    const isTurn = (node) => node.matches?.(".turn[id^=turn-]");
    const measure = (node) => isTurn(node) && window.heights.push([node.id, node.offsetHeight]);
    const note = ({ addedNodes }) => addedNodes.forEach(measure);
    const entries = document.getElementById("entries");
    new MutationObserver((changes) => changes.forEach(note)).observe(entries, { childList: true });
}"""


def attach_and_ask(keys: Keys) -> None:
    """Nothing moves while the answer streams."""
    page = keys.page
    page.locator("#text").focus()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Tab")
        expect(
            page.locator("#attachments")
        ).to_be_focused()  # an answer of the page, which then knows that a chooser is awaited
        page.keyboard.press("Space")
    chooser.value.set_files({"name": "plan.png", "mimeType": "image/png", "buffer": picture("PNG", (600, 300))})
    expect(page.locator("#attached li")).to_have_count(1)
    keys.check("attached")
    page.locator("#text").focus()
    page.keyboard.type("How large is it?")
    page.keyboard.press("Enter")
    expect(page.locator("#live .reasoning")).to_contain_text(re.compile("Reasoning….*Half of"))
    page.evaluate(SHIFTS)
    page.evaluate(HEIGHTS)
    answered(page)
    assert_nothing_moved(page)  # also when its reasoning ends
    for turn, height in page.evaluate("window.heights"):
        now = page.locator(f"#{turn}").evaluate("turn => turn.offsetHeight")
        assert abs(now - height) < 40, turn  # a line comes under it


def unfold_and_copy(keys: Keys) -> None:
    page = keys.page
    expect(page.locator(".turn-user").get_by_role("img", name="Attached image plan.png")).to_be_visible()
    expect(page.locator("#turn-2 math")).to_have_count(2)
    assert page.locator("#turn-2 math").last.evaluate("math => math.getBoundingClientRect().height") > 20
    thought = page.locator("#turn-2 .reasoning")
    expect(thought.locator(".plain")).to_be_hidden()
    thought.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(thought.locator(".plain")).to_contain_text("Half of the product")
    keys.check("unfolded")
    keys.choose("#turn-2", "Copy as Markdown")
    expect(page.locator(".toast").last).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").strip() == SOLUTION.strip()


def regenerate_edit_and_fork(keys: Keys) -> None:
    page = keys.page
    first = page.url
    keys.choose("#turn-2", "Regenerate")
    page.wait_for_url(lambda url: url != first)
    answered(page)
    expect(page.locator("#turn-2 .versions")).to_have_text("‹2/2")
    keys.check("regenerated")
    page.get_by_role("link", name="Previous version").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Next version")).to_be_focused()
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    pencil = page.locator("#turn-1").get_by_role("button", name="Edit", exact=True)
    pencil.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("New text of the message")).to_be_focused()
    keys.check("editing")
    page.keyboard.type(" Say it again.")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1 .body")).to_have_text("How large is it? Say it again.")
    answered(page)
    expect(page.locator("#turn-1").get_by_role("img", name="Attached image plan.png")).to_be_visible()
    expect(page.locator("#turn-1 .versions")).to_have_text("‹2/2")
    keys.choose("#turn-2", "Fork to a new dialog")
    expect(page.locator("#heading")).to_contain_text("(fork)")
    expect(page.locator(".turn")).to_have_count(2)
    keys.check("forked")


def edit_by_keys_alone(page: Page) -> None:
    before = page.url
    link = page.locator("#turn-1 [data-turn-menu]")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#turn-menu button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#turn-menu button").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#new-text")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("What else do you say?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: not url.startswith(before))
    expect(page.locator("#turn-1 .body")).to_have_text("What else do you say?")
    answered(page)
    expect(page.locator("#turn-1 .versions")).to_have_text("‹2/2")


def fork_on_a_phone(page: Page) -> None:
    """Day and night: targets are large enough, and nothing sticks out."""
    page.set_viewport_size({"width": 360, "height": 740})
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        menu = open_menu(page, "#turn-2")
        check_axe(page)
        box = menu.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["y"] + box["height"] <= 740
        page.keyboard.press("Escape")
    targets = page.locator(":is(.turn-foot a:not(.turn-usage), .turn-foot button, .versions a):visible")
    sizes = targets.evaluate_all("all => all.map(e => e.getBoundingClientRect()).map(r => Math.min(r.width, r.height))")
    assert sizes and min(sizes) >= TARGET_PX
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    foot = page.locator("#turn-2 .turn-foot")
    assert foot.evaluate(
        "foot => [...foot.children].every(e => e.getBoundingClientRect().right <= innerWidth && e.offsetHeight <= 44)"
    )
    expect(foot.locator(".turn-usage")).to_have_text(re.compile(r"^[\d,]+ tok$"))
    expect(foot.locator(".turn-usage")).to_have_attribute("title", re.compile("prompt / .* completion · reported"))
    open_menu(page, "#turn-2").get_by_role("button", name="Fork to a new dialog").click()
    expect(page.locator("#heading")).to_have_text("What else do you say? (fork)")
    expect(page.locator(".turn")).to_have_count(2)
    send(page, "Go on")
    answered(page, 2)


def test_a_message_is_edited_where_it_stands(
    open_dialog: Opener, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    """By keys alone, on a phone, day and night; Escape leaves it as it was, and so does the end of the session."""
    first = open_dialog("short")
    send(page, "What do you say?")
    answered(page)
    page.set_viewport_size({"width": 360, "height": 740})
    pencil, field = page.get_by_role("button", name="Edit", exact=True), page.get_by_label("New text of the message")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        pencil.focus()
        page.keyboard.press("Enter")
        expect(field).to_be_focused()
        expect(field).to_have_value("What do you say?")
        expect(page.locator("#turn-1 .body")).to_be_hidden()
        check_axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.keyboard.press("Escape")
        expect(pencil).to_be_focused()
        expect(page.locator("#turn-1 .body")).to_be_visible()
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("In two lines.")
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("Enter")
    expect(page.locator("#id_username")).to_be_visible()
    log_in(page.context, person)
    page.goto(page.url.replace("/login/?next=", ""))
    expect(field).to_have_value("What do you say?\nIn two lines.")
    field.press("Enter")
    page.wait_for_url(lambda url: str(first.pk) not in url)
    expect(page.locator("#turn-1 .body")).to_have_text("What do you say?\nIn two lines.")
    answered(page)
    expect(page.locator("#turn-1 .versions")).to_have_text("‹2/2")


def test_the_first_turn_moves_nothing(open_dialog: Opener, page: Page) -> None:
    """It takes the place of the welcome."""
    page.set_viewport_size({"width": 360, "height": 740})
    open_dialog("short")
    page.evaluate(SHIFTS)
    send(page, "Go")
    answered(page)
    assert_nothing_moved(page, 0.002)


def test_a_row_of_tool_calls_is_folded_once_something_follows(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    open_dialog("looks")
    send(page, "Look")
    answered(page, 2)
    group, cards = page.locator(".tool-group"), page.locator(".turn-tool")
    expect(cards).to_have_count(3)
    expect(group).to_have_count(0)  # nothing moves while one reads along
    send(page, "Thanks")
    expect(group.locator("strong")).to_have_text("Searched the archive 3 times")
    answered(page, 3)
    height = "all => all.map((entry) => entry.getBoundingClientRect().height)"
    assert cards.evaluate_all(height) == [0, 0, 0]
    group.focus()
    page.keyboard.press("Enter")
    expect(group).to_have_attribute("aria-expanded", "true")
    assert min(cards.evaluate_all(height)) > 30
    expect(group).to_be_in_viewport()
    check_axe(page)
    page.reload()
    expect(group).to_have_attribute("aria-expanded", "false")
    assert cards.evaluate_all(height) == [0, 0, 0]
    seq = (cards.nth(1).get_attribute("id") or "").removeprefix("turn-")
    page.goto(f"{page.url.partition('#')[0]}#turn-{seq}")
    page.reload()
    expect(group).to_have_attribute("aria-expanded", "true")
    expect(cards.nth(1)).to_be_in_viewport()
