"""How much images and files take up, and who cannot see them."""

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import FilePart, ImagePart, Message, Request, Role
from dominds.llm.models.model import ModelInfo
from dominds.llm.providers.anthropic_messages import ANTHROPIC
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from dominds.llm.providers.openai_responses import OPENAI
from dominds.llm.providers.parts import part_tokens, pixels_of, unseen_reason
from tests.dominds.llm.asking import info


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    """With an application segment, padding, and a table before its frame."""
    segment = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + bytes(10)
    table = b"\xff\xc4" + struct.pack(">H", 4) + bytes(2)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 8, 8, height, width, 3)
    return b"\xff\xd8" + segment + b"\xff" + table + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp(name: bytes, data: bytes) -> bytes:
    body = b"WEBP" + name + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height))


@given(
    st.sampled_from([png, jpeg, gif, webp_extended, webp_lossless, webp_lossy]),
    st.integers(1, 16_000),
    st.integers(1, 16_000),
)
def test_the_size_stands_in_the_head(make: object, width: int, height: int) -> None:
    assert callable(make)
    assert pixels_of(make(width, height)) == (width, height)


@given(
    st.sampled_from([png(9, 9), jpeg(9, 9), gif(9, 9), webp_extended(9, 9), webp_lossy(9, 9), b"<svg>"]),
    st.integers(0, 40),
)
def test_a_damaged_head_states_none(content: bytes, kept: int) -> None:
    assert pixels_of(content[:kept]) in (None, (9, 9))


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        (info(ANTHROPIC), (280, 280), 100),  # 10 x 10 squares of 28 pixels
        (info(ANTHROPIC), (281, 1), 11),
        (info(ANTHROPIC), (1_000, 1_000), 1_296),  # 36 x 36
        (info(ANTHROPIC), (8_000, 8_000), 4_784),
        (info(OPENAI), (1_024, 1_024), 1_024),  # 32 x 32
        (info(OPENAI), (4_000, 4_000), 2_500),
        (info(OPENAI_COMPATIBLE, image_tokens=1_120), (4_000, 10), 1_120),
    ],
)
def test_an_image_takes_up_what_its_provider_says(model: ModelInfo, size: tuple[int, int], tokens: int) -> None:
    assert part_tokens(ImagePart("image/png", png(*size)), model) == tokens


@given(st.integers(1, 30_000), st.integers(1, 30_000))
def test_no_image_takes_up_nothing_or_more_than_the_most(width: int, height: int) -> None:
    for kind in (ANTHROPIC, OPENAI, OPENAI_COMPATIBLE):
        assert 1 <= part_tokens(ImagePart("image/png", png(width, height)), info(kind)) <= kind.part_sizes.most_patches


def test_an_image_of_unknown_size_counts_as_the_largest() -> None:
    assert part_tokens(ImagePart("image/tiff", b"II*"), info(ANTHROPIC)) == 4_784


def test_a_document_counts_by_its_pages_and_text_by_its_characters() -> None:
    pdf = b"%PDF-1.7 /Type /Pages /Kids [] /Type /Page /Type/Page\n"
    assert part_tokens(FilePart("a.pdf", "application/pdf", pdf), info(ANTHROPIC)) == 2 * 3_000
    assert part_tokens(FilePart("a.pdf", "application/pdf", b"%PDF"), info(ANTHROPIC)) == 3_000
    assert part_tokens(FilePart("a.txt", "text/plain", b"x" * 400), info(ANTHROPIC)) == 100


def test_a_blind_model_is_named_with_the_way_out() -> None:
    parts = (ImagePart("image/png", b""), FilePart("a.pdf", "application/pdf", b""))
    request = Request("a-model", "", (Message(Role.USER, "Look", parts=parts),))
    model = info(OPENAI_COMPATIBLE, modalities=("text",))
    assert unseen_reason(request, model) == (
        "stub/a-model takes no file and no image. Choose a model that does, or leave it out; "
        "where the model does, add it to its modalities in the server's configuration."
    )
    assert "no file." in unseen_reason(request, replace(model, modalities=("text", "image")))
    assert unseen_reason(request, info(ANTHROPIC)) == ""
