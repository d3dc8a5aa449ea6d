"""Context breaking's nine phases on the page: the right words, icon and colour for each,
made by the real chain in a real worker.

A chain is over in less time than an eye needs, so the network is slow here: the socket's frames wait until a phase has
been looked at. They are the product's own, in their order.
"""

import json
import re
from collections import deque
from dataclasses import dataclass
from random import Random

from playwright.sync_api import Page, WebSocketRoute, expect

from dialogs.models import Dialog
from remediation.models import RemediationRun
from tests.browser.conftest import Opener, answered, send
from tests.harness.stack import eventually

BLUE, GREEN, ORANGE, RED = (
    "rgb(0, 122, 204)",
    "rgb(76, 175, 80)",
    "rgb(255, 152, 0)",
    "rgb(244, 67, 54)",
)
TEXTS = {
    "detection": r"^Checking context length…$",
    "summarize_old": r"^Summarizing old context… \(est\. \d\.\dk → 300 tokens\)$",
    "prioritize_recent": r"^Prioritizing P1 units & recent messages…$",
    "content_type_chunking": r"^Chunking code & plan references…$",
    "discard_low_rel": r"^Removing low-relevance units…$",
    "hybrid": r"^Applying hybrid compression…$",
    "success": r"^Context reduced to [\d,]+ / 3,500 tokens$",
    "recovery": r"^(Overflow detected – starting|Starting) fresh conversation$",
    "handover": r"^Resumed from summary\. Continuing task…$",
}
ICONS = {
    "detection": "sync",
    "summarize_old": "compress",
    "prioritize_recent": "star",
    "content_type_chunking": "code",
    "discard_low_rel": "clear",
    "hybrid": "layers",
    "success": "check",
    "recovery": "retry",
    "handover": "sync",
}
INDETERMINATE = {"detection", "recovery"}


