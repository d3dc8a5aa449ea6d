"""Answers of ``/v1`` in any protocol: compacted first where that was asked for, and told whole or as they are made."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from time import monotonic

import structlog
from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from dialogs.accounts import api_keys
from dialogs.api.sse import KEEP_ALIVE, stream_response
from dialogs.extras.v1 import compaction, conversations, lifetime, runs
from dialogs.extras.v1.calls import give_back_connection, key_in, key_of, problem_of
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.compaction import Outcome
from dialogs.extras.v1.errors import ApiError, MovedOn
from dialogs.extras.v1.health import Report, add_headers, report_of
from dialogs.extras.v1.parsing import ChatRequest, body_of
from dialogs.extras.v1.pieces import Ended, KeepAlive, Notice, Piece
from dialogs.extras.v1.relay import KEEP_ALIVE_SECONDS, KeyEnded, Relay
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece, Prior, Reading, Sent, Writer
from dialogs.live.db_threads import in_db_thread
from dialogs.models import ApiKey
from dialogs.store.charging import check_budget_of

log = structlog.get_logger(__name__)

DIALOG_HEADER = "X-Dominds-Dialog"
COMPACTION_POLL_SECONDS = 0.3  # a rewrite takes seconds, since a model is called for it
_leaving: set[asyncio.Task[None]] = set()  # tasks that outlive their requests need a reference

Reader = Callable[[Sent], Reading]


async def answer_by(request: HttpRequest, read: Reader) -> HttpResponseBase:
    """Answer a request of the protocol that ``read`` reads. Raises ``ApiError`` or ``Refusal``."""
    key, reading, begun = await sync_to_async(begin)(request, read)
    if isinstance(begun, Run):
        return await _answer(request, reading, begun)
    run = await _begin_compaction(key, begun, reading)
    outcomes = outcomes_of(run, begun)
    first = await anext(outcomes)  # a failure up to here can still be told by the status
    if isinstance(first, KeepAlive) and reading.request.stream:
        return _with_dialog(stream_response(stream_behind(request, key, reading, run, outcomes)), run)
    outcome = first if isinstance(first, Outcome) else await _last(outcomes)
    if reading.is_compaction:
        return await _answer_compacted(reading, run, outcome)
    return await _answer(request, *await sync_to_async(_begin_behind)(key, reading), outcome.compacted)


async def _answer(request: HttpRequest, reading: Reading, run: Run, *compacted: Compacted) -> HttpResponseBase:
    """Answer by a run, behind what stands for its compacted past."""
    wanted, writer, relay = reading.request, reading.writer(run), _relay_of(request, reading, run)
    if reading.is_background and not wanted.stream:
        for done in compacted:
            writer.piece(done)
        return _with_dialog(JsonResponse(writer.whole()), run)
    try:
        if wanted.stream:
            pieces = relay.pieces()
            first = await anext(pieces)  # a failure up to here can still be told by the status
            report = first.health if isinstance(first, Ended) else await in_db_thread(report_of, run)
            as_comment = wanted.notices == "comment"
            events = _stream(request, run, writer, (*compacted, first), pieces, as_comment=as_comment)
            answer: HttpResponseBase = stream_response(events)
        else:
            for done in compacted:
                writer.piece(done)
            report = await _write_whole(writer, relay)
            answer = JsonResponse(writer.whole())
    except (asyncio.CancelledError, KeyEnded) as gone:  # the client left, or may not wait any longer
        if isinstance(gone, KeyEnded) or not run.outlives_client:
            _abandon(run)
        raise
    add_headers(answer, report)
    return _with_dialog(answer, run)


def _relay_of(request: HttpRequest, reading: Reading, run: Run) -> Relay:
    return Relay(
        run,
        lambda: api_keys.key_of(key_in(request)) is not None,
        live_text=reading.request.stream,
        notices_as_text=reading.request.notices == "text",
        reasoning=reading.request.include_reasoning,
    )


def _with_dialog(answer: HttpResponseBase, run: Run) -> HttpResponseBase:
    answer[DIALOG_HEADER] = str(run.dialog_id)
    return answer


def begin(request: HttpRequest, read: Reader) -> tuple[ApiKey, Reading, Run | Prior]:
    """Read a request, and begin its answer; or return what of its conversation is to be compacted first."""
    try:
        key, reading, prior = _read(request, read)
        if prior and (prior.has_any or not reading.request.is_asking):
            return key, reading, prior
        try:
            return key, *_begin_run(key, reading)
        except MovedOn:
            key, reading, _ = _read(request, read)
            return key, *_begin_run(key, reading)
    finally:
        give_back_connection()


def _begin_behind(key: ApiKey, reading: Reading) -> tuple[Reading, Run]:
    """Begin the answer behind a compaction."""
    try:
        return _begin_run(key, reading)
    finally:
        give_back_connection()


def _read(request: HttpRequest, read: Reader) -> tuple[ApiKey, Reading, Prior | None]:
    key, headers = key_of(request), request.headers
    check_budget_of(key)
    reading = read(
        Sent(body_of(request.body), headers.get(DIALOG_HEADER, ""), headers.get(lifetime.POLICY_HEADER, ""), key)
    )
    return key, reading, reading.prior() if reading.prior and reading.is_due() else None


# -- compactions -------------------------------------------------------------------------------------------------------


async def compact(key: ApiKey, prior: Prior, reading: Reading) -> tuple[Run, Outcome]:
    """Have a conversation rewritten, and wait for that. It goes on where its client does not wait."""
    run = await _begin_compaction(key, prior, reading)
    return run, await _last(outcomes_of(run, prior))


async def _begin_compaction(key: ApiKey, prior: Prior, reading: Reading) -> Run:
    def begin() -> Run:
        try:
            return compaction.begin(key, prior)
        except ApiError as error:
            error.rename_param(reading.names)
            raise
        finally:
            give_back_connection()

    return await sync_to_async(begin)()


async def outcomes_of(
    run: Run, prior: Prior, quiet_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[KeepAlive | Outcome, None]:
    """Yield the outcome of a rewrite, and before it a keep-alive whenever so much time has passed."""
    quiet_since = monotonic()
    while (outcome := await in_db_thread(compaction.outcome_of, run, prior)) is None:
        await asyncio.sleep(COMPACTION_POLL_SECONDS)
        if monotonic() - quiet_since >= quiet_seconds:
            quiet_since = monotonic()
            yield KeepAlive()
    yield outcome


async def _last(outcomes: AsyncIterator[KeepAlive | Outcome]) -> Outcome:
    async for outcome in outcomes:
        if isinstance(outcome, Outcome):
            return outcome
    raise AssertionError("a rewrite ends or raises")


async def stream_behind(
    request: HttpRequest, key: ApiKey, reading: Reading, run: Run, outcomes: AsyncIterator[KeepAlive | Outcome]
) -> AsyncIterator[bytes]:
    """Yield comments as long as a rewrite takes, and then the events of the answer. Nothing else may come before these,
    and a comment may in every protocol.
    """
    try:
        yield KEEP_ALIVE
        async for outcome in outcomes:
            if isinstance(outcome, KeepAlive):
                yield KEEP_ALIVE
                continue
            if reading.is_compaction:
                for event in _compaction_events(reading.writer(run), outcome, await in_db_thread(report_of, run)):
                    yield event
                return
            reading, run = await sync_to_async(_begin_behind)(key, reading)
            pieces, as_comment = _relay_of(request, reading, run).pieces(), reading.request.notices == "comment"
            written = _stream(request, run, reading.writer(run), (outcome.compacted,), pieces, as_comment=as_comment)
            async with aclosing(written) as events:
                async for event in events:
                    yield event
    except Exception as error:  # noqa: BLE001  the status is sent already: told in the stream, logged there
        for event in reading.writer(run).failure(problem_of(request, error)):
            yield event


async def _answer_compacted(reading: Reading, run: Run, outcome: Outcome) -> HttpResponseBase:
    """Answer with a compaction alone."""
    report, writer = await in_db_thread(report_of, run), reading.writer(run)
    events = _compaction_events(writer, outcome, report)

    async def stream() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    answer = stream_response(stream()) if reading.request.stream else JsonResponse(writer.whole())
    add_headers(answer, report)
    return _with_dialog(answer, run)


def _compaction_events(writer: Writer, outcome: Outcome, report: Report) -> list[bytes]:
    pieces = (outcome.compacted, Ended("compaction", (), outcome.usage, report))
    return [*writer.begin(), *(event for piece in pieces for event in writer.piece(piece))]


# -- answers -----------------------------------------------------------------------------------------------------------


def _begin_run(key: ApiKey, reading: Reading) -> tuple[Reading, Run]:
    try:
        run = conversations.begin(key, reading.request)
    except ApiError as error:
        error.rename_param(reading.names)
        raise
    notices = reading.request.notices or _usual_notices(reading.request, run)
    reading = replace(reading, request=replace(reading.request, notices=notices))
    return reading, replace(run, outlives_client=reading.is_background)


def _usual_notices(wanted: ChatRequest, run: Run) -> str:
    """Return the default of notices: words between those of the answer would spoil what a program reads."""
    is_read_by_program = not wanted.params.keys().isdisjoint(("response_format", "logprobs"))
    return "comment" if run.reads_text_alone or is_read_by_program else "text"


async def _write_whole(writer: Writer, relay: Relay) -> Report:
    """Give the writer all pieces of an answer that is not streamed."""
    report: Report = {}
    async with aclosing(relay.pieces()) as pieces:
        async for piece in pieces:
            if isinstance(piece, AnswerPiece):
                writer.piece(piece)
            if isinstance(piece, Ended):
                report = piece.health
    return report


async def _stream(
    request: HttpRequest,
    run: Run,
    writer: Writer,
    first: Sequence[Piece | Compacted],
    others: AsyncGenerator[Piece, None],
    *,
    as_comment: bool,
) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events; an error after the first pieces is an event, too."""
    is_over = run.outlives_client or isinstance(first[-1], Ended)
    try:
        for event in writer.begin():
            yield event
        for begun in first:
            for event in _events(writer, begun, as_comment=as_comment):
                yield event
        async with aclosing(others) as pieces:
            async for piece in pieces:
                is_over = run.outlives_client or isinstance(piece, Ended)
                for event in _events(writer, piece, as_comment=as_comment):
                    yield event
    except Exception as error:  # noqa: BLE001  the status is sent already: told in the stream, logged there
        is_over = is_over and not isinstance(error, KeyEnded)
        for event in writer.failure(problem_of(request, error)):
            yield event
    finally:
        if not is_over:
            _abandon(run)


def _events(writer: Writer, piece: Piece | Compacted, *, as_comment: bool) -> list[bytes]:
    match piece:
        case KeepAlive():
            return [writer.keep_alive]
        case Notice(text):
            return [f": {text}\n\n".encode()] if as_comment else []
        case _:
            return writer.piece(piece)


def _abandon(run: Run) -> None:
    """End an answer that nobody reads any more. The request may be being cancelled, so this runs beside it."""

    async def leave() -> None:
        try:
            await in_db_thread(runs.abandon, run)
        except Exception as error:  # noqa: BLE001  then the answer is merely completed without a reader
            log.warning("v1_not_stopped", dialog_id=str(run.dialog_id), error=str(error) or type(error).__name__)

    task = asyncio.get_running_loop().create_task(leave())
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
