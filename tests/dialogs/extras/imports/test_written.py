"""Conversations as Markdown and plain text, as programs write them for people."""

import io
import zipfile

import pytest

from dialogs.extras.imports.conversation import Conversation
from dialogs.extras.imports.files import UnknownExport, conversations_in
from dialogs.queries.export import as_markdown
from dialogs.store.change import open_change
from tests.dialogs.extras.imports.exports import spoken
from tests.dialogs.factories import make_dialog


def read(text: str) -> Conversation:
    (payload,) = conversations_in(io.BytesIO(text.encode()), "chat.md")
    return payload


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n#### You:\nYes?\n\n#### ChatGPT:\nYes.\n",
        "# Conversation Export\n- title: T\n\n**User**:\n\nYes?\n\n**GPT-4o**:\n\nYes.\n",
        "# T\n\n## 🧑 User\n\nYes?\n\n---\n\n## 🤖 Assistant (gpt-4o)\n\nYes.\n\n---\n",
        "# T\n**Human:** Yes?\n\n**Claude:** Yes.\n",
        "# T\nUser: Yes?\nAssistant: Yes.\n",
        "\ufeff# T\r\n### USER\r\nYes?\r\n\r\n### ASSISTANT\r\nYes.\r\n",
    ],
)
def test_a_line_tells_who_speaks(text: str) -> None:
    payload = read(text)
    assert payload.title == "T"
    assert spoken(payload) == [("user", "Yes?"), ("assistant", "Yes.")]


def test_what_looks_otherwise_than_the_first_label_is_text() -> None:
    answer = "**User**: no.\n\n### Steps\n\n```\n### User\n```\n\n#### You\n\nUser: no"
    assert spoken(read(f"### User\n\nYes?\n\n### Assistant\n\n{answer}\n"))[1:] == [("assistant", answer)]


def test_a_block_of_code_without_its_end_hides_no_speaker() -> None:
    assert [who for who, _ in spoken(read("### User\n```py\nx\n### Assistant\nYes.\n### User\nBye\n"))] == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.django_db
def test_a_markdown_export_of_ours_is_read_as_it_was_said() -> None:
    dialog = make_dialog()
    with open_change(dialog.pk) as change:
        change.dialog.title = "Sums"
        change.turn("user", "answered", text="Add 2 and 4.")
        call = {"id": "c1", "name": "add", "arguments": '{"of": [2, 4]}'}
        change.turn("assistant", "complete", text="I add.", tool_calls=[call])
        change.turn("tool", "ok", text="```\n### User\n```", tool_call_id="c1", tool_name="add")
        change.turn("assistant", "stopped", text="Six.")
    dialog.refresh_from_db()
    payload = read("".join(as_markdown(dialog)))
    assert payload.title == "Sums"
    assert spoken(payload) == [
        ("user", "Add 2 and 4."),
        ("assistant", "I add."),
        ("tool", "```\n### User\n```"),
        ("assistant", "Six."),
    ]
    assert payload.messages[1].message.tool_calls[0].arguments == '{"of": [2, 4]}'


def test_an_archive_of_texts_is_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("chats/a.md", "## You\nOne?\n")
        archive.writestr("chats/b.txt", "User: Two?\n")
        archive.writestr("readme.md", "Nobody speaks.")
    packed.seek(0)
    results = list(conversations_in(packed, "chats.zip"))
    assert [spoken(one) for one in results] == [[("user", "One?")], [("user", "Two?")], []]
    assert "is neither JSON nor text that tells who speaks" in results[2].problem


@pytest.mark.parametrize("text", ["Dear me: a letter.\n", "# Result\n\n## Round 2\n", "role,content\nuser,hi\n", ""])
def test_a_text_in_which_nobody_speaks_is_refused(text: str) -> None:
    with pytest.raises(UnknownExport, match="“### User”"):
        read(text)
