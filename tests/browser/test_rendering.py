"""What answers are drawn with beyond text: numbered code, and images that somebody asks for."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener, answered, send
from tests.doubles.picture_host import picture_host
from tests.pixels import picture

CODE = '```python\n"""One\ntwo"""\nx = 1\n```'


def test_code_is_numbered_and_copied_without_its_numbers(
    page: Page, open_dialog: Opener, complaints: list[str]
) -> None:
    open_dialog("echo")
    send(page, CODE)
    answered(page)
    code = page.locator(".turn-assistant .code")
    code.get_by_role("button", name="Numbers").click()
    expect(code.get_by_role("button", name="Numbers")).to_have_attribute("aria-pressed", "true")
    expect(code.locator(".code-line")).to_have_count(3)
    assert code.locator("pre").inner_text().rstrip("\n") == '"""One\ntwo"""\nx = 1'
    assert code.locator(".code-line").last.evaluate("line => getComputedStyle(line, '::before').content") != "none"
    code.get_by_role("button", name="Numbers").click()
    expect(code.get_by_role("button", name="Numbers")).to_have_attribute("aria-pressed", "false")
    assert code.locator(".code-line").last.evaluate("line => getComputedStyle(line, '::before').content") == "none"


@pytest.mark.parametrize("items", [12, 120])
def test_no_digit_of_a_list_is_cut_off(page: Page, open_dialog: Opener, complaints: list[str], items: int) -> None:
    """A turn that is off screen is not laid out, for which the browser cuts off what sticks out of it."""
    open_dialog("echo")
    send(page, "\n".join(f"{number}. one" for number in range(1, items + 1)))
    answered(page)
    turn = page.locator(".turn-assistant")
    box = turn.locator("li").last.bounding_box()
    assert box is not None
    drawn = []
    for visibility in ("auto", "visible"):
        turn.evaluate("(turn, value) => { turn.style.contentVisibility = value; }", visibility)
        clip = {"x": box["x"] - 60, "y": box["y"], "width": 60, "height": box["height"]}
        drawn.append(page.screenshot(clip=clip))  # type: ignore[arg-type]
    assert drawn[0] == drawn[1]


def test_a_time_of_another_day_says_the_day(page: Page, open_dialog: Opener, complaints: list[str]) -> None:
    open_dialog("short")
    send(page, "Good evening")
    answered(page)
    times = page.locator(".turn time")
    expect(times.first).to_have_text(re.compile(r"^\d\d:\d\d( [AP]M)?$"))
    year = times.first.get_attribute("datetime")[:4]  # type: ignore[index]
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=1))
    page.reload()
    for time in times.all():
        expect(time).to_contain_text(year)


def test_on_paper_long_lines_are_whole_and_dark_on_white(
    page: Page, open_dialog: Opener, complaints: list[str]
) -> None:
    open_dialog("echo")
    send(page, f"```python\nx = [{'1, ' * 200}]\n```")
    answered(page)
    code = page.locator(".turn-assistant .code pre")
    is_cut = "pre => pre.scrollWidth > pre.clientWidth"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert code.evaluate(is_cut)
    page.emulate_media(media="print")
    assert not code.evaluate(is_cut)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator("#strip")).to_be_hidden()


def test_a_click_shows_an_image_or_leaves_its_link(page: Page, open_dialog: Opener, complaints: list[str]) -> None:
    with picture_host({"/chart.png": picture()}) as host:
        open_dialog("echo")
        send(page, f"![the chart]({host.url}/chart.png) and ![nothing]({host.url}/missing.png)")
        answered(page)
        answer = page.locator(".turn-assistant .body")
        assert not host.asked
        answer.get_by_role("link", name="[image: the chart]").click()
        chart = answer.get_by_role("img", name="[image: the chart]")
        room = chart.bounding_box()
        expect(chart).to_have_js_property("complete", True)
        assert chart.bounding_box() == room and chart.evaluate("image => image.naturalWidth")
        answer.get_by_role("link", name="[image: nothing]").click()
        expect(page.get_by_text("The image was not loaded.")).to_be_visible()
        expect(answer.get_by_role("link", name="[image: nothing]")).to_be_visible()
        assert [path for path, _ in host.asked] == ["/chart.png", "/missing.png"]
