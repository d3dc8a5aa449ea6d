"""The workspace: one folder, read in parts, and nothing outside it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dialogs.context.tool_calls import Result
from dialogs.tools.registry import builtin_tools
from dialogs.tools.tool import Invocation, ToolArgumentsInvalid, read_arguments
from dialogs.tools.workspace import MAX_ENTRIES, MAX_READ_BYTES

SECRET = "the secret of the house next door"

Use = Callable[..., Result]


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    (tmp_path / "outside.txt").write_text(SECRET)
    (tmp_path / "work-next-door").mkdir()
    (tmp_path / "work-next-door" / "outside.txt").write_text(SECRET)
    folder = tmp_path / "work"
    folder.mkdir()
    settings.WORKSPACE_DIR = folder
    return folder


def use(tool: str, **arguments: Any) -> Result:
    run = builtin_tools()[tool].outside
    assert run is not None
    return run(Invocation(uuid4(), "call", arguments))


def test_a_file_is_read_whole(root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "a.txt").write_text("eins\nzwei\nüber\n")
    assert use("read_file", path="notes/a.txt") == Result("eins\nzwei\nüber")


def test_an_empty_file_is_empty(root: Path) -> None:
    (root / "a.txt").touch()
    assert use("read_file", path="a.txt") == Result("")


def test_lines_are_read_in_parts_with_a_note_how_to_continue(root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    first = use("read_file", path="a.txt", limit=3).text
    assert first.splitlines()[:3] == ["line 1", "line 2", "line 3"]
    assert first.endswith("read on with offset=4]")
    assert use("read_file", path="a.txt", offset=9, limit=5) == Result("line 9\nline 10")
    assert use("read_file", path="a.txt", offset=11).failed


def test_following_the_notes_reads_every_line_once(root: Path) -> None:
    lines = [f"{n:06d} {'x' * (n % 97)}" for n in range(5_000)]
    (root / "big.txt").write_text("\n".join(lines) + "\n")
    results: list[str] = []
    offset = 1
    while True:
        answer = use("read_file", path="big.txt", offset=offset)
        assert len(answer.text.encode()) <= MAX_READ_BYTES + 200
        body, _, note = answer.text.rpartition("\n[lines ")
        results += (body if note and body else answer.text).splitlines()
        if not body:
            break
        offset = int(note.split("offset=")[1].rstrip("]"))
    assert results == lines


def test_a_line_longer_than_one_read_is_read_by_bytes(root: Path) -> None:
    content = "0123456789" * 10_000  # 100,000 bytes
    (root / "one.txt").write_text(content)
    first = use("read_file", path="one.txt").text
    assert first.endswith(f"read on with byte_offset={MAX_READ_BYTES}]")
    rest = use("read_file", path="one.txt", byte_offset=MAX_READ_BYTES).text
    assert first[:MAX_READ_BYTES] + rest == content
    assert use("read_file", path="one.txt", byte_offset=10**9) == Result("")


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"caf\xe9", bytes(range(128, 256))])
def test_what_is_not_text_is_refused_clearly(root: Path, content: bytes) -> None:
    (root / "picture").write_bytes(content)
    answer = use("read_file", path="picture")
    assert answer.failed
    assert "picture is binary or not UTF-8" in answer.text


def test_a_character_across_the_sample_is_no_reason_to_refuse(root: Path) -> None:
    (root / "a.txt").write_text("x" + "é" * 10_000)
    assert not use("read_file", path="a.txt").failed


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "notes/../../outside.txt",
        "/etc/passwd",
        "..",
        "a\0b",
        "missing.txt",
        "link",
        "folderlink/outside.txt",
        "loop",
        "x" * 5_000,
        "../work-next-door/outside.txt",
        "~/x",
        "notes\\..\\x",
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "list_files"])
def test_nothing_outside_is_reached(root: Path, path: str, tool: str) -> None:
    (root / "notes").mkdir()
    (root / "link").symlink_to(root.parent / "outside.txt")
    (root / "folderlink").symlink_to(root.parent)
    (root / "loop").symlink_to(root / "loop")
    answer = use(tool, path=path)
    assert answer.failed
    assert SECRET not in answer.text


def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / "a.txt").write_text("here")
    (root / "link").symlink_to("a.txt")
    assert use("read_file", path="link") == Result("here")


def test_a_pipe_does_not_block_the_worker(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert use("read_file", path="pipe").failed


def test_a_folder_is_listed_and_not_read(root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "b.txt").write_text("12345")
    (root / "a.txt").write_text("1")
    (root / "link").symlink_to("/etc")
    assert use("list_files").text.splitlines() == ["a.txt (1 bytes)", "link (link)", "notes/"]
    assert use("list_files", path="notes").text == "notes/b.txt (5 bytes)"
    assert "notes/b.txt (5 bytes)" in use("list_files", recursive=True).text
    assert "passwd" not in use("list_files", recursive=True).text
    assert use("read_file", path="notes").failed


def test_a_long_list_ends_with_a_note(root: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        (root / f"{number:04d}").touch()
    lines = use("list_files").text.splitlines()
    assert len(lines) == MAX_ENTRIES + 1
    assert "more than 500 entries" in lines[-1]


def test_without_a_workspace_the_answer_names_the_setting(tmp_path: Path, settings: Any) -> None:
    settings.WORKSPACE_DIR = tmp_path / "missing"
    assert "DOMINDS_WORKSPACE_DIR" in use("read_file", path="a").text


def test_arguments_are_checked() -> None:
    with pytest.raises(ToolArgumentsInvalid, match="offset"):
        read_arguments(builtin_tools()["read_file"], '{"path": "a", "offset": 0}')


@given(path=st.text(max_size=60))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_whatsoever_raises_or_leaks(root: Path, path: str) -> None:
    assert SECRET not in use("read_file", path=path).text
    use("list_files", path=path)
