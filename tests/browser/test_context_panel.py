"""Importance retention's panel in a browser: when it warns, how it keeps up in every tab, and what its previews say."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import BrowserContext, Page, WebSocketRoute, expect
from playwright.sync_api import Dialog as Question

from dialogs.actions import messages
from dialogs.models import Dialog, Turn
from remediation.models import RemediationRun
from tests.browser.conftest import LogIn, eventually_on
from tests.harness.browser import open_details
from tests.harness.stack import Stack, eventually

LIMIT = 2_000  # of the agent "fills"
WORD, WORDS = " word", 80  # a token each
Filled = Callable[[int], Dialog]


@pytest.fixture
def filled(stack: Stack, person: User, page: Page, log_in: LogIn) -> Filled:
    """``filled(1_602)``: an old dialog that is estimated at exactly so many tokens, ready to be opened."""

    def fill(tokens: int) -> Dialog:
        dialog = messages.create_dialog(person, "fills")
        with stack.api_as(person) as api:

            def estimated() -> int:
                connection.close()
                result: int = api.get(f"/api/dialogs/{dialog.pk}/context").json()["est_tokens"]
                return result

            number, size, overhead = 0, estimated(), 0
            while size < tokens - 200:
                number, before = number + 1, size
                add_turn(dialog, number, WORD * WORDS)
                size = estimated()
                overhead = size - before - WORDS
            add_turn(dialog, number + 1, WORD * (tokens - size - overhead))
            assert estimated() == tokens
        log_in(page.context, person)
        return dialog

    return fill


def add_turn(dialog: Dialog, number: int, text: str) -> None:
    role, status = ("user", "answered") if number % 2 else ("assistant", "complete")
    Turn.objects.create(dialog=dialog, seq=number, position=number, round_number=1, role=role, status=status, text=text)
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=number, last_position=number)
    connection.close()


def show(page: Page, stack: Stack, dialog: Dialog) -> None:
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    open_details(page)


@pytest.mark.parametrize(("tokens", "percent", "warns"), [(1_600, "80.0%", False), (1_602, "80.1%", True)])
def test_the_panel_warns_above_80_percent_only(
    filled: Filled, stack: Stack, page: Page, complaints: list[str], tokens: int, percent: str, warns: bool
) -> None:
    show(page, stack, filled(tokens))
    panel = page.locator("#context-panel")
    expect(panel).to_contain_text(percent)
    expect(panel).to_contain_text(f"{tokens:,}")
    expect(panel).to_have_attribute("data-state", "warning" if warns else "active")
    expect(panel.get_by_text("Context exceeds 80% capacity - pruning recommended")).to_have_count(int(warns))
    expect(panel.get_by_role("button", name="Prune Context Now")).to_have_count(int(warns))


def test_a_prune_in_one_tab_is_pushed_to_the_other(
    filled: Filled, stack: Stack, page: Page, context: BrowserContext, complaints: list[str]
) -> None:
    dialog = filled(1_900)
    show(page, stack, dialog)
    second = context.new_page()
    show(second, stack, dialog)
    second.evaluate("window.neverReloaded = true")
    asked: list[str] = []
    second.on("request", lambda request: asked.append(request.url))
    expect(second.locator("#context-panel")).to_have_attribute("data-state", "warning")
    asked_by_page: list[str] = []

    def refuse(question: Question) -> None:
        asked_by_page.append(question.message)
        question.dismiss()

    page.once("dialog", refuse)
    page.get_by_role("button", name="Prune Context Now").click()
    assert "Prune the context now?" in asked_by_page[0]
    assert not RemediationRun.objects.filter(dialog=dialog).exists()
    page.once("dialog", lambda question: question.accept())
    page.get_by_role("button", name="Prune Context Now").click()
    expect(second.locator("#context-panel")).to_have_attribute("data-state", "active")
    expect(second.locator(".run-line")).to_have_count(1)
    expect(second.locator("#context-panel")).not_to_contain_text("95.0%")
    assert second.evaluate("window.neverReloaded") is True
    assert not [url for url in asked if "/frames" in url], "it came over the socket, not by asking"


def test_the_panel_is_asked_for_only_while_the_socket_is_down(
    filled: Filled, stack: Stack, person: User, page: Page
) -> None:
    """Every 2 s, so that it is never more than importance retention's 3 s behind. The page's clock is the test's."""
    asked: list[str] = []
    events: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/frames" in request.url else None)
    page.on("requestfinished", lambda request: events.append(request.url) if "/frames" in request.url else None)
    is_down = True

    def step() -> None:
        """The page's two seconds, and as much of ours as the answer takes."""
        page.clock.run_for(2_000)
        eventually_on(page, lambda: len(events) == len(asked))

    page.route_web_socket("**/ws/dialogs/**", lambda socket: socket.close() if is_down else through(socket))
    dialog = filled(1_900)
    page.clock.install()
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "polling", timeout=30_000)
    open_details(page)
    pause(page)
    before = len(asked)
    steps = 0
    while len(asked) < before + 10:
        step()
        steps += 1
        assert steps <= 15, "a step may be lost where an answer is slow, for the next question follows on it"
    assert len(asked) <= before + steps + 1  # one may have been on its way when the clock was stopped

    with stack.api_as(person) as api:
        connection.close()
        assert api.post(f"/api/dialogs/{dialog.pk}/prune").status_code == 202
    eventually(lambda: RemediationRun.objects.filter(dialog=dialog).exists(), seconds=30)
    eventually(lambda: Dialog.objects.get(pk=dialog.pk).state == "idle")
    panel = page.locator("#context-panel")

    def is_active_after_a_step() -> bool:
        step()
        return panel.get_attribute("data-state") == "active"

    eventually(is_active_after_a_step)

    is_down = False
    page.clock.resume()
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=40_000)
    pause(page)
    before = len(asked)
    page.clock.run_for(15_000)
    page.wait_for_timeout(1_000)
    assert len(asked) == before, "nothing is asked for while the socket tells"


