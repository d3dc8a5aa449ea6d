"""Exports that become dialogs, each conversation once: by the command, the page and the API."""

import io
import json
import re
from base64 import b64decode
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions.attachments import check_files, store_images, text_with
from dialogs.actions.messages import create_dialog
from dialogs.models import Dialog, Turn
from dialogs.queries.export import many_as_json
from dialogs.store.change import open_change
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.extras.imports import exports
from tests.dialogs.factories import AgentFactory, UserFactory, send
from tests.dialogs.html_tree import in_one_line


def run(path: Path, content: Any, *options: str) -> str:
    out = io.StringIO()
    path.write_text(json.dumps(content))
    call_command("import", str(path), *options, stdout=out)
    return out.getvalue()


def turns_in(dialog: Dialog) -> Sequence[tuple[str, str, str]]:
    return list(dialog.turns.order_by("position").values_list("role", "status", "text"))


@pytest.mark.django_db(transaction=True)
def test_the_same_export_twice_makes_no_second_dialog(script: Script, tmp_path: Path) -> None:
    owner, agent = UserFactory.create(), AgentFactory.create(is_default=True)
    options = ("--owner", owner.username)
    file = tmp_path / "conversations.json"
    assert "1 would be imported, 0 left out." in run(file, exports.claude(), *options, "--dry-run")
    assert not Dialog.objects.exists()
    out = run(file, exports.claude(), *options)
    assert "Sum up the list." in out
    assert "without images and files (1), thoughts (1)" in out
    assert "1 imported, 0 left out." in out
    dialog = Dialog.objects.get(owner=owner, agent=agent)
    assert (dialog.source, dialog.state, dialog.active_at.year) == ("claude:c-1", "idle", 2026)
    assert [role for role, _, _ in turns_in(dialog)] == ["user", "assistant", "tool", "tool", "assistant"]
    again = run(file, exports.claude(), *options)
    assert "it is here already" in again
    assert "0 imported, 1 left out." in again
    assert Dialog.objects.count() == 1
    other = UserFactory.create()
    assert "1 imported" in run(file, exports.claude(), "--owner", other.username)


