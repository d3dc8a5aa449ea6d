"""Files of messages by way of ``/api``, ``/v1`` and the page: stored, shown, exported, and seen by nobody else."""

import base64
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import forks, messages
from dialogs.actions.forks import Branch
from dialogs.context.units import unit_from_json, unit_to_json
from dialogs.context.view import view_of
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.parsing import parse
from dialogs.models import ApiKey, Attachment, Dialog
from dialogs.queries import export
from dialogs.runtime.driver import drive
from dominds.llm.messages import ImagePart, Message, Role
from remediation.context import Unit, UnitKind, UnitRole
from tests.dialogs.browsing import HTMX, asked_dialog, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog
from tests.dialogs.html_tree import in_one_line
from tests.pixels import coded, picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return make_dialog()


def caller_of(dialog: Dialog) -> Client:
    return Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})


def posted(dialog: Dialog, **body: Any) -> Any:
    address = f"/api/dialogs/{dialog.pk}/messages"
    return caller_of(dialog).post(address, orjson.dumps(body), content_type="application/json")


def uploads(*files: tuple[str, bytes]) -> list[SimpleUploadedFile]:
    return [SimpleUploadedFile(name, content) for name, content in files]


# -- /api --------------------------------------------------------------------------------------------------------------


def test_what_a_program_attaches_is_read_back_byte_for_byte(dialog: Dialog) -> None:
    files = [{"name": "a.jpg", "data": coded(picture())}, {"name": "b.txt", "data": coded(b"tea")}]
    assert posted(dialog, text="look", attachments=files, client_message_id="1").status_code == 202
    assert posted(dialog, text="look", attachments=files, client_message_id="1").json()["seq"] == 1
    other = posted(dialog, text="look", attachments=files[1:], client_message_id="1")
    assert other.json()["error"]["code"] == "client_message_id_reused"
    (turn,) = caller_of(dialog).get(f"/api/dialogs/{dialog.pk}/turns").json()
    image, text = turn["attachments"]
    assert (image["name"], image["media_type"], image["width"], image["height"]) == ("a.jpg", "image/png", 64, 48)
    assert turn["text"] == 'look\n\n<file name="b.txt">\ntea\n</file>' and text["chars"] == len(turn["text"]) - 4
    answer = caller_of(dialog).get(f"/api/dialogs/{dialog.pk}/images/{image['sha256']}")
    assert (answer.content, answer["Content-Type"]) == (picture(), "image/png")
    assert Attachment.objects.count() == 1


def test_an_image_alone_is_a_message_and_names_the_dialog(dialog: Dialog) -> None:
    assert posted(dialog, text="", attachments=[{"name": "plan.png", "data": coded(picture())}]).status_code == 202
    assert (
        posted(dialog, text="", attachments=[]).json()["error"]["message"]
        == "The message is empty. Write something to send."
    )
    dialog.refresh_from_db()
    assert dialog.title == "plan.png"


@pytest.mark.parametrize("data", ["nonsense!", coded(b"%PDF-\x00"), coded(picture()[:-20]), ""])
def test_what_is_refused_is_not_stored(dialog: Dialog, data: str) -> None:
    answer = posted(dialog, text="look", attachments=[{"name": "a", "data": data}])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert "“a” is" in answer.json()["error"]["message"]
    assert not dialog.turns.exists() and not Attachment.objects.exists()