def pause(page: Page) -> None:
    """Stop the page's clock a little later than now: a busy machine takes its time between asking and stopping."""
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 5"))


def through(socket: WebSocketRoute) -> None:
    socket.connect_to_server()


@pytest.mark.parametrize(
    ("link", "button", "policy"),
    [
        ("Prune…", "Prune Context Now", "prune"),
        ("Report & Continue…", "Report & Continue", "breaking"),
    ],
)
def test_a_dry_run_shows_what_would_go_and_then_it_goes(
    filled: Filled, stack: Stack, page: Page, complaints: list[str], link: str, button: str, policy: str
) -> None:
    dialog = filled(1_900)
    show(page, stack, dialog)
    page.locator("#ring-button").click()
    expect(page.locator("#context-popover").get_by_role("button", name="Make room")).to_be_visible()
    page.get_by_text("All ways").click()
    page.get_by_role("link", name=link).click()
    expect(page.locator(".preview")).to_contain_text("A dry run: nothing has changed")
    page.get_by_text("What goes, and what stands for it").click()
    assert page.locator(".preview .goes-list li").count()
    told = re.search(r"est. [\d,]+ → ([\d,]+) tokens", page.locator(".preview").inner_text())
    assert told
    assert not RemediationRun.objects.filter(dialog=dialog).exists()
    page.get_by_role("button", name=button).click()
    expect(page.locator(".run-line")).to_have_count(1, timeout=60_000)
    run = RemediationRun.objects.get(dialog=dialog)
    assert (run.policy, run.est_after < run.est_before) == (policy, True)
    panel = page.locator("#context-panel")
    expect(panel).to_have_attribute("data-state", "active")
    if policy == "prune":
        assert told[1] == f"{run.est_after:,}", "no model writes in it, so it comes to what was told"
    page.locator("#ring-button").click()
    story = page.locator("#story")
    expect(story.locator(".sizes")).to_have_text(f"est. {run.est_before:,} → {run.est_after:,} tokens")
    story.get_by_role("button", name="Undo").press("Enter")
    expect(page.locator(".toast", has_text="back.")).to_contain_text(f"est. {run.est_after:,} → ")
    expect(story).to_contain_text(", undone")
    expect(page.locator("section", has=story)).to_be_focused()  # whoever works by keys is not sent to the top
    expect(panel).to_have_attribute("data-state", "warning")