class SlowNetwork:
    """Lets frames through until one names a phase; from then on each ``next_phase`` lets them
    through up to the next."""

    def __init__(self, page: Page) -> None:
        self._page, self._held, self._holds = page, deque[str](), False
        page.route_web_socket("**/ws/dialogs/**", self._proxy)

    def _proxy(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.connect_to_server().on_message(lambda message: self._come(str(message)))

    def _come(self, message: str) -> None:
        self._holds = self._holds or bool(_phase_of(message))
        if self._holds:
            self._held.append(message)
        else:
            self._socket.send(message)

    def next_phase(self) -> str:
        """Deliver up to the next phase and return its name; empty when everything has been delivered."""
        while self._held:
            message = self._held.popleft()
            self._socket.send(message)
            if phase := _phase_of(message):
                return phase
        return ""

    def deliver(self) -> None:
        """Everything up to the answer; no phase is looked at."""
        eventually(self._deliver_some, seconds=30)

    def _deliver_some(self) -> bool:
        self._page.wait_for_timeout(50)
        while self.next_phase():
            pass
        self._holds = False  # at the moment when none is held: a later frame must not overtake one
        return self._page.locator("#state[data-state=idle]").count() == 1


def _phase_of(message: str) -> str:
    frame = json.loads(message)
    return str(frame["data"]["phase"]) if frame["type"] == "contextBreakingUpdate" else ""


@dataclass
class Appearance:
    """What a person sees of the bar, its colour as the browser computed it."""

    phase: str
    colour: str
    icon: str
    indeterminate: bool
    badge: str


def shown_in(page: Page, phase: str) -> Appearance:
    """Wait for the phase and its words, then look."""
    box = page.locator("#breaking")
    expect(box).to_have_attribute("data-phase", phase)
    expect(page.locator("#breaking-message")).to_have_text(re.compile(TEXTS[phase]))
    expect(page.locator("#breaking-message")).to_be_visible()
    badge = page.locator("#breaking-priority")
    return Appearance(
        phase,
        box.evaluate("box => getComputedStyle(box).borderLeftColor"),
        str(page.locator("#breaking-icon").get_attribute("href")).partition("#")[2],
        page.locator("#breaking-bar").get_attribute("value") is None,
        badge.inner_text() if badge.is_visible() else "",
    )


def notes(week: int, words: int) -> str:
    """Meeting notes that differ from week to week."""
    rng = Random(week)
    things = (
        "importer parser export schema queue report invoice index backup nightly batch header column currency".split()
    )
    verbs = ("checked", "moved", "rewrote", "compared", "delayed", "tested", "renamed", "measured", "discussed")
    text, length = [f"Week {week} notes."], 3
    while length < words:
        text.append(
            f"We {rng.choice(verbs)} the {rng.choice(things)} {rng.choice(things)} before the {rng.choice(things)}."
        )
        length += 8
    return " ".join(text)


def say(page: Page, dialog: Dialog, text: str) -> None:
    """Send, and wait in the database, since the page may be behind its slow network."""
    asked = dialog.turns.filter(role="user").count() + 1
    send(page, text)
    eventually(lambda: dialog.turns.filter(role="user", status="answered").count() == asked, seconds=60)


def hide_after(page: Page, seconds: int) -> None:
    """As the person's settings say; their three seconds could be over before a slow browser has been asked."""
    page.locator("#breaking").evaluate("(box, seconds) => { box.dataset.hide = seconds; }", seconds)


def watch(page: Page, network: SlowNetwork, last: str, colours: dict[str, str], badge: str) -> list[str]:
    """Look at each phase up to ``last``; return their names. ``colours`` are by phase, or by "" for all others."""
    messages: list[str] = []
    while last not in messages:
        phase = eventually(lambda: _waited(page, network), seconds=60)
        assert shown_in(page, phase) == Appearance(
            phase, colours.get(phase, colours[""]), ICONS[phase], phase in INDETERMINATE, badge
        )
        messages.append(phase)
    return messages


def _waited(page: Page, network: SlowNetwork) -> str:
    page.wait_for_timeout(20)  # Playwright hands frames over while it waits
    return network.next_phase()


def test_all_nine_phases_are_shown_in_their_words_and_colours(
    page: Page, open_dialog: Opener, complaints: list[str]
) -> None:
    network = SlowNetwork(page)
    dialog = open_dialog("plans")
    hide_after(page, seconds=600)
    # Nothing is tagged and much is old: one summary is enough, in blue after the orange warning.
    week = 1
    while not RemediationRun.objects.filter(dialog=dialog).exists():
        say(page, dialog, notes(week, 190))
        week += 1
    phases = watch(page, network, "success", {"detection": ORANGE, "": BLUE}, badge="")
    assert phases[:2] == ["detection", "summarize_old"]
    network.deliver()
    details = page.locator("#breaking-details")
    details.locator("summary").click()
    expect(details).to_contain_text("summarize old")
    expect(details).to_contain_text("kept in the archive")
    # Much of it is on the To Do List and stays by rule: the whole chain runs for headroom, in green.
    for number in (1, 2, 3):
        say(page, dialog, f"To Do List, part {number}: {notes(100 + number, 330)}")
    phases = watch(page, network, "success", {"detection": ORANGE, "": GREEN}, badge="P1: To Do List")
    assert set(phases) == set(TEXTS) - {"recovery", "handover"}
    # Now the To Do List alone is too long: nothing helps but a fresh start, in red.
    say(page, dialog, f"To Do List, part 4: {notes(104, 700)}")
    say(page, dialog, f"To Do List, part 5: {notes(105, 700)}")
    colours = {"detection": ORANGE, "recovery": RED, "": GREEN}
    watch(page, network, "recovery", colours, badge="P1: To Do List")
    hide_after(page, seconds=6)
    assert watch(page, network, "handover", colours, badge="P1: To Do List") == ["handover"]
    expect(page.locator("#announcer")).to_contain_text("Resumed from summary")
    network.deliver()
    expect(details).to_contain_text("fresh start")
    expect(page.locator(".run-line").last).to_contain_text("Fresh start from a handover")
    expect(page.locator("#breaking")).to_be_hidden()  # by itself
    assert [run.recovered for run in RemediationRun.objects.filter(dialog=dialog).order_by("id")][-1]


def test_a_tag_is_shown_and_a_failed_rewrite_leaves_no_bar(
    page: Page, open_dialog: Opener, complaints: list[str]
) -> None:
    network = SlowNetwork(page)
    dialog = open_dialog("plans")
    say(page, dialog, "[P2] Hello")
    answered(page)
    page.on("dialog", lambda question: question.accept())
    page.locator("#ring-button").click()
    page.get_by_text("All ways").click()
    page.get_by_role("button", name="Reset Agent Chat").click()
    assert eventually(lambda: _waited(page, network)) == "recovery"
    assert shown_in(page, "recovery") == Appearance("recovery", RED, "retry", True, "P2")
    expect(page.locator("#breaking-message")).to_have_text("Starting fresh conversation")  # nothing overflowed
    yellow = page.locator("#breaking-priority").evaluate("pill => getComputedStyle(pill).borderTopColor")
    assert yellow == "rgb(178, 137, 0)"
    network.deliver()
    expect(page.locator("#notice")).to_contain_text("The context could not be made smaller")
    expect(page.locator("#breaking")).to_be_hidden()
