"""Vectors (embeddings) of turns that have left the context, by which recall compares meanings besides words.

A request only notes which turns lack vectors. When the dialog rests, a thread of the worker makes them, stores them,
and gives them to the index in memory; after a restart it reads the stored ones in the same way. So a message waits for
no vector but that of its own text, and the first one after a restart is compared by words alone.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from uuid import UUID

import numpy as np
import structlog
from django.db import connections, transaction

from dialogs.context.retrieval.text_index import TURNS
from dialogs.models import Dialog, TurnVectors
from dominds.db.hand_back import hand_back
from remediation.recall.meaning import Bytes, pack, unpack
from remediation.similarity.embeddings import meanings
from remediation.similarity.minilm import Array, model_directory

log = structlog.get_logger(__name__)

REST_SECONDS = 1.0  # after an answer, so that a program that goes on at once gets its next request first
MOST_WAITING = 1_000  # dialogs
MOST_AT_ONCE = 256  # passages: the others of a long dialog follow when it rests again
WARMING_UP = "The model is loaded before any message waits for it."

Embed = Callable[[Sequence[str]], Array | None]


class Meanings:
    """The vectors of all dialogs that this process answers. ``embed`` returns None while it has no model."""

    def __init__(self, embed: Embed, rest_seconds: float = REST_SECONDS) -> None:
        self._embed, self._rest_seconds = embed, rest_seconds
        self._noted: dict[UUID, list[int]] = {}
        self._rested: queue.Queue[tuple[float, UUID]] = queue.Queue(MOST_WAITING)
        self._due: dict[UUID, float] = {}  # for each dialog, when it will have rested (monotonic seconds)
        self.is_started = False

    def start(self) -> None:
        """Start the thread that makes vectors, if the model is installed. Without it, words alone are compared."""
        self.is_started = model_directory() is not None
        if self.is_started:
            threading.Thread(target=self._run, name="meanings", daemon=True).start()

    def of(self, text: str) -> Array | None:
        """Return the vector of a query, which takes some 20 ms."""
        rows = self._embed([text])
        return None if rows is None else rows[0]

    def note(self, dialog_id: UUID, seqs: Sequence[int]) -> None:
        """Note the turns of a dialog that lack vectors, the most needed first."""
        if self.is_started and seqs:
            self._noted[dialog_id] = list(seqs)

    def rest(self, dialog_id: UUID) -> None:
        """Have the noted vectors of a dialog made once it has rested. If too many dialogs wait already, its next rest
        will do.
        """
        if dialog_id in self._noted and not self._rested.full():
            self._due[dialog_id] = time.monotonic() + self._rest_seconds
            self._rested.put((self._due[dialog_id], dialog_id))

    def _run(self) -> None:
        while True:
            due, dialog_id = self._rested.get()
            time.sleep(max(0.0, due - time.monotonic()))  # dialogs behind it in the queue are due later
            if self._due.get(dialog_id) != due:  # it was driven again, and is in the queue once more
                continue
            del self._due[dialog_id]
            try:
                if (seqs := self._noted.pop(dialog_id, [])) and self.of(WARMING_UP) is not None:
                    self.take_in(dialog_id, seqs)
            except Exception:  # the next rest tries again; until then words are compared alone
                log.exception("embedding_failed", dialog_id=str(dialog_id))
            finally:
                connections.close_all()

    def take_in(self, dialog_id: UUID, seqs: Sequence[int]) -> None:
        """Read the vectors of these turns, make those that are not stored, and give both to the index."""
        texts = TURNS.texts_of(dialog_id, seqs)
        rows = TurnVectors.objects.filter(dialog=dialog_id, seq__in=texts).values_list("seq", "content")
        stored = {seq: unpack(bytes(content), len(texts[seq])) for seq, content in rows}
        known = {seq: vectors for seq, vectors in stored.items() if vectors is not None}
        TURNS.give_meaning(dialog_id, known)
        hand_back("MiniLM")
        made = self._make(dialog_id, {seq: parts for seq, parts in texts.items() if seq not in known})
        if made:
            _store(dialog_id, made)
            TURNS.give_meaning(dialog_id, made)

    def _make(self, dialog_id: UUID, texts: dict[int, list[str]]) -> dict[int, Bytes]:
        """Make vectors until the dialog is driven again, which notes the turns that still lack them."""
        made: dict[int, Bytes] = {}
        room = MOST_AT_ONCE
        for seq, parts in texts.items():
            if dialog_id in self._noted:
                break
            room -= len(parts)
            rows = [self._embed_at_leisure(part) for part in parts] if room >= 0 else [None]
            vectors = [row for row in rows if row is not None]
            if len(vectors) < len(parts):
                break
            made[seq] = np.frombuffer(pack(np.stack(vectors)), np.int8).reshape(len(parts), -1)
        return made

    def _embed_at_leisure(self, text: str) -> Array | None:
        """Embed one text, then sleep for as long as that took: queries get in between, and half a core stays free."""
        started_at = time.monotonic()
        row = self.of(text)
        time.sleep(time.monotonic() - started_at)
        return row


@transaction.atomic
def _store(dialog_id: UUID, made: dict[int, Bytes]) -> None:
    """Store vectors, unless the dialog was removed meanwhile."""
    if Dialog._base_manager.select_for_update().filter(pk=dialog_id, removed_at=None).first() is None:
        return
    TurnVectors.objects.bulk_create(
        (TurnVectors(dialog_id=dialog_id, seq=seq, content=rows.tobytes()) for seq, rows in made.items()),
        update_conflicts=True,
        unique_fields=["dialog", "seq"],
        update_fields=["content"],
    )


MEANINGS = Meanings(meanings)