def test_exports_hold_images_and_rewrites_name_them(dialog: Dialog) -> None:
    posted(dialog, text="look", attachments=[{"name": "a.png", "data": coded(picture())}])
    drive(dialog.pk)
    whole = orjson.loads("".join(export.as_json(dialog)))
    assert base64.b64decode(whole["images"][0]["data"]) == picture()
    assert whole["images"][0]["sha256"] == whole["turns"][0]["attachments"][0]["sha256"]
    assert "[Image “a.png” (64 × 48 pixels)]" in "".join(export.as_markdown(dialog))
    units = caller_of(dialog).get(f"/api/dialogs/{dialog.pk}/context").json()["units"]
    assert units[0]["text"] == "look\n[Image “a.png” (64 × 48 pixels)]"


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_takes_files_and_shows_them(dialog: Dialog) -> None:
    browser = browser_of(dialog.owner)
    address = f"/d/{dialog.pk}/messages/"
    hostile = uploads(('<img src="x">.png', picture()), ("notes.md", b"# <script>alert(1)</script>"))
    assert browser.post(address, {"text": "look\r\nhere", "attachments": hostile}).status_code == 302
    image = Attachment.objects.get()
    html = browser.get(f"/d/{dialog.pk}/").content.decode()
    shown_image = f'<img src="/d/{dialog.pk}/images/{image.sha256}/" alt="Attached image img src= x .png" width="64"'
    assert shown_image in in_one_line(html)
    assert ">look\nhere</div>" in html and "# &lt;script&gt;alert(1)" in html
    shown = browser.get(f"/d/{dialog.pk}/images/{image.sha256}/")
    assert shown.content == picture()
    assert shown["X-Content-Type-Options"] == "nosniff" and shown["Content-Disposition"].startswith("inline;")
    assert shown["Content-Security-Policy"] == "default-src 'none'; sandbox"


def test_a_refused_file_leaves_the_words_where_they_are(dialog: Dialog) -> None:
    given = {"text": "look", "attachments": uploads(("a.pdf", b"%PDF-\x00"))}
    answer = browser_of(dialog.owner).post(f"/d/{dialog.pk}/messages/", given, headers=HTMX)
    assert answer.status_code == 400
    assert "“a.pdf” is damaged" in answer.content.decode()


def test_an_answer_to_a_question_takes_words_alone(script: Script) -> None:
    dialog, question = asked_dialog(script)
    given = {"text": "EUR", "from": "dialog", "attachments": uploads(("a.png", picture()))}
    answer = browser_of(dialog.owner).post(f"/q4h/{question.pk}/answer/", given, headers=HTMX)
    question.refresh_from_db()
    assert (answer.status_code, question.state) == (400, "open")
    assert "An answer takes words alone" in answer.content.decode() + str(answer.headers)


def test_nobody_else_sees_an_image(dialog: Dialog) -> None:
    posted(dialog, text="look", attachments=[{"name": "a.png", "data": coded(picture())}])
    image, stranger = Attachment.objects.get(), make_dialog()
    for owner, place in ((stranger.owner, dialog), (stranger.owner, stranger), (dialog.owner, stranger)):
        assert browser_of(owner).get(f"/d/{place.pk}/images/{image.sha256}/").status_code == 404
        key = {"Authorization": f"Bearer {create_key(owner)}"}
        assert Client(headers=key).get(f"/api/dialogs/{place.pk}/images/{image.sha256}").status_code == 404
    assert Client().get(f"/d/{dialog.pk}/images/{image.sha256}/").status_code == 302
    assert Client().get(f"/api/dialogs/{dialog.pk}/images/{image.sha256}").status_code == 401


def test_a_stored_view_names_images_without_their_bytes() -> None:
    message = Message(
        Role.USER,
        "look",
        parts=tuple(
            ImagePart("image/png", b"", "a.png", "ab12", 99, (640, 480), detail, at)
            for detail, at in (("", None), ("low", None), ("", 0), ("low", 3))
        ),
    )
    unit = Unit("u", UnitKind.MESSAGE, UnitRole.USER, (message,), (1,))
    assert unit_from_json(orjson.loads(orjson.dumps(unit_to_json(unit, original=False)))) == unit


def test_branches_hold_the_images_of_what_they_copy(dialog: Dialog) -> None:
    posted(dialog, text="look", attachments=[{"name": "a.png", "data": coded(picture())}])
    drive(dialog.pk)
    fork = forks.fork(Branch(dialog.pk, 2, dialog.owner))
    edited = forks.edit(Branch(dialog.pk, 1, dialog.owner), "look closely")
    for branch in (fork, edited):
        (kept,) = branch.turns.get(role="user").attachments or []
        assert bytes(branch.attachments.get(sha256=kept["sha256"]).content) == picture()
    assert [message.parts[0].name for message in view_of(edited).messages] == ["a.png"]


