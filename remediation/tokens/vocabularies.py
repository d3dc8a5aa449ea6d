"""Tokenizers built from files, without a network: from those in ``data``, or from a Hugging Face file of the user's."""

import gzip
import json
import re
import threading
from binascii import a2b_base64
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import tiktoken
import tokenizers

Encode = Callable[[str], int]  # text to number of tokens; raises whatever its library raises

# Longer texts are counted in pieces, cut at line or word ends: in very long runs of blanks tiktoken's regular
# expression exceeds its limit of backtracking. A cut adds less than one token.
PIECE_CHARACTERS = 50_000

BYTE_PAIR_FILES = ("cl100k_base", "o200k_base", "llama3", "tekken")  # NAME.bpe.gz
HUGGING_FACE_FILES = ("llama2", "mistral")  # NAME.json.gz
# A variant of o200k_base in which each digit is one token: the original groups up to three. It stands in for
# vocabularies that do not come with the product, and that differ from o200k_base in numbers more than elsewhere.
SINGLE_DIGITS = "o200k_single_digits"
DIGIT_GROUP = re.compile(r"[0-9]{2,3}")

_built: dict[str, Encode] = {}
_building = threading.Lock()


class TokenizerUnavailable(Exception):
    """No tokenizer can be built under this name."""


def load(name: str) -> Encode:
    """Return the token count of the vocabulary ``name``, or of the Hugging Face file at that path.

    Each is built once per process. Raises ``TokenizerUnavailable``; the next call tries again, so that a repaired file
    is found.
    """
    with _building:
        if name not in _built:
            _built[name] = _build(name)
        return _built[name]


def _build(name: str) -> Encode:
    try:
        if name in BYTE_PAIR_FILES:
            return _byte_pair(name, _read_shipped(f"{name}.bpe.gz"))
        if name in HUGGING_FACE_FILES:
            return _hugging_face(_read_shipped(f"{name}.json.gz"))
        if name == SINGLE_DIGITS:
            return _single_digits(_built.get("o200k_base") or _build("o200k_base"))
        return _hugging_face(Path(name).expanduser().read_bytes())
    except Exception as error:  # tokenizers raises bare Exception for a malformed file
        raise TokenizerUnavailable(
            f"No tokenizer could be built from {name!r} ({error}). Expected one of "
            f"{', '.join((*BYTE_PAIR_FILES, SINGLE_DIGITS, *HUGGING_FACE_FILES))}, or the path of a Hugging Face "
            "tokenizer.json."
        ) from error


def _read_shipped(file_name: str) -> bytes:
    return gzip.decompress((resources.files(__package__) / "data" / file_name).read_bytes())


def _byte_pair(name: str, content: bytes) -> Encode:
    header, *ranked = content.decode("ascii").split("\n")
    parts = json.loads(header)
    ranks = {a2b_base64(token): rank for rank, token in enumerate(ranked)}
    encoding = tiktoken.Encoding(
        name, pat_str=parts["pat_str"], mergeable_ranks=ranks, special_tokens=parts["special_tokens"]
    )
    ranks.clear()  # the encoding works on its own copy, and this one takes 25 MB
    return lambda text: len(encoding.encode_to_numpy(text, disallowed_special=()))


def _single_digits(encode: Encode) -> Encode:
    return lambda text: encode(text) + sum(len(group) - 1 for group in DIGIT_GROUP.findall(text))


def _hugging_face(content: bytes) -> Encode:
    tokenizer = tokenizers.Tokenizer.from_buffer(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return encode


def pieces(text: str) -> list[str]:
    """Split ``text`` into parts of at most PIECE_CHARACTERS, cut after a line or before a word where possible."""
    parts = []
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = start + PIECE_CHARACTERS
        line_end = text.rfind("\n", start + PIECE_CHARACTERS // 2, end)
        word_end = text.rfind(" ", start + PIECE_CHARACTERS // 2, end)
        cut = line_end + 1 if line_end > 0 else word_end if word_end > 0 else end
        parts.append(text[start:cut])
        start = cut
    parts.append(text[start:])
    return parts
