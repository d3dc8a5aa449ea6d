"""Dialogs of hundreds of turns: older pages, and a document that stays light."""

from io import BytesIO
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from dialogs.actions import messages
from dialogs.models import Dialog, Turn
from tests.browser.conftest import LogIn, eventually_on
from tests.harness.stack import Stack, eventually


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
    eventually_on(page, first.count, scroll_px=-3000)
    expect(first).to_be_visible()
    positions = page.locator("[data-position]").evaluate_all("all => all.map(e => Number(e.dataset.position))")
    assert positions == sorted(positions)
    assert len(positions) == 120


def test_a_long_dialog_stays_light_wherever_one_scrolls(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    """What is far away stands in boxes that are skipped as one, within reach of find and print."""
    code = "\n".join(f"def step_{n}(row: int) -> int:\n    return row + {n}  # {n}" for n in range(10))
    dialog = long_dialog(person, 360, "Question %03d?", f"Answer %03d:\n\n```python\n{code}\n```\n")
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")

    def is_light() -> bool:
        """Look at what the browser draws of the conversation, and at what it watches one by one."""
        turns, places = page.evaluate(DRAWN)
        return bool(turns <= 120 and places <= 200)

    eventually(is_light)
    page.locator("#transcript").hover()
    colours = page.locator("#turn-360 pre span")
    coloured = colours.count()
    first = page.locator("#turn-1 .body")
    entry, at_top = page.locator("#turn-1"), "document.querySelector('#transcript').scrollTop === 0"
    eventually_on(page, entry.count, scroll_px=-4000, seconds=90)
    eventually_on(page, lambda: page.evaluate(at_top), scroll_px=-4000)
    expect(first).to_have_text("Question 001?")
    top = "() => document.querySelector('#turn-1').getBoundingClientRect().top"
    place = page.evaluate(top)
    expect(page.locator(".turn")).to_have_count(360)
    eventually(is_light)
    assert page.locator(".far").count() >= 5 and page.evaluate(top) == place
    # What is out of sight is in the document, its code without colours, and printed.
    expect(colours).to_have_count(0)
    expect(page.locator("#turn-180 pre")).to_contain_text("return row + 9")
    expect(page.locator("#turn-360 .body")).to_contain_text("Answer 360")
    printed = "".join(part.extract_text() for part in PdfReader(BytesIO(page.pdf())).pages)
    assert "Question 001?" in printed and "Answer 360" in printed and "Answer 180" in printed
    page.evaluate("document.querySelector('#transcript').scrollTo(0, 0)")

    # A fling through all of it: nothing is blank when it is in sight, and a step lays out a few times,
    # not once for each entry.
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable")

    def layouts() -> float:
        metrics: list[dict[str, Any]] = cdp.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "LayoutCount"))

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
    expect(colours).to_have_count(coloured)
    eventually(lambda: is_light() and page.locator(".far #turn-1").count())
    page.locator("#there").click()
    expect(first).to_be_in_viewport()
    expect(first).to_have_text("Question 001?")
    eventually(is_light)


BLANK_IN_SIGHT = """() => {
    const { top, bottom } = document.querySelector("#transcript").getBoundingClientRect();
    const inSight = (place) => {
      const box = place.getBoundingClientRect();
      return box.bottom > top && box.top < bottom;
    };
    const isDrawn = (place) => place.firstElementChild.checkVisibility({ contentVisibilityAuto: true });
    return [...document.querySelectorAll("#entries > .far")].filter((box) => inSight(box) && !isDrawn(box)).length;
}"""
# Turns that are drawn, and places that are watched.
DRAWN = """() => [
    [...document.querySelectorAll(".turn")].filter((one) => one.checkVisibility({ contentVisibilityAuto: true }))
      .length,
    document.querySelectorAll("#entries > *").length,
]"""
