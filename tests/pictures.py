"""The pictures of the README, from the running product: ``python -m tests.pictures`` writes docs/pictures.

Starts ``dominds up`` with data of its own, talks to demo agents in Chromium, and ends it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dominds.local.embedded_redis import free_port
from tests.harness.browser import FLAGS, chromium
from tests.harness.stack import ROOT, eventually

FOLDER = ROOT / "docs" / "pictures"
NAME, PASSWORD = "ada", "correct horse battery"
WIDE, NARROW = (1360, 860), (390, 844)
GIF_WIDTH, GIF_COLOURS = 900, 96
SECOND = 1_000  # ms


@contextmanager
def product(minds: Path | None = None) -> Iterator[str]:
    """The address of a product with an administrator and the agents of a folder, on data that go with it."""
    with tempfile.TemporaryDirectory() as folder:
        if minds is not None:
            shutil.copytree(minds, f"{folder}/minds")
        log, port = Path(folder) / "log", free_port()
        settings = {
            "DOMINDS_DATA_DIR": f"{folder}/var",
            "DOMINDS_MINDS_DIR": f"{folder}/minds",
            "DJANGO_SUPERUSER_USERNAME": NAME,
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)],
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            eventually(lambda: "Dominds is at" in log.read_text() or process.poll() is not None, 90)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


class Recorder:
    """Frames of one page, each shown for its own time."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def take(self, ms: int) -> None:
        picture = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        height = picture.height * GIF_WIDTH // picture.width
        self.frames.append(picture.resize((GIF_WIDTH, height), Image.Resampling.LANCZOS))
        self.times.append(ms)

    def write(self, path: Path) -> None:
        together = Image.new("RGB", (GIF_WIDTH, sum(frame.height for frame in self.frames)))
        for number, frame in enumerate(self.frames):
            together.paste(frame, (0, number * frame.height))
        colours = together.quantize(GIF_COLOURS, dither=Image.Dither.NONE)
        first, *rest = (frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in self.frames)
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, optimize=True)


def open_page(browser: Browser, address: str, size: tuple[int, int], scheme: str = "light") -> Page:
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
    )
    page.goto(f"{address}/login/")
    page.fill("[name=username]", NAME)
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(f"{address}/")
    return page


def new_dialog(page: Page, address: str, agent: str, *texts: str) -> None:
    """Open a dialog through the API of the page's own session, and say these in turn."""
    csrf = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"].startswith("csrf"))
    answer = page.request.post(
        f"{address}/api/dialogs", data={"agent": agent}, headers={"X-CSRFToken": csrf, "Referer": address}
    )
    page.goto(f"{address}/d/{answer.json()['id']}/")
    for text in texts:
        send(page, text)
        settle(page)


def send(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def settle(page: Page) -> None:
    page.wait_for_timeout(600)
    expect(page.locator("#state")).to_have_attribute("data-state", re.compile("idle|suspended|waiting"), timeout=60_000)
    page.wait_for_timeout(400)


def story(page: Page, address: str) -> None:
    """A conversation that nears its budget and is broken down."""
    new_dialog(page, address, "demo-breaking")
    record = Recorder(page)
    record.take(SECOND)
    for number, text in enumerate(["Who are you?", "next day", "next day", "next day", "next day", "next day"]):
        page.fill("#text", text)
        if number < 2:
            record.take(SECOND)
        page.press("#text", "Enter")
        for _ in range(3 if number < 2 else 2):
            page.wait_for_timeout(450)
            record.take(SECOND // 2)
        settle(page)
        record.take(SECOND)
    page.locator("#entries").get_by_text("Context shortened").last.scroll_into_view_if_needed()
    page.mouse.move(600, 400)
    page.mouse.wheel(0, -120)
    page.wait_for_timeout(500)
    record.take(4 * SECOND)
    record.write(FOLDER / "story.gif")
    page.screenshot(path=FOLDER / "dialog-light.png")
    page.goto(f"{page.url}context/")
    expect(page.locator("#moment")).to_be_visible()
    page.screenshot(path=FOLDER / "context.png")


def team(page: Page, address: str) -> None:
    """A lead whose reader has reported, and whose clerk asks a person."""
    new_dialog(page, address, "lead")
    send(page, "Plan the trip")
    expect(page.locator("#team-panel .pill.warn")).to_be_visible(timeout=60_000)
    expect(page.locator("#team-panel")).to_contain_text("reported", timeout=60_000)
    page.screenshot(path=FOLDER / "team.png")


def main() -> None:
    with product() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        story(open_page(browser, address, WIDE), address)
        dark = open_page(browser, address, WIDE, "dark")
        new_dialog(dark, address, "demo-autocompaction", *["Go on"] * 6)
        dark.screenshot(path=FOLDER / "dialog-dark.png")
        narrow = open_page(browser, address, NARROW)
        new_dialog(narrow, address, "demo-stubborn", *["Remember this."] * 4)
        narrow.screenshot(path=FOLDER / "suspended-narrow.png")
        wide = open_page(browser, address, WIDE)
        wide.goto(f"{address}/q4h/")
        wide.get_by_role("link", name="3 forced attempts").click()
        wide.wait_for_load_state()
        wide.screenshot(path=FOLDER / "critical-question.png")
        browser.close()
    with product(ROOT / "examples" / "team") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        team(open_page(browser, address, WIDE), address)
        browser.close()


if __name__ == "__main__":
    main()
