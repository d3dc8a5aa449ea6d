"""Files of exports: archives, damaged ones, and those that become large when they are read."""

import io
import json
import resource
import zipfile
from collections.abc import Callable

import pytest

from dialogs.extras.imports.files import UnknownExport, conversations_in
from dialogs.extras.imports.reading_process import conversations_apart
from tests.dialogs.extras.imports import exports
from tests.dialogs.extras.imports.exports import spoken


def test_an_archive_is_read_as_its_service_sends_it() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("user.json", json.dumps({"id": "u"}))
        archive.writestr("data/conversations-000.json", json.dumps(exports.chatgpt()))
        archive.writestr("data/conversations-001.json", json.dumps(exports.claude()))
    packed.seek(0)
    assert [message.source for message in conversations_in(packed, "export.zip")] == ["chatgpt:6b0f-1", "claude:c-1"]


@pytest.mark.parametrize(
    "name",
    ["conversations.json", "a/b/Conversations (1).JSON", "a\\conversations.json", "chat-export-17.json", "c.jsonl"],
)
def test_an_archive_may_name_its_files_otherwise(name: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"__MACOSX/._{name}", b"\x00\x05")
        archive.writestr(name, json.dumps(exports.claude()[0]))
    assert [one.source for one in conversations_in(packed, "export.zip")] == ["claude:c-1"]


def test_a_damaged_file_of_an_archive_ends_only_itself() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("conversations-000.json", b"{bad")
        archive.writestr("conversations-001.json", json.dumps(exports.claude()))
    good, bad = conversations_in(packed, "export.zip")
    assert good.source == "claude:c-1"
    assert "is not JSON" in bad.problem


def test_a_damaged_character_costs_no_more_than_itself() -> None:
    content = json.dumps({"messages": [{"role": "user", "content": "Zoë"}]}, ensure_ascii=False).encode("latin-1")
    (payload,) = conversations_in(io.BytesIO(content), "a.json")
    assert spoken(payload) == [("user", "Zo\ufffd")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b"[]", "no conversation"),
        (b'{"a": 1}', "no conversation"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_export_is_refused_with_what_is_known(content: bytes, says: str) -> None:
    with pytest.raises(UnknownExport, match=says) as refused:
        list(conversations_in(io.BytesIO(content), "a.json"))
    assert "Open WebUI" in str(refused.value)


def test_a_file_that_is_too_large_is_not_read_whole() -> None:
    with pytest.raises(UnknownExport, match="more than 10 bytes"):
        list(conversations_in(io.BytesIO(b" " * 11), "a.json", most_bytes=10))


def zipped(count: int, content: bytes, way: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", way) as archive:
        for number in range(count):
            archive.writestr(f"conversations-{number}.json", content)
    return packed


DEEP = b'{"mapping": ' * 50_000
CHAT = json.dumps([{"role": "user", "content": "word " * 1_000}] * 200).encode()  # a megabyte, like an export


def nested() -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("takeout/export.zip", zipped(1, CHAT).getvalue())
    return packed


def broken() -> io.BytesIO:
    content = bytearray(zipped(1, CHAT).getvalue())
    content[200:300] = bytes(100)
    return io.BytesIO(content)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (lambda: zipped(1, b"[" + b"[]," * 5_000_000 + b"[]]"), "tiny parts"),
        (lambda: zipped(1, b"[" + b'{"bbbbbbbbbbbb":1},' * 820_000 + '"😀"]'.encode()), "more than 256 MB of memory"),
        (lambda: zipped(1_001, b"[]"), "more than 1,000"),
        (lambda: zipped(20, CHAT), "more than"),
        (lambda: zipped(1, DEEP), "is not JSON"),
        (broken, "cannot be read"),
        (nested, "holds another archive, takeout/export.zip"),
    ],
)
def test_what_a_file_becomes_is_bounded(file: Callable[[], io.BytesIO], says: str) -> None:
    packed, before = file(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnknownExport, match=says):
        list(conversations_apart(packed, "export.zip", 16_000_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_the_process_that_reads_tells_the_same() -> None:
    made = [exports.chatgpt(), exports.claude(), exports.open_webui(), exports.librechat(), exports.message_list()]
    for content in made:
        file = io.BytesIO(json.dumps(content).encode())
        assert list(conversations_apart(file, "a.json", 1_000_000)) == list(conversations_in(file, "a.json"))
