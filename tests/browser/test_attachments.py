"""Files on their way into a message: chosen, pasted, dropped, taken out again by keys, sent and shown."""

import base64
import json
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Browser, Locator, Page, Response, Route, expect

from dialogs.actions import messages
from dialogs.models import Attachment
from tests.browser.conftest import LogIn, Opener, answered, eventually_on
from tests.harness.stack import Stack
from tests.pixels import picture

HAND = """([kind, name, media, data, text]) => {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type: media }));
    if (text) files.setData("text/plain", text);
    const event = kind === "paste"
        ? new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true })
        : new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true });
    document.querySelector(kind === "paste" ? "#text" : "#transcript").dispatchEvent(event);
}"""


def hand(page: Page, kind: str, name: str, media_type: str, content: bytes, text: str = "") -> None:
    """Paste or drop a file."""
    page.evaluate(HAND, [kind, name, media_type, base64.b64encode(content).decode(), text])


def test_files_are_attached_taken_out_sent_and_shown(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    dialog = open_dialog("short")
    items = page.locator("#attached li")
    chosen: Any = [
        {"name": "plan.png", "mimeType": "image/png", "buffer": picture("PNG", (1_200, 700), "orange")},
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"one\n" * 40},
    ]
    page.locator("#attachments").set_input_files(chosen)
    expect(items).to_have_count(2)
    hand(page, "paste", "image.png", "image/png", picture(), "words of a table")  # the words are what was meant
    hand(page, "paste", "shot.png", "image/png", picture())
    hand(page, "drop", "dropped.webp", "image/webp", picture("WEBP"))
    expect(items).to_have_count(4)
    expect(items.nth(3)).to_contain_text("dropped.webp")
    expect(items.nth(0).locator("canvas")).to_be_visible()
    expect(items.nth(1).locator("canvas")).to_be_hidden()
    page.set_viewport_size({"width": 360, "height": 760})
    assert page.evaluate("document.documentElement.scrollWidth") == 360

    remove = page.get_by_role("button", name="Remove shot.png")
    remove.focus()
    remove.press("Enter")
    expect(items).to_have_count(3)
    expect(page.get_by_role("button", name="Remove dropped.webp")).to_be_focused()

    offer_what_is_refused(page)
    assert complaints.pop().startswith("Response Status Error Code 400")
    page.press("#text", "Enter")  # without a word

    answered(page)
    expect(items).to_have_count(0)
    expect(page.locator("#attached-progress")).to_be_hidden()
    turn = page.locator(".turn-user")
    expect(turn.get_by_role("img")).to_have_count(2)
    image = turn.get_by_role("img", name="Attached image plan.png")
    assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1_200
    file = turn.locator("details")
    expect(file.locator(".plain")).to_be_hidden()
    file.locator("summary").click()
    expect(file.locator(".plain")).to_contain_text("one")
    with page.expect_popup() as opened:
        image.click()
    stored = Attachment.objects.get(dialog=dialog, name="plan.png")
    assert opened.value.url.endswith(f"/d/{dialog.pk}/images/{stored.sha256}/")
    check_room_before_it_is_there(page, image)


def offer_what_is_refused(page: Page) -> None:
    """Beside three files that are taken: at once, or when the server has looked at it."""
    items, error = page.locator("#attached li"), page.locator("#sending-error")
    hand(page, "drop", "long.txt", "text/plain", b"x" * 3_900_001)
    expect(error).to_contain_text(
        "“long.txt” was not attached. It has more than 3,900,000 bytes. DOMINDS_ATTACHMENT_BYTES"
    )
    hand(page, "drop", "all.zip", "application/zip", b"PK\x03\x04\x14\x00")
    expect(error).to_have_text(
        "“all.zip” was not attached. Only images (PNG, JPEG, WebP, GIF), PDF, Word, Excel and PowerPoint documents and "
        "text in UTF-8 can be attached."
    )
    hand(page, "drop", "old.txt", "text/plain", "naïve".encode("latin-1"))
    expect(error).to_contain_text("“old.txt” was not attached. Only images")
    expect(items).to_have_count(3)
    hand(page, "drop", "half.png", "image/png", picture()[:-20])
    expect(items).to_have_count(4)
    with page.expect_console_message(lambda message: message.type == "error" and "Code 400" in message.text):
        page.press("#text", "Enter")
    expect(error).to_contain_text("“half.png” is damaged")
    page.get_by_role("button", name="Remove half.png").click()


