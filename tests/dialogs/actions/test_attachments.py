"""What may be attached to a message: files are known by their content, whatever they are called."""

from pathlib import Path

import pytest

from dialogs.actions.attachments import check_files, from_base64, text_files, text_typed, text_with
from dialogs.context.images import bounds_of, oldest_beyond
from dialogs.errors import Invalid
from dominds.llm.catalog.catalog import current_catalog
from dominds.llm.models.model import ImageBounds
from tests.pixels import picture


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("GIF", "image/gif")],
)
def test_an_image_is_known_by_its_content(kind: str, media_type: str) -> None:
    (result,) = check_files([('../etc/"notes"\n<b>.txt', picture(kind))])
    assert (result.name, result.media_type, result.pixels) == ("notes b .txt", media_type, (64, 48))


def test_a_name_cannot_turn_its_own_end_around() -> None:
    (result,) = check_files([("bill\u202egnp.exe", b"tea")])
    assert result.name == "bill gnp.exe"


@pytest.mark.parametrize("text", ["<svg onload=alert(1)>", "\ufeffüber\r\n\tx", "{}", "<script>"])
def test_all_other_text_is_text(text: str) -> None:
    (result,) = check_files([("a.png", text.encode())])
    assert (result.media_type, result.pixels) == ("text/plain", None)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "“a.png” is empty. Leave it out."),
        (b"\x7fELF\x00\xff", "“a.png” is neither a PNG, JPEG, WebP or GIF image nor a PDF, Word, Excel or PowerPoint"),
        (b"%PDF-1.7\n\x00\xff", "“a.png” is damaged, or of a kind that is not known. Save it again"),
        ("Grüße".encode("latin-1"), "“a.png” is neither"),
        (b"plain\x07bell", "“a.png” is neither"),
        (
            picture("PNG", (8_001, 1)),
            "“a.png” has more than 8,000 pixels a side. DOMINDS_IMAGE_PIXELS sets this limit.",
        ),
        (b" " * 3_900_001, "“a.png” has more than 3,900,000 bytes. DOMINDS_ATTACHMENT_BYTES sets this limit."),
        *[
            (picture(kind)[:-40], "“a.png” is damaged: the image breaks off.")
            for kind in ("PNG", "JPEG", "WEBP", "GIF")
        ],
    ],
)
def test_what_no_model_takes_is_refused_by_a_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_files([("a.png", content)])
    assert refused.value.message.startswith(sentence)


def test_too_many_are_refused() -> None:
    with pytest.raises(Invalid, match=r"more than 10 attachments in one message\. DOMINDS_ATTACHMENTS sets"):
        check_files([("a", b"text")] * 11)


def test_base64_is_bounded_before_it_is_read() -> None:
    assert from_base64("a", "aGk=") == ("a", b"hi")
    with pytest.raises(Invalid, match="is not base64"):
        from_base64("a", "a!b")
    with pytest.raises(Invalid, match="DOMINDS_ATTACHMENT_BYTES"):
        from_base64("a", "A" * 6_000_000)


@pytest.mark.parametrize(
    ("sizes", "left_out"),
    [
        ([(1, 9)] * 4, 0),
        ([(1, 9)] * 5, 3),  # half of four are left, so that the next two change nothing
        ([(1, 9)] * 6, 3),
        ([(1, 9)] * 7, 3),
        ([(1, 9)] * 8, 6),
        ([(1, 60), (1, 30), (1, 30)], 2),  # of a hundred bytes
        ([(1, 60), (9, 500)], 1),  # the newest goes as it is: one message is bounded by itself
    ],
)
def test_the_oldest_images_are_left_out_a_few_at_a_time(sizes: list[tuple[int, int]], left_out: int) -> None:
    assert oldest_beyond([(*size, 0) for size in sizes], ImageBounds(4, 100)) == left_out


@pytest.mark.parametrize(
    ("large", "left_out"),
    [
        ([0, 0, 0, 0, 0, 0], 0),
        ([0, 0, 0, 0, 0, 1], 4),  # the newest allows four, of which two places are free again
        ([1, 0, 0, 0, 0, 0], 1),  # without it there is room for the others
        ([0, 1, 0, 0, 0, 0], 2),
        ([0, 1, 0, 0], 0),
    ],
)
def test_a_large_image_leaves_room_for_fewer(large: list[int], left_out: int) -> None:
    bounds = ImageBounds(most=10, most_bytes=100, large=2_000, most_with_large=4)
    assert oldest_beyond([(1, 9, one) for one in large], bounds) == left_out


@pytest.mark.parametrize(
    ("model", "bounds"),
    [
        ("anthropic/claude-opus-5-5", ImageBounds(100, 20_000_000, 2_000, 20)),
        ("openai/gpt-5.6-terra", ImageBounds(500, 20_000_000)),
        ("google/gemini-4-argon", ImageBounds(3_600, 14_000_000)),
        ("moonshot/kimi-k3", ImageBounds(20, 20_000_000)),  # by the settings, as its server's kind states none
    ],
)
def test_a_request_holds_the_images_that_its_server_takes(model: str, bounds: ImageBounds, tmp_path: Path) -> None:
    provider_id, model_id = model.split("/")
    assert bounds_of(current_catalog(tmp_path).model(provider_id, model_id)) == bounds


def test_text_files_are_found_again_behind_what_was_written() -> None:
    files = check_files([("a.txt", b"one\n</file>"), ("b.png", picture()), ("c.txt", "zwei 😀".encode())])
    stored = [{"name": file.name, "chars": len(file.block)} if file.block else {} for file in files]
    text = text_with("see <file>", files)
    assert text_typed(text, stored) == "see <file>"
    assert text_files(text, stored) == [("a.txt", "one\n</file>"), ("c.txt", "zwei 😀")]
