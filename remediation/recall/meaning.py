"""Vectors of passages, which tell their meaning beside their words: their form, and their nearness to a query.

A number takes a byte, a passage ``WIDTH`` of them. Rounded so, the share of evidence found stays the same.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remediation.recall.ranking import Floats
from remediation.similarity.minilm import WIDTH, Array

LARGEST = 127  # of a byte
MOST_PARTS = 32  # of a turn, that get vectors, a choice: longer ones are mostly logs and files, which words tell apart

Bytes = NDArray[np.int8]


def pack(vectors: Array) -> bytes:
    """Round each row so that its largest number fits a byte. Lengths are lost, and do not matter."""
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.float32(1e-9))
    rounded: Bytes = np.rint(vectors * (LARGEST / largest)).astype(np.int8)
    return rounded.tobytes()


def unpack(content: bytes, passages: int) -> Bytes | None:
    """Return a row for each of a turn's passages; None if these are not the ones that the bytes were made of."""
    return np.frombuffer(content, np.int8).reshape(passages, WIDTH) if len(content) == passages * WIDTH else None


class Vectors:
    """The vectors of an index's entries, as far as they are known."""

    AT_ONCE = 4_096  # rows computed together: 6 MB

    def __init__(self) -> None:
        self._rows = np.zeros((0, WIDTH), np.int8)
        self._known = np.zeros(0, bool)

    def put(self, entries: Sequence[int], rows: Bytes) -> None:
        if not len(entries):
            return
        missing = max(entries) + 1 - len(self._known)
        if missing > 0:
            further = max(missing, len(self._known))  # doubled, so that each row is copied a few times only
            self._rows = np.concatenate((self._rows, np.zeros((further, WIDTH), np.int8)))
            self._known = np.concatenate((self._known, np.zeros(further, bool)))
        self._rows[entries] = rows
        self._known[entries] = True

    def known(self, entries: int) -> NDArray[np.bool_]:
        """Tell which of the first ``entries`` have a vector."""
        known = np.zeros(entries, bool)
        known[: len(self._known)] = self._known[:entries]
        return known

    def likeness(self, query: Array, entries: int) -> Floats:
        """Return each entry's cosine to the query; 0 where it is negative or not known."""
        result = np.zeros(entries)
        for start in range(0, min(entries, len(self._rows)), self.AT_ONCE):
            rows = self._rows[start : min(start + self.AT_ONCE, entries)].astype(np.float32)
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            result[start : start + len(rows)] = np.maximum(rows @ query, 0) / np.maximum(lengths, 1)
        return result
