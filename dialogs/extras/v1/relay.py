"""Relay of one answer as it is made: the live text from Redis, then what was committed; the worker generates.

As with the page's socket, Redis only says "look", and everything that counts is read from the database.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError
from django.db.models import QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform

from dialogs.extras.v1.composing import Composer, Thoughts
from dialogs.extras.v1.ending import end_with_question, finish
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.health import calls_for
from dialogs.extras.v1.notices import is_notice
from dialogs.extras.v1.pieces import Ended, KeepAlive, Notice, Piece, Reasoning, Refusal, Text
from dialogs.extras.v1.runs import Run
from dialogs.live.db_threads import in_db_thread
from dialogs.live.feeds import Feed
from dialogs.live.hub import hub
from dialogs.models import Generation, Question, Turn
from dialogs.state import State
from dialogs.store import events
from dominds.db.prepared import Select

log = structlog.get_logger(__name__)

KEEP_ALIVE_SECONDS = 15
KEY_CHECK_SECONDS = 5  # how often an answer under way asks whether its key still holds
POLL_SECONDS = 3  # how often the database is asked what a lost wake-up would have said
RETRY_SECONDS = 1
BATCH = 200
UNDER_WAY = (Turn.Status.QUEUED, Turn.Status.ANSWERING)


class KeyEnded(ApiError):
    """The key was revoked, or expired, while its answer was on the way."""

    def __init__(self) -> None:
        super().__init__(401, "invalid_api_key", "The API key was revoked or has expired. The answer was stopped.")


@dataclass(frozen=True, slots=True)
class Progress:
    """The stored state of an answer. ``status`` is the message's. ``ours`` are the model calls made for it, each with
    the refusal in which its text ends, or None.
    """

    status: str
    ours: dict[int, str | None]
    question: str
    events: list[dict[str, Any]]

    def must_be_read_again(self, seq: int) -> bool:
        """Check whether there are more events, or these tell of an end or question of message ``seq`` that the
        status may not know, since it is read before them.
        """
        under_way = self.status in UNDER_WAY and not self.question
        return len(self.events) == BATCH or (under_way and any(_stops(event, seq) for event in self.events))


class Relay:
    """A client that waits for one answer. It is a ``hub.Listener``."""

    language = ""

    def __init__(
        self,
        run: Run,
        key_holds: Callable[[], bool],
        *,
        live_text: bool,
        notices_as_text: bool,
        reasoning: bool = False,
    ) -> None:
        self.user_id = run.user_id
        self._key_holds, self._key_check_at = key_holds, monotonic() + KEY_CHECK_SECONDS
        self._run, self._wants_live_text, self._notices_as_text = run, live_text, notices_as_text
        self._wants_reasoning = reasoning
        self._composer, self._thoughts = Composer(), Thoughts()
        self._wake = asyncio.Event()
        self._behind = True
        self._live_texts: list[dict[str, Any]] = []
        self._seq = run.after_event
        self._ours: dict[int, str | None] = {}
        self._begun = not run.queued
        self._mentioned = False
        self._answer = ""  # the answer as the client has it

    # -- the hub speaks ------------------------------------------------------------------------------------------------
    def on_poke(self, seq: int) -> None:
        if seq == 0 or seq > self._seq:
            self._behind = True
            self._wake.set()

    def on_live_text(self, frame: dict[str, Any]) -> None:
        if self._wants_live_text and (frame["text"] or (self._wants_reasoning and frame.get("reasoning"))):
            self._live_texts.append(frame)
            self._behind = self._behind or frame["generation"] not in self._ours
            self._wake.set()

    def on_frame(self, frame: dict[str, Any]) -> None:
        """Ignore badges and logouts, which are for pages."""

    # -- relaying ------------------------------------------------------------------------------------------------------
    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of the answer, ``Ended`` last.

        Raises ``ApiError`` when the message fails or cannot be answered, and ``KeyEnded`` while it goes on.
        """
        try:
            feed = await hub().join(self, self._run.dialog_id)
            assert feed is not None
            if snapshot := feed.snapshot():
                self.on_live_text(snapshot)
            elif self._wants_live_text:
                feed.load()
            quiet_seconds = 0
            while True:
                has_piece = False
                async for piece in self._due_pieces(feed):
                    has_piece = True
                    self._answer += piece.text if isinstance(piece, Text | Refusal) else ""
                    yield piece
                    if isinstance(piece, Ended):
                        return
                quiet_seconds = 0 if has_piece else quiet_seconds
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
                if not self._wake.is_set():
                    self._behind = True
                    quiet_seconds += POLL_SECONDS
                await self._check_key()
                if quiet_seconds >= KEEP_ALIVE_SECONDS:
                    quiet_seconds = 0
                    yield KeepAlive()
                self._wake.clear()
        finally:
            await hub().leave(self, self._run.dialog_id)

    async def _check_key(self) -> None:
        if monotonic() < self._key_check_at:
            return
        self._key_check_at = monotonic() + KEY_CHECK_SECONDS
        try:
            holds = await in_db_thread(self._key_holds)
        except (DatabaseError, TimeoutError):
            return  # the next check asks again
        if not holds:
            raise KeyEnded

    async def _due_pieces(self, feed: Feed) -> AsyncIterator[Piece]:
        while self._behind:
            self._behind = False
            try:
                progress = await in_db_thread(_read if self._wants_live_text else _read_end, self._run, self._seq)
            except (DatabaseError, TimeoutError) as error:
                log.warning("relay_waits", dialog_id=str(self._run.dialog_id), error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                self._behind = True
                return
            self._ours = progress.ours
            for event in progress.events:
                self._seq = event["seq"]
                if event["type"] == "generation" and event["data"].get("outcome") != "running":
                    feed.end(int(event["data"]["id"]))
                for piece in self._of_event(event):
                    yield piece
            if progress.must_be_read_again(self._run.seq):
                self._behind = True
            elif progress.status not in UNDER_WAY:
                yield await in_db_thread(finish, self._run, progress.status, self._answer)
                return
            elif progress.question:
                yield Text(self._composer.text(progress.question))  # the client's next message answers it
                yield await in_db_thread(end_with_question, self._run)
                return
        if not self._behind:  # live text of model calls that are not known yet waits for the next reading
            for piece in self._of_live_texts(feed):
                yield piece

    def _of_event(self, event: dict[str, Any]) -> list[Piece]:
        turn = event["data"]
        if event["type"] == "notice" and self._begun and is_notice(turn["text"]):
            return [self._notice(turn["text"])]
        if event["type"] != "turn":
            return []
        if turn["seq"] == self._run.seq:
            self._begun = self._begun or self._mentioned  # the first event of a queued message tells that it waits
            self._mentioned = True
        elif turn["role"] == Turn.Role.NOTICE and self._begun and is_notice(turn["text"]):
            return [self._notice(turn["text"])]
        elif turn["role"] == Turn.Role.ASSISTANT and turn["generation"] in self._ours:
            return self._of_answer(turn)
        return []

    def _of_answer(self, turn: dict[str, Any]) -> list[Piece]:
        generation, thought = turn["generation"], (turn["reasoning"] or {}).get("text", "")
        refusal = self._ours[generation] or ""
        goes_on = turn["status"] == Turn.Status.INTERRUPTED
        text = self._composer.turn(generation, turn["text"].removesuffix(refusal), goes_on=goes_on, thought=thought)
        refused: list[Piece] = [Refusal(refusal)] if refusal else []
        return [*self._reasoning(generation, 0, thought), *_text(text), *refused]

    def _notice(self, text: str) -> Piece:
        return Text(self._composer.notice(text)) if self._notices_as_text else Notice(text)

    def _of_live_texts(self, feed: Feed) -> list[Piece]:
        waiting, self._live_texts = self._live_texts, []
        live = [frame for frame in waiting if frame["generation"] in self._ours and frame["generation"] > feed.ended]
        return [piece for frame in live for piece in self._of_draft(frame)]

    def _of_draft(self, frame: dict[str, Any]) -> list[Piece]:
        generation = frame["generation"]
        thought = self._reasoning(generation, frame.get("reasoning_pos", 0), frame.get("reasoning", ""))
        return [*thought, *_text(self._composer.live_text(generation, frame["pos"], frame["text"]))]

    def _reasoning(self, generation: int, position: int, text: str) -> list[Piece]:
        new = self._thoughts.piece(generation, position, text) if self._wants_reasoning else ""
        return [Reasoning(new)] if new else []


def _stops(event: dict[str, Any], seq: int) -> bool:
    data = event["data"]
    match event["type"]:
        case "turn":
            return bool(data["seq"] == seq and data["status"] not in UNDER_WAY)
        case "state":
            return bool(data["state"] not in (State.QUEUED, State.GENERATING))
    return bool(event["type"] == "question")


def _text(new: str) -> list[Piece]:
    return [Text(new)] if new else []


# These run on the database's threads.


def _read(run: Run, after: int) -> Progress:
    return _progress(run, after, *status_and_question.one(run.dialog_id, run.seq))


def _progress(run: Run, after: int, status: str, question: str | None) -> Progress:
    return Progress(  # the model calls are read last, so that none which the events mention is missing
        status=status,
        question=question or "",
        events=events.after(run.dialog_id, after, BATCH),
        ours=dict(_calls_and_refusals(run.dialog_id, run.seq, run.after_generation)),
    )


def _read_end(run: Run, after: int) -> Progress:
    """Wait for the whole answer, and read what happened on the way with its end."""
    status, question = status_and_question.one(run.dialog_id, run.seq)
    is_over = status not in UNDER_WAY or question
    return _progress(run, after, status, question) if is_over else Progress(status, {}, "", [])


@Select
def status_and_question(dialog_id: UUID, seq: int) -> QuerySet[Turn, Any]:
    """Return the message's status, and the text of the question that its answer asks, if it does."""
    questions = Question.objects.filter(dialog_id=dialog_id, dialog__answering_seq=seq, state=Question.State.OPEN)
    question = questions.filter(kind=Question.Kind.QUESTION).values("text")[:1]
    return Turn.objects.filter(dialog_id=dialog_id, seq=seq).values_list("status", Subquery(question))


@Select
def _calls_and_refusals(dialog_id: UUID, seq: int, after: int) -> QuerySet[Generation, tuple[int, str | None]]:
    return calls_for(dialog_id, seq, after).values_list("pk", KeyTextTransform("refusal", "provider_fields"))