def check_room_before_it_is_there(page: Page, image: Locator) -> None:
    """What stands below an image does not move when it is loaded, however late."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/images/**", hold)
    page.reload()
    eventually_on(page, lambda: held)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")  # nothing else changes from here on
    room = image.bounding_box()
    assert room and room["height"] > 100 and image.evaluate("image => image.naturalWidth") == 0
    for route in held:
        route.continue_()
    assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1_200
    assert image.bounding_box() == room


def test_an_image_for_a_blind_model_is_refused_at_once(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    open_dialog("table")
    image: Any = {"name": "plan.png", "mimeType": "image/png", "buffer": picture()}
    page.locator("#attachments").set_input_files(image)
    expect(page.get_by_text("Its model sees no images. Choose one that does.")).to_be_visible()
    expect(page.locator("#attached li")).to_have_count(0)


def test_a_photograph_that_is_too_long_is_made_smaller(open_dialog: Opener, page: Page, complaints: list[str]) -> None:
    """As a telephone takes it: more pixels and bytes than models take."""
    dialog = open_dialog("short")
    page.evaluate(
        """async () => {
            const canvas = new OffscreenCanvas(2600, 1300);
            const context = canvas.getContext("2d");
            const noise = context.createImageData(2600, 1300);
            for (let at = 0; at < noise.data.length; at += 65536)
                crypto.getRandomValues(noise.data.subarray(at, at + 65536));
            context.putImageData(noise, 0, 0);
            const files = new DataTransfer();
            files.items.add(new File([await canvas.convertToBlob({ type: "image/png" })], "IMG_1.png"));
            const input = document.querySelector("#attachments");
            input.files = files.files;
            input.dispatchEvent(new Event("change"));
        }"""
    )
    expect(page.locator("#attached li")).to_contain_text("IMG_1.jpg")
    page.press("#text", "Enter")
    answered(page)
    kept = (dialog.turns.get(seq=1).attachments or [{}])[0]
    assert (kept["width"], kept["height"], kept["media_type"]) == (2_000, 1_000, "image/jpeg")


TAKE = """async () => {
    const camera = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480 } });
    const film = Object.assign(document.createElement("video"), { srcObject: camera, muted: true });
    await film.play();
    const canvas = new OffscreenCanvas(film.videoWidth, film.videoHeight);
    canvas.getContext("2d").drawImage(film, 0, 0);
    camera.getTracks().forEach((track) => track.stop());
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg" })).arrayBuffer());
    return [film.videoWidth, film.videoHeight, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))];
}"""


def test_a_photograph_of_the_camera_is_sent(stack: Stack, person: User, browser: Browser, log_in: LogIn) -> None:
    """On a telephone its own camera application gives the picture to the page; here Chromium's camera takes it, whose
    picture is given in the application's place."""
    dialog = messages.create_dialog(person, "short")
    connection.close()
    phone = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    log_in(phone, person)
    page = phone.new_page()
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    width, height, data = page.evaluate(TAKE)
    camera = page.get_by_role("button", name="Take a photograph")
    assert page.locator("#camera").get_attribute("capture") == "environment"
    for number in (1, 2):  # the same photograph again is another choice
        with page.expect_file_chooser() as chooser:
            camera.tap()
        photograph: Any = {"name": "image.jpg", "mimeType": "image/jpeg", "buffer": base64.b64decode(data)}
        chooser.value.set_files(photograph)
        expect(page.locator("#attached li")).to_have_count(number)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Send").tap()
    answered(page)
    kept = dialog.turns.get(seq=1).attachments or []
    assert [(one["width"], one["height"], one["media_type"]) for one in kept] == [(width, height, "image/jpeg")] * 2
    image = page.locator(".turn-user").get_by_role("img").first
    assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == width == 640
    phone.close()


def test_an_import_page_shows_how_far_an_export_has_come(
    open_dialog: Opener, page: Page, complaints: list[str]
) -> None:
    open_dialog("short")
    page.goto(page.url.split("/d/")[0] + "/import/")
    messages = [{"role": "user", "content": "Which soil?"}, {"role": "assistant", "content": "Loam."}]
    export = b"\n".join(
        json.dumps({"messages": [*messages, {"role": "user", "content": str(n)}]}).encode() for n in range(150)
    )
    page.get_by_label("Export").set_input_files({"name": "c.jsonl", "mimeType": "application/json", "buffer": export})
    sent: list[Route] = []
    answers: list[Response] = []

    def go_on() -> None:
        """The server may have read the file before the page has asked it once."""
        if sent and answers:
            sent.pop().continue_()

    def hold(route: Route) -> None:
        sent.append(route)
        go_on()

    def note(response: Response) -> None:
        if "/import/progress/" in response.url:
            answers.append(response)
            go_on()

    page.route("**/import/", hold)
    page.on("response", note)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="150 imported of 150 conversations")).to_be_visible()
    assert answers[0].ok
