"""An index in memory: what a dialog holds when it is first looked at is indexed at once, what follows turn by turn."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dominds.llm.messages import Role
from remediation.recall.meaning import MOST_PARTS, Bytes, Vectors
from remediation.recall.passages import Passage, names_of
from remediation.recall.ranking import Corpus, Floats, Postings, idf, rank, top
from remediation.recall.superseded import mark_older
from remediation.similarity.minilm import Array
from remediation.text.supersession import may_supersede
from remediation.text.words import words

Ints = NDArray[np.int32]
NONE = np.zeros(0, np.int32)
NUMBERS = re.compile(r"\d+")
SERIES = 8  # from so many messages on that differ by numbers only they report something, and none replaces another
ALIKE = 64  # passages that share most with one that may supersede others, of which people's are compared to it


@dataclass(frozen=True, slots=True)
class _Block:
    """The postings of many passages, by word and then by entry: a word's own stand from ``starts[number]`` to the next.

    Made in a third of the time that single postings take, and in a third of their memory.
    """

    numbers: Mapping[str, int]
    starts: NDArray[np.int64]
    entries: Ints
    counts: Ints

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> "_Block":
        numbers: dict[str, int] = {}
        result, lengths = array("q"), array("q")
        for text in texts:
            result.extend([numbers.setdefault(word, len(numbers)) for word in text])
            lengths.append(len(text))
        size = max(1, len(lengths))
        owners = np.repeat(np.arange(len(lengths)), np.array(lengths, np.int64))
        keys, counts = np.unique(np.array(result, np.int64) * size + owners, return_counts=True)
        starts = np.searchsorted(keys, np.arange(len(numbers) + 1) * size)
        return cls(numbers, starts, (keys % size).astype(np.int32), counts.astype(np.int32))

    def place(self, word: str) -> slice:
        number = self.numbers.get(word)
        return slice(0, 0) if number is None else slice(int(self.starts[number]), int(self.starts[number + 1]))


class Index:
    """Passages in the order of the dialog; an entry's number is its place in that order."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self._passages: list[Passage] = []
        self._places: dict[int, list[int]] = {}  # of a turn, all its entries
        self._by_speaker: dict[str, array[int]] = {}  # of each name of a speaker, all entries
        self._lengths = array("i")
        self._total = 0
        self._block = _Block.of(())  # what came first, and all at once
        self._vectors = Vectors()
        self._repeats: defaultdict[int, list[int]] = defaultdict(list)  # people's, by a hash of texts without numbers
        self._entries: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.add(passages)

    def add(self, passages: Iterable[Passage]) -> None:
        """Take in passages that follow, and mark what they supersede of those before."""
        start = len(self._passages)
        if not start:
            self._block = _Block.of(self._taken_in(passages))
        else:
            for result in self._taken_in(passages):
                for word, times in Counter(result).items():
                    self._entries.setdefault(word, array("i")).append(len(self._passages) - 1)
                    self._counts.setdefault(word, array("i")).append(times)
        for entry in range(start, len(self._passages)):
            if self._passages[entry].speaker == Role.USER:
                self._mark_superseded(entry)

    def _mark_superseded(self, entry: int) -> None:
        newer = self._passages[entry]
        repeated = self._repeats[hash(NUMBERS.sub("0", newer.text.lower()))]
        older = set(repeated[-1:]) if len(repeated) < SERIES else set()
        repeated.append(entry)
        if may_supersede(newer.text):
            older |= self._people_alike(entry)
        if older:
            alike = {place: self._passages[place] for place in sorted(older)}
            for place, marked in mark_older(alike, newer).items():
                self._passages[place] = marked

    def _people_alike(self, entry: int) -> set[int]:
        """Return entries of people before this one that share most with its words."""
        wanted = {
            word: idf(self.corpus.entries, number)
            for word, number in self.holding(dict.fromkeys(words(self._passages[entry].text))).items()
        }
        scores = rank(wanted, self.postings(wanted), self.corpus)[:entry]
        return {place for place in top(scores, ALIKE).tolist() if self._passages[place].speaker == Role.USER}

    def _taken_in(self, passages: Iterable[Passage]) -> Iterator[list[str]]:
        """Return the words of each passage."""
        for passage in passages:
            result = words(passage.text)
            self._places.setdefault(passage.turn, []).append(len(self._passages))
            for name in names_of(passage):
                self._by_speaker.setdefault(name, array("i")).append(len(self._passages))
            self._passages.append(passage)
            self._lengths.append(len(result))
            self._total += len(result)
            yield result

    @property
    def corpus(self) -> Corpus:
        entries = len(self._passages)
        return Corpus(entries, self._total / entries if entries else 0.0)

    def holding(self, wanted: Iterable[str]) -> dict[str, int]:
        """Count the entries that hold each word."""
        result = {}
        for word in wanted:
            place = self._block.place(word)
            if number := place.stop - place.start + len(self._entries.get(word, ())):
                result[word] = number
        return result

    def postings(self, wanted: Iterable[str]) -> Postings:
        entries, counts, sizes = [NONE], [NONE], list[int]()
        for word in wanted:
            place = self._block.place(word)
            entries.append(self._block.entries[place])
            counts.append(self._block.counts[place])
            later = self._entries.get(word, ())
            if later:
                entries.append(np.array(later, np.int32))
                counts.append(np.array(self._counts[word], np.int32))
            sizes.append(place.stop - place.start + len(later))
        places = np.concatenate(entries)
        return Postings(sizes, places, np.concatenate(counts), np.array(self._lengths, np.int32)[places])

    def passages(self, entries: Sequence[int]) -> list[Passage]:
        return [self._passages[entry] for entry in entries]

    def entries_of(self, turns: Collection[int]) -> Ints:
        places = (self._places.get(turn, ()) for turn in turns)
        return np.array([entry for entries in places for entry in entries], np.int32)

    def entries_by(self, speakers: Iterable[str]) -> Ints:
        """Return the entries that these speakers said, by the names that ``names_of`` gives them."""
        known = (self._by_speaker[one] for one in speakers if one in self._by_speaker)
        return np.concatenate([NONE, *(np.array(entries, np.int32) for entries in known)])

    def give_meaning(self, turn: int, rows: Bytes) -> None:
        """Take in the vectors of a turn's passages."""
        self._vectors.put(self._places[turn], rows)

    @property
    def knows_meaning(self) -> bool:
        """Check whether any passage has a vector."""
        return bool(self._vectors.known(len(self._passages)).any())

    def lacking_meaning(self, left_out: Collection[int] = ()) -> list[int]:
        """Return the turns whose passages could have vectors and have none, newest first."""
        known = self._vectors.known(len(self._passages))
        return [
            turn
            for turn, places in reversed(self._places.items())
            if len(places) <= MOST_PARTS and turn not in left_out and not known[places[0]]
        ]

    def likeness(self, query: Array) -> tuple[Floats, NDArray[np.bool_]]:
        """Return each entry's nearness in meaning, and which entries have one."""
        entries = len(self._passages)
        return self._vectors.likeness(query, entries), self._vectors.known(entries)