def test_the_same_image_is_stored_once(dialog: Dialog) -> None:
    for name in ("a.png", "b.png"):
        posted(dialog, text="look", attachments=[{"name": name, "data": coded(picture())}] * 2)
    assert dialog.attachments.count() == 1
    assert [file["name"] for file in dialog.turns.get(seq=2).attachments or ()] == ["b.png", "b.png"]


# -- /v1 ---------------------------------------------------------------------------------------------------------------


def part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def asked(*contents: Any, agent: str = "a") -> bytes:
    """User messages, with an answer between each two of them."""
    texts = [message for content in contents for message in ({"role": "user", "content": content}, ANSWER)]
    return orjson.dumps({"model": agent, "messages": texts[:-1]})


ANSWER = {"role": "assistant", "content": "Nice."}
PICTURE = [{"type": "text", "text": "look"}, part(f"data:image/png;base64,{coded(picture())}")]
OTHER = [{"type": "text", "text": "look"}, part(f"data:image/png;base64,{coded(picture('PNG', (9, 9)))}")]


def test_a_client_goes_on_with_the_dialog_that_holds_its_images(script: Script) -> None:
    script({"text": "Nice."})
    key, agent = ApiKey.objects.get(pk=_key()), make_dialog().agent

    def begun(*contents: Any) -> Dialog:
        run = conversations.begin(key, parse(asked(*contents, agent=agent.pk)))
        drive(run.dialog_id)
        return Dialog.objects.get(pk=run.dialog_id)

    first = begun(PICTURE)
    assert begun(PICTURE, "and now?") == first and first.attachments.count() == 1
    other = begun(OTHER, "and now?")  # the same words beside another image are another conversation
    assert other != first and other.attachments.count() == 1
    kept = other.turns.get(seq=1)
    assert (kept.text, [file["width"] for file in kept.attachments or ()]) == ("look", [9])

    branch = begun(PICTURE, "or rather?")  # goes on from an older place: the image comes along
    assert branch != first and bytes(branch.attachments.get().content) == picture()


def _key() -> int:
    owner = UserFactory.create()
    create_key(owner)
    return int(ApiKey.objects.get(owner=owner).pk)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://example.com/a.png", "Send it as a data URL (data:image/png;base64,...): nothing is fetched"),
        ("file:///etc/passwd", "Send it as a data URL"),
        ("data:image/png;base64,!!!", "“image” is not base64."),
        (f"data:image/png;base64,{coded(b'%PDF-' + bytes(9))}", "“image” is damaged"),
    ],
)
def test_an_image_from_elsewhere_is_refused_by_name(url: str, sentence: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(asked([part(url)]))
    assert refused.value.status == 400 and str(refused.value.param).startswith("messages[0].content")
    assert sentence in refused.value.message


def test_a_file_part_of_text_is_text() -> None:
    file = {"type": "file", "file": {"filename": "a.txt", "file_data": f"data:text/plain;base64,{coded(b'tea')}"}}
    (answer,) = parse(asked([{"type": "text", "text": "read"}, file])).messages
    assert (answer.text, answer.attached[0].name, answer.attached[0].pixels) == ("read", "a.txt", None)


def test_a_message_with_an_image_is_no_answer_to_a_question(script: Script) -> None:
    dialog, _ = asked_dialog(script)
    create_key(dialog.owner)
    body = {**orjson.loads(asked(PICTURE, agent=dialog.agent_id)), "metadata": {"dialog_id": str(dialog.pk)}}
    with pytest.raises(ApiError, match="waits for an answer in words"):
        conversations.begin(ApiKey.objects.get(owner=dialog.owner), parse(orjson.dumps(body)))
    messages.stop(dialog.pk)
