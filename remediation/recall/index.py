"""An index in memory that grows by a turn at a time."""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from remediation.recall.passages import Passage
from remediation.recall.ranking import Corpus, Postings
from remediation.recall.words import words


class Index:
    """Passages in the order of the dialog; an entry's number is its place in that order."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self._passages: list[Passage] = []
        self._places: dict[int, list[int]] = {}  # of a turn, all its entries
        self._lengths = array("i")
        self._total = 0
        self._entries: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.add(passages)

    def add(self, passages: Iterable[Passage]) -> None:
        for passage in passages:
            number, found = len(self._passages), Counter(words(passage.text))
            for word, times in found.items():
                self._entries.setdefault(word, array("i")).append(number)
                self._counts.setdefault(word, array("i")).append(times)
            length = sum(found.values())
            self._passages.append(passage)
            self._places.setdefault(passage.turn, []).append(number)
            self._lengths.append(length)
            self._total += length

    @property
    def corpus(self) -> Corpus:
        entries = len(self._passages)
        return Corpus(entries, self._total / entries if entries else 0.0)

    def holding(self, wanted: Iterable[str]) -> dict[str, int]:
        """How many entries hold each word."""
        return {word: len(self._entries[word]) for word in wanted if word in self._entries}

    def postings(self, wanted: Iterable[str]) -> dict[str, Postings]:
        lengths = np.array(self._lengths, np.int32)
        found = {}
        for word in wanted:
            entries = np.array(self._entries[word], np.int32)
            found[word] = Postings(entries, np.array(self._counts[word], np.int32), lengths[entries])
        return found

    def passages(self, entries: Sequence[int]) -> list[Passage]:
        return [self._passages[entry] for entry in entries]

    def entries_of(self, turns: Collection[int]) -> NDArray[np.int32]:
        places = (self._places.get(turn, ()) for turn in turns)
        return np.array([entry for entries in places for entry in entries], np.int32)