@pytest.mark.django_db(transaction=True)
def test_a_chat_that_hit_its_limit_elsewhere_goes_on_here(script: Script, tmp_path: Path) -> None:
    script({"text": "It was 4711."}, context_length=8_000)
    owner = UserFactory.create()
    agent = AgentFactory.create(context_policy="breaking", context_limit=6_000)
    messages = [{"role": "user", "content": "The code of the safe is 4711. Never write it down."}]
    for number in range(60):
        messages += [
            {"role": "assistant", "content": f"Part {number}: " + "the story goes on and on. " * 20},
            {"role": "user", "content": f"And part {number + 1}?"},
        ]
    run(tmp_path / "list.json", messages, "--owner", owner.username, "--agent", agent.pk)
    dialog = Dialog.objects.get(owner=owner)
    send(dialog, "What was the code of the safe?")
    assert dialog.state == "idle"
    assert dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq").text == "It was 4711."
    standing = dialog.remediations.get()
    assert standing.est_before > 6_000 > standing.est_after
    assert "4711" in json.dumps(standing.view)


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_stored_or_is_no_conversation_is_told(script: Script, tmp_path: Path) -> None:
    owner, agent = UserFactory.create(), AgentFactory.create()
    messages = [
        {
            "id": "a",
            "messages": [
                {"role": "user", "content": "nul \x00 and half \ud83d"},
                {"role": "assistant", "content": "x" * 1_000_001},
            ],
        },
        {"id": "b", "messages": [{"role": "assistant", "content": "Alone."}]},
    ]
    out = run(tmp_path / "list.json", messages, "--owner", owner.username, "--agent", agent.pk)
    assert "without messages of more than 1 MB (1)" in out
    assert "nobody says anything in it" in out
    (dialog,) = Dialog.objects.filter(owner=owner)
    assert turns_in(dialog) == [("user", "superseded", "nul \ufffd and half ?")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--owner", "nobody"), "no user"),
        (("--owner", "me"), "default agent"),
        (("--owner", "me", "--agent", "none"), "no agent"),
    ],
)
def test_the_command_says_what_is_missing(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    UserFactory.create(username="me")
    with pytest.raises(CommandError, match=says):
        run(tmp_path / "list.json", exports.message_list(), *options)


# -- The page ----------------------------------------------------------------------------------------------------------


def sent(owner: User, content: Any, agent: str, **more: str) -> Any:
    file = SimpleUploadedFile("conversations.json", json.dumps(content).encode())
    return browser_of(owner).post("/import/", {"file": file, "agent": agent, **more})


@pytest.mark.django_db(transaction=True)
def test_a_person_imports_an_export_on_the_page(script: Script) -> None:
    owner, agent = UserFactory.create(), AgentFactory.create()
    assert "Import conversations" in browser_of(owner).get("/dialogs/").content.decode()
    shown = browser_of(owner).get("/import/").content.decode()
    assert f'<option value="{agent.pk}"' in shown
    dry = in_one_line(sent(owner, exports.chatgpt(), agent.pk, dry_run="on").content.decode())
    assert re.search("1 would be imported of 1 conversation ?<", dry)
    assert not Dialog.objects.exists()
    waiting = browser_of(owner).get("/import/progress/").content.decode()
    asks_again = re.search(r'hx-get="([^"]+)"', waiting)
    assert asks_again and "0 conversations imported so far" in waiting
    message = in_one_line(sent(owner, exports.chatgpt(), agent.pk).content.decode())
    assert "1 conversation imported so far" in browser_of(owner).get(unescape(asks_again[1])).content.decode()
    dialog = Dialog.objects.get(owner=owner)
    assert f'<a href="/d/{dialog.pk}/">Rolls on a tray</a>' in message
    assert "messages of other branches (1)" in message
    again = in_one_line(sent(owner, exports.chatgpt(), agent.pk).content.decode())
    assert re.search("0 imported of 1 conversation ?<", again)
    assert "it is here already" in again
    refused = sent(owner, {"a": 1}, agent.pk)
    assert refused.status_code == 400
    said = refused.content.decode()  # the page lists what is known, so no message repeats it
    assert "holds no conversation in a known form." in said and "Known are" not in said


@pytest.mark.django_db(transaction=True)
def test_a_program_imports_an_export(script: Script) -> None:
    owner, agent = UserFactory.create(), AgentFactory.create()
    program = Client(headers={"Authorization": f"Bearer {create_key(owner)}"})

    def answer(content: Any, **fields: str) -> Any:
        file = SimpleUploadedFile("conversations.json", json.dumps(content).encode())
        answer = program.post("/api/import", {"file": file, "agent": agent.pk, **fields})
        return answer.status_code, answer.json()

    status, (one,) = answer(exports.chatgpt(), dry_run="true")
    assert (status, one["title"], one["reason"], one["dialog"]) == (200, "Rolls on a tray", None, None)
    assert not Dialog.objects.exists()
    status, (one,) = answer(exports.chatgpt())
    dialog = Dialog.objects.get(owner=owner)
    assert (status, one["dialog"], one["messages"]) == (200, str(dialog.pk), dialog.turns.count())
    assert one["left_out"]["messages of other branches"] == 1
    status, (one,) = answer(exports.chatgpt())
    assert (status, one["dialog"]) == (200, str(dialog.pk)) and "it is here already" in one["reason"]
    for given in (answer({"a": 1}), answer(exports.chatgpt(), agent="nobody")):
        assert given[0] == 400 and given[1]["error"]["code"] == "invalid"
    assert "Known are" in answer({"a": 1})[1]["error"]["message"]
    assert program.post("/api/import", {"agent": agent.pk}).status_code == 400, "no file"
    assert Dialog.objects.count() == 1


# -- Images ------------------------------------------------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
ADDRESS = f"data:image/png;base64,{PIXEL}"
ASKED = {"role": "user", "content": "What is it?"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content",
    [
        [
            {
                **ASKED,
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": ADDRESS}},
                ],
            }
        ],
        [
            {
                **ASKED,
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            }
        ],
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [{"text": "What is it?"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
                }
            ]
        },
        [
            {
                **ASKED,
                "parts": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "file", "mediaType": "image/png", "url": ADDRESS},
                ],
                "content": "",
            }
        ],
        [{**ASKED, "images": [PIXEL]}],
        [{**ASKED, "extra": [{"type": "imageFile", "name": "a.png", "base64Url": ADDRESS}]}],
        [{**ASKED, "files": [{"type": "base64", "name": "a.png", "mime": "image/png", "value": PIXEL}]}],
        {"chat": {"history": {"messages": {"q": {"id": "q", **ASKED, "files": [{"type": "image", "url": ADDRESS}]}}}}},
    ],
    ids=["OpenAI", "Anthropic", "Gemini", "AI SDK", "Ollama", "llama.cpp", "HuggingChat", "Open WebUI"],
)
def test_images_that_an_export_holds_come_with_it(tmp_path: Path, content: Any) -> None:
    owner, agent = UserFactory.create(), AgentFactory.create()
    out = run(tmp_path / "a.json", content, "--owner", owner.username, "--agent", agent.pk)
    assert "without" not in out
    turn = Turn.objects.get(dialog__owner=owner)
    assert turn.text == "What is it?"
    assert turn.attachments and [(file["width"], file["height"]) for file in turn.attachments] == [(1, 1)]
    assert bytes(turn.dialog.attachments.get().content) == b64decode(PIXEL)


@pytest.mark.django_db
def test_an_export_of_ours_brings_its_images_again(tmp_path: Path) -> None:
    owner, other = UserFactory.create(), UserFactory.create()
    dialog = create_dialog(owner, AgentFactory.create().pk, "Pictures")
    attached = check_files([("a.png", b64decode(PIXEL)), ("a.txt", b"Some words.")])
    with open_change(dialog.pk) as change:
        text = text_with("", attached)
        change.turn("user", "answered", text=text, attachments=store_images(dialog, attached))
    exported = json.loads("".join(many_as_json(owner, [dialog.pk])))
    assert "without" not in run(tmp_path / "a.json", exported, "--owner", other.username, "--agent", dialog.agent.pk)
    (turn,) = Turn.objects.filter(dialog__owner=other)
    assert turn.text == text and turn.attachments and turn.attachments[0]["name"] == "a.png"
    exported[0]["images"][0]["data"] = "broken"
    exported[0]["dialog"]["id"] = "another"
    out = run(tmp_path / "a.json", exported, "--owner", other.username, "--agent", dialog.agent.pk)
    assert "without images that cannot be attached (1)" in out
