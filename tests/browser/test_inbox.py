"""The inbox of questions: chosen, read and answered by keys on a wide screen, pages of their own on a phone."""

import re

from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from dialogs.models import Question
from tests.browser.conftest import LogIn, Opener, answered, eventually_on, send
from tests.harness.stack import Stack, eventually


def two_questions(stack: Stack, person: User) -> list[Question]:
    """Newest first."""
    with stack.api_as(person) as api:
        for text in ("Please ask one", "Please ask two"):
            dialog = api.post("/api/dialogs", json={"agent": "asks"}).json()["id"]
            api.post(f"/api/dialogs/{dialog}/messages", json={"text": text})
    asked = Question.objects.filter(dialog__owner=person, state="open").order_by("-created_at")
    eventually(lambda: asked.count() == 2)
    return list(asked)


def test_questions_are_answered_by_keys(stack: Stack, person: User, page: Page, log_in: LogIn) -> None:
    newest, oldest = two_questions(stack, person)
    log_in(page.context, person)
    page.set_viewport_size({"width": 1300, "height": 800})
    page.goto(f"{stack.base_url}/q4h/")
    reader, chosen = page.locator("#reader"), page.locator(".inbox [aria-current]")
    expect(reader).to_contain_text("Please ask")
    expect(page).to_have_title("Needs you · Dominds")
    expect(chosen).to_have_attribute("data-row", str(newest.pk))
    page.keyboard.press("j")
    expect(chosen).to_have_attribute("data-row", str(oldest.pk))
    expect(reader.locator("form")).to_have_attribute("action", f"/q4h/{oldest.pk}/answer/")
    page.keyboard.press("ArrowUp")
    expect(reader.locator("form")).to_have_attribute("action", f"/q4h/{newest.pk}/answer/")
    page.keyboard.press("a")
    expect(reader.get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("EUR, j and k")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Answered. The agent goes on.")).to_be_visible()
    expect(chosen).to_have_attribute("data-row", str(oldest.pk))
    assert Question.objects.get(pk=newest.pk).answer == "EUR, j and k"
    page.set_viewport_size({"width": 390, "height": 800})
    expect(reader).to_be_hidden()
    page.locator(".inbox [data-row]").click()
    expect(page).to_have_url(re.compile(f"/q4h/{oldest.pk}/$"))


def test_whoever_is_faster_than_the_network_answers_the_chosen_question(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    _, oldest = two_questions(stack, person)
    log_in(page.context, person)
    page.set_viewport_size({"width": 1300, "height": 800})
    held: list[
        Route
    ] = []  # before the page is there: what a page asks for right after it was told is not held at times
    page.route(f"**/q4h/{oldest.pk}/", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    page.goto(f"{stack.base_url}/q4h/")
    page.keyboard.press("j")
    eventually_on(page, lambda: held)
    page.keyboard.press("a")
    expect(page.get_by_label("Your answer")).not_to_be_focused()
    held.pop().continue_()
    expect(page.locator("#reader form")).to_have_attribute("action", f"/q4h/{oldest.pk}/answer/")
    expect(page.get_by_label("Your answer")).to_be_focused()


def test_an_offered_answer_takes_one_click(
    open_dialog: Opener, person: User, stack: Stack, page: Page, complaints: list[str]
) -> None:
    open_dialog("asks")
    send(page, "Please offer")
    card = page.locator(".asks")
    card.get_by_role("button", name="USD").click()
    answered(page, 2)
    expect(card.get_by_role("button")).to_have_count(0)
    expect(page.locator(".turn-answer .body")).to_have_text("USD")
    send(page, "Please offer again")
    expect(page.locator("#banner")).to_contain_text("EUR or USD?")
    page.goto(f"{stack.base_url}/q4h/")
    page.get_by_role("button", name="EUR", exact=True).click()
    expect(page.get_by_text("Answered. The agent goes on.")).to_be_visible()
    assert set(Question.objects.filter(dialog__owner=person).values_list("answer", flat=True)) == {"USD", "EUR"}


def test_a_filter_applies_at_once_and_keeps_the_focus(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    with stack.api_as(person) as api:
        dialog = api.post("/api/dialogs", json={"agent": "asks"}).json()["id"]
        api.post(f"/api/dialogs/{dialog}/messages", json={"text": "Please ask one"})
    eventually(lambda: Question.objects.filter(dialog=dialog, state="open").exists())
    log_in(page.context, person)
    page.set_viewport_size({"width": 1300, "height": 800})
    page.goto(f"{stack.base_url}/q4h/")
    kind, rows = page.get_by_label("Kind"), page.locator(".inbox [data-row]")
    expect(page.get_by_role("button", name="Filter")).to_have_count(0)
    kind.focus()
    kind.select_option("context_health_critical")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    expect(page).to_have_url(re.compile("kind=context_health_critical"))
    expect(kind).to_be_focused()
    kind.select_option("question")
    expect(rows).not_to_have_count(0)
    kind.blur()
    page.keyboard.press("j")  # the keys work in the list that the filter brought
    expect(page.locator(".inbox [aria-current]")).to_have_count(1)
    page.keyboard.press("a")
    expect(page.locator("#reader").get_by_label("Your answer")).to_be_focused()
    without = page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    log_in(without, person)
    plain = without.new_page()
    plain.goto(f"{stack.base_url}/q4h/")
    plain.get_by_label("Kind").select_option("context_health_critical")
    plain.get_by_role("button", name="Filter").click()
    expect(plain.get_by_text("Nothing waits.")).to_be_visible()
    without.close()
