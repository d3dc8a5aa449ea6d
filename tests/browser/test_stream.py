"""An answer on the page, whatever happens to the page meanwhile: the final text is what the model said, once."""

import json
import re
import time
from typing import Any

from django.contrib.auth.models import User
from django.utils.html import strip_tags
from playwright.sync_api import BrowserContext, Locator, Page, WebSocketRoute, expect

from dialogs.models import Dialog, Turn
from dialogs.pages.markdown import render
from tests.browser.conftest import (
    LONG,
    SHIFTS,
    LogIn,
    Opener,
    answered,
    assert_nothing_moved,
    eventually_on,
    kept,
    send,
)
from tests.harness.stack import Stack, eventually

PHONE_PX = 360


class HeldEnd:
    """All of an answer comes, at the network's own speed, and its end when it is to:
    until then it can be seen as it streams."""

    def __init__(self, page: Page) -> None:
        self._held: list[str | bytes] = []
        self._holds = True
        page.route_web_socket("**/ws/dialogs/**", self._proxy)

    def _proxy(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.connect_to_server().on_message(self._come)

    def _come(self, message: str | bytes) -> None:
        if self._holds and (self._held or _ends_an_answer(json.loads(message))):
            self._held.append(message)
        else:
            self._socket.send(message)

    def deliver(self) -> None:
        self._holds = False
        for message in self._held:
            self._socket.send(message)
        self._held.clear()


def _ends_an_answer(frame: dict[str, Any]) -> bool:
    about: dict[str, str] = frame.get("data", {})
    return (frame["type"] == "turn" and about["role"] == "assistant") or (
        frame["type"] == "generation" and about["outcome"] != "running"
    )


def words_of(page: Page) -> str:
    """All that the answers on the page say, as one line."""
    parts = page.locator(".turn-assistant .md").all_text_contents()
    return " ".join(" ".join(parts).split())


def expected_words(times: int = 1) -> str:
    from html import unescape

    return " ".join(" ".join([unescape(strip_tags(render(LONG)))] * times).split())


def squeezed(text: str) -> str:
    return "".join(text.split())


def assert_whole(page: Page, dialog: Dialog) -> None:
    answered(page)
    assert squeezed(words_of(page)) == squeezed(expected_words())
    assert Turn.objects.get(dialog=dialog, role="assistant").text == LONG


def assert_at_end(page: Page) -> None:
    gap = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    eventually(lambda: page.locator("#transcript").evaluate(gap) < 5)


# What people who listen are told from now on: on a slow page the next words take the place of these at once.
SAID = """() => {
    window.said = [];
    const place = document.getElementById("announcer");
    new MutationObserver(() => window.said.push(place.textContent)).observe(place, { childList: true });
}"""


def test_an_answer_streams_and_ends_as_the_model_said_it(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    end = HeldEnd(page)
    dialog = open_dialog("long")
    send(page, "Go")
    expect(page.locator("#live .md h4, #live .md h3").first).to_be_visible()
    expect(page.locator("#activity")).to_contain_text("Generating…")
    expect(page.locator("#live .tail")).to_have_count(1)
    page.evaluate(SAID)
    end.deliver()
    assert_whole(page, dialog)
    assert page.locator(".hl-k").count() >= 12
    eventually(lambda: "Answer complete" in page.evaluate("window.said.join()"))


def test_no_line_moves_while_an_answer_streams(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """Blocks take the place of the text that they are made of, and the turn that of the draft."""
    dialog = open_dialog("long")
    send(page, "Go")
    expect(page.locator("#live .md h4, #live .md h3").first).to_be_visible()
    page.evaluate(SHIFTS)
    assert_whole(page, dialog)
    assert_nothing_moved(page)
    assert_at_end(page)  # which it followed


def test_a_list_is_a_list_while_it_streams(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """It is one block, which is finished with the answer. Its open end is drawn by the page:
    without marks, and inert."""
    end = HeldEnd(page)
    open_dialog("list")
    send(page, "Go")
    items = page.locator("#live .tail > ol > li")
    expect(items.nth(1).locator("ul > li").first).to_contain_text("<img src=x onerror=")
    page.evaluate(SHIFTS)
    for at in (3, 5, 7):
        expect(items.nth(at).locator("strong")).to_have_count(1)
        text = page.locator("#live .tail").inner_text()
        assert "**" not in text and "`" not in text and "](" not in text and "\n-" not in text
    assert page.locator("#live .tail :is(img, a, script)").count() == 0
    end.deliver()
    answered(page)
    expect(page.locator("#entries .turn-assistant .md > ol > li")).to_have_count(12)
    assert_nothing_moved(page)
    assert not page.evaluate("window.hacked")


DRAWN = """() => {
    window.drawn = [];
    const note = () => {
        const rows = [...document.querySelectorAll("#live .tail table tr")];
        window.drawn.push([rows.length, rows.map((row) => row.innerText).join(" ")]);
        if (document.querySelector("#live .tail :is(img, a, script)")) window.hacked = 1;
    };
    new MutationObserver(note).observe(
      document.getElementById("entries"), { childList: true, subtree: true, characterData: true });
}"""


def test_a_table_is_a_table_while_it_streams(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """Row by row, with the sides of its columns; no bar of it is ever seen, whatever stands in its cells is text, and
    what only begins like a table stays a paragraph."""
    page.set_viewport_size({"width": PHONE_PX, "height": 740})
    end = HeldEnd(page)
    open_dialog("table")
    page.evaluate(DRAWN)
    send(page, "Go")
    cells = page.locator("#live .tail table td")
    expect(page.locator("#live .tail th").last).to_have_class("right")
    expect(cells.nth(9)).to_contain_text("<img src=x onerror='window.hacked=1'> x")
    expect(page.locator("#live .tail td:first-child strong").nth(3)).to_have_text("No 4")
    page.evaluate(SHIFTS)
    expect(page.locator("#live .body", has_text="| a line | with bars and no table")).to_be_attached()
    end.deliver()
    answered(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE_PX
    assert_nothing_moved(page)
    drawn = page.evaluate("window.drawn")
    assert len({number for number, _ in drawn} & set(range(2, 25))) > 5  # what was late comes in one piece
    assert not [text for _, text in drawn if "|" in text.replace("one | ", "") or "**" in text]
    expect(page.locator(".turn-assistant .md table").first.locator("tr")).to_have_count(25)
    expect(page.locator(".turn-assistant .md table").last.locator("td").first).to_have_text("one | two")
    assert not page.evaluate("window.hacked")


def answer_on(page: Page) -> Locator:
    """Return the answer, which on a slow machine may have ended while a page loaded."""
    return page.locator("#live, .turn-assistant[data-status=complete]")


def test_a_reload_in_the_middle_loses_and_doubles_nothing(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    dialog = open_dialog("long")
    send(page, "Go")
    for _ in range(3):
        expect(answer_on(page).locator(".body").first).not_to_be_empty()
        page.reload()
        expect(answer_on(page)).to_have_count(1)
    assert_whole(page, dialog)
    page.reload()
    assert squeezed(words_of(page)) == squeezed(expected_words())


def test_a_closed_socket_in_the_middle_loses_and_doubles_nothing(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    sockets: list[WebSocketRoute] = []

    def proxy(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket("**/ws/dialogs/**", proxy)
    dialog = open_dialog("long")
    send(page, "Go")
    for _ in range(3):
        expect(answer_on(page).locator(".body").first).not_to_be_empty()
        closed = sockets.pop()
        closed.close(code=1012)
        eventually_on(page, lambda: sockets)
        expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    assert_whole(page, dialog)
    assert len(sockets) == 1, "one comes for each that was closed"


def test_without_any_socket_the_page_asks_and_still_gets_everything(
    open_dialog: Opener, page: Page, stack: Stack
) -> None:
    dialog = open_dialog("long")
    page.route_web_socket("**/ws/dialogs/**", lambda socket: socket.close(code=1011))
    page.reload()
    send(page, "Go")
    expect(page.locator("#connection")).to_have_attribute("data-state", "polling", timeout=30_000)
    expect(page.locator("#connection")).to_contain_text("Live updates blocked")
    assert_whole(page, dialog)


def test_a_server_that_was_away_is_not_taken_for_blocked_sockets(open_dialog: Opener, page: Page) -> None:
    open_dialog("short")
    is_away = [True]

    def proxy(socket: WebSocketRoute) -> None:
        if is_away[0]:
            socket.close(code=1011)
        else:
            socket.connect_to_server()

    page.route_web_socket("**/ws/dialogs/**", proxy)
    page.route("**/frames?*", lambda route: route.abort() if is_away[0] else route.continue_())
    page.reload()
    states = page.evaluate_handle(
        """() => {
            const seen = [], mark = document.getElementById("connection");
            new MutationObserver(() => seen.push(mark.dataset.state)).observe(mark, { attributes: true });
            return seen;
        }"""
    )
    for _ in range(3):
        with page.expect_event("requestfailed", lambda request: "frames?" in request.url, timeout=30_000):
            pass
    is_away[0] = False
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=30_000)
    assert "polling" not in states.json_value()


def test_a_second_tab_sees_the_same(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    dialog = open_dialog("long")
    send(page, "Go")
    expect(page.locator("#live")).to_have_count(1)
    second = context.new_page()
    second.goto(page.url)
    assert_whole(page, dialog)
    assert_whole(second, dialog)
    assert page.locator("#entries .turn").count() == second.locator("#entries .turn").count() == 2


def test_what_waits_is_seen_and_taken_back_in_every_tab(
    open_dialog: Opener, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    open_dialog("counts")  # for half a minute, however slow the second tab is
    send(page, "Count")
    expect(page.get_by_role("button", name="Stop").first).to_be_visible()
    second = context.new_page()
    second.goto(page.url)
    send(second, "And then? " * 40)
    expect(page.locator("#queued")).to_contain_text("And then?")
    expect(page.locator("#queued button")).to_be_in_viewport()
    page.locator("#queued button").click()
    expect(second.locator("#queued li")).to_have_count(0)


def test_stop_in_the_middle_keeps_what_was_said(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    dialog = open_dialog("long")
    send(page, "Go")
    expect(page.locator("#live .md p").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn-assistant[data-status=stopped]")).to_have_count(1)
    expect(page.locator("#live")).to_have_count(0)
    expect(page.locator("#state")).to_have_attribute("data-state", "idle")
    answer = Turn.objects.get(dialog=dialog, role="assistant").text
    assert 0 < len(answer) < len(LONG)
    assert LONG.startswith(answer)
    first = squeezed(words_of(page))
    page.reload()
    assert squeezed(words_of(page)) == first
    page.get_by_role("button", name="Retry").click()
    answered(page)


def test_a_lost_connection_is_shown_and_typed_text_stays(
    open_dialog: Opener, page: Page, context: BrowserContext
) -> None:
    dialog = open_dialog("short")
    context.set_offline(True)
    expect(page.locator("#connection")).to_have_attribute("data-state", "offline")
    send(page, "Do not lose me")
    expect(page.locator("#sending-error")).to_contain_text("Not sent")
    expect(page.locator("#text")).to_have_value("Do not lose me")
    context.set_offline(False)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    page.locator("#sending-error").get_by_role("button", name="Retry").click()
    answered(page)
    expect(page.locator("#text")).to_have_value("")
    assert Turn.objects.filter(dialog=dialog, role="user").count() == 1


def test_the_composer_says_what_keeps_the_server_from_storing_a_message(open_dialog: Opener, page: Page) -> None:
    open_dialog("short")
    page.route("**/messages/", lambda route: route.fulfill(status=503, body="<main><h1>The disk is full</h1></main>"))
    send(page, "Do not lose me")
    expect(page.locator("#sending-error")).to_have_text("The disk is full. Your text is kept. Retry")


def test_what_is_written_survives_a_reload_and_a_lost_session(
    open_dialog: Opener, person: User, page: Page, context: BrowserContext, log_in: LogIn
) -> None:
    dialog = open_dialog("short")
    page.fill("#text", "Half a thought")
    kept(page, "Half a thought")
    page.reload()
    field, error = page.locator("#text"), page.locator("#sending-error")
    expect(field).to_have_value("Half a thought")
    context.clear_cookies(name="sessionid")
    field.press("Enter")
    expect(page.locator("#id_username")).to_be_visible()
    log_in(context, person)
    page.goto(page.url.replace("/login/?next=", ""))
    expect(field).to_have_value("Half a thought")
    context.clear_cookies(name="csrftoken")  # as if somebody had logged in again elsewhere
    field.press("Enter")
    expect(error).to_have_text(re.compile("Please send it again. The form was old"))
    expect(field).to_have_value("Half a thought")
    assert not Turn.objects.filter(dialog=dialog).exists()


def test_an_input_method_keeps_its_enter(open_dialog: Opener, page: Page) -> None:
    dialog = open_dialog("short")
    page.fill("#text", "にほん")
    page.locator("#text").evaluate(
        "field => field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', keyCode: 229, isComposing: true, "
        "bubbles: true}))"
    )
    page.keyboard.press("Shift+Enter")
    page.wait_for_timeout(300)
    assert not Turn.objects.filter(dialog=dialog).exists()
    assert "\n" in page.locator("#text").input_value()


def test_the_reader_is_not_pulled_down_and_can_jump(open_dialog: Opener, page: Page) -> None:
    end = HeldEnd(page)
    open_dialog("long")
    send(page, "Go")
    expect(page.locator("#live .md .code").nth(2)).to_be_attached()
    transcript = page.locator("#transcript")
    transcript.hover()
    page.mouse.wheel(0, -2000)
    expect(page.locator("#jump")).to_be_visible()
    tops = [0.0, 1.0]
    while tops[-1] != tops[-2]:  # it scrolls smoothly
        page.wait_for_timeout(100)
        tops.append(transcript.evaluate("element => element.scrollTop"))
    top = tops[-1]
    page.wait_for_timeout(800)
    assert abs(transcript.evaluate("element => element.scrollTop") - top) < 5
    end.deliver()
    expect(page.locator("#jump")).to_contain_text("1 new", timeout=30_000)
    page.locator("#jump").click()
    expect(page.locator("#jump")).to_be_hidden()
    assert_at_end(page)


def test_what_a_page_scrolls_as_it_opens_is_not_its_readers(open_dialog: Opener, page: Page) -> None:
    page.add_init_script("performance.now = () => 100")  # it opens for ever
    open_dialog("long")
    send(page, "Go")
    answered(page)
    scrolled = (
        "transcript => new Promise(told => { transcript.addEventListener('scroll', told, { once: true }); "
        "transcript.scrollTop = 0; })"
    )
    page.locator("#transcript").evaluate(scrolled)
    expect(page.locator("#jump")).to_be_hidden()
    send(page, "Go on")
    answered(page, 2)
    assert_at_end(page)


def test_hostile_answers_do_nothing_while_they_stream_and_after(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_dialog("hostile")
    send(page, "<img src=x onerror='window.hacked=1'>")
    answered(page)
    page.reload()
    answered(page)
    assert page.evaluate("window.hacked") is None
    assert not [url for url in asked if "evil.example" in url or url.endswith("/d/new/")]
    assert page.locator("#entries img, #entries script, #entries [hx-get]:not(#older)").count() == 0


def test_killing_the_socket_server_brings_every_page_back(
    page: Page, log_in: LogIn, person: User, stack: Stack
) -> None:
    """The web server dies in the middle of an answer; the worker goes on, and the page catches up (fault 53)."""
    from dialogs.actions import messages

    dialog = messages.create_dialog(person, "long")
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    send(page, "Go")
    expect(page.locator("#live")).to_have_count(1)
    stack.web.kill()
    expect(page.locator("#connection")).not_to_have_attribute("data-state", "live")
    time.sleep(1)
    stack.wait_until_ready(stack.start_web())
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=30_000)
    assert_whole(page, dialog)
