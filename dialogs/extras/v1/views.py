"""The calls of ``/v1``: who calls, what for, and the answer, whole or as it is made."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import wraps
from operator import attrgetter
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from dialogs.accounts import api_keys
from dialogs.api.auth import ScopeRefused, bearer_of
from dialogs.api.sse import stream_response
from dialogs.errors import Refusal
from dialogs.extras.v1 import chat, compaction, conversations, errors, lifetime, runs
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.compaction import Outcome
from dialogs.extras.v1.composing import Restarted
from dialogs.extras.v1.embeddings import embeddings_of
from dialogs.extras.v1.errors import ApiError, of_refusal
from dialogs.extras.v1.health import Report, add_headers, report_of
from dialogs.extras.v1.messages.answer import error_body as message_error
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.messages.request import read as read_message
from dialogs.extras.v1.parsing import ChatRequest, body_of
from dialogs.extras.v1.pieces import Ended, KeepAlive, Notice, Piece
from dialogs.extras.v1.relay import KeyEnded, Relay
from dialogs.extras.v1.responses.compacting import compacted_json, read_compaction
from dialogs.extras.v1.responses.request import counted
from dialogs.extras.v1.responses.request import read as read_response
from dialogs.extras.v1.responses.retrieval import response_of
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece, Prior, Reading, Sent, Writer
from dialogs.live.db_threads import in_db_thread
from dialogs.models import Agent, ApiKey, Dialog
from dialogs.queries import overviews
from dialogs.store.charging import charge, check_budget_of
from dominds.db.outcome import OutcomeUnknown

log = structlog.get_logger(__name__)

DIALOG_HEADER = "X-Dominds-Dialog"
COMPACTION_POLL_SECONDS = 0.3  # a rewrite takes seconds, for its model call
HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}")
RESTARTED = ApiError(
    500, "answer_restarted", "The model failed in the middle and its next attempt said something else. Ask again."
)
_leaving: set[asyncio.Task[None]] = set()  # holds what still runs after its request is gone

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
ErrorBody = Callable[[ApiError], dict[str, Any]]
Reader = Callable[[Sent], Reading]


def call(*methods: str, error_body: ErrorBody | None = None) -> Callable[[View], View]:
    """A call of ``/v1``: errors in the shape of its protocol, whoever found them. Where both speak it, clients of
    Anthropic's name a version. Pages of other origins may call, too: a key counts, and never a session."""
    offered = (*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS")

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase
            try:
                if request.method == "OPTIONS":
                    response = HttpResponse(status=204)
                else:
                    _check(request, offered)
                    response = await view(request, **kwargs)
            except Exception as error:  # noqa: BLE001  a program is answered in JSON, and a bug of ours is logged there
                problem = _problem(request, error)
                body = error_body or (message_error if "anthropic-version" in request.headers else attrgetter("body"))
                response = problem.response(body(problem))
            if request_id := errors.request_id():
                response["request-id"] = request_id  # as Anthropic's clients read it; X-Request-Id is OpenAI's
            return _readable_by_pages(request, response, offered)

        return answer

    return decorate


def _check(request: HttpRequest, offered: tuple[str, ...]) -> None:
    if request.method not in offered:
        raise ApiError(405, "method_not_allowed", f"Use {' or '.join(offered[:-1])}.")
    if (encoding := request.headers.get("Content-Encoding", "identity")).lower() != "identity":
        raise ApiError(415, "unsupported_encoding", f"The body is compressed ({encoding[:40]!r}): send it as it is.")


def _readable_by_pages(request: HttpRequest, response: HttpResponseBase, offered: tuple[str, ...]) -> HttpResponseBase:
    """Add the headers that browsers want before, and in answers to, calls to another origin."""
    if response.status_code == 405 or request.method == "OPTIONS":
        response["Allow"] = ", ".join(offered)
    if "Origin" in request.headers:
        response["Access-Control-Allow-Origin"] = "*"
        response["Access-Control-Expose-Headers"] = "*"
        if request.method == "OPTIONS":
            response["Access-Control-Allow-Methods"] = ", ".join(offered)
            # An asterisk would not cover Authorization.
            asked = request.headers.get("Access-Control-Request-Headers", "")
            response["Access-Control-Allow-Headers"] = asked if HEADER_NAMES.fullmatch(asked) else "Authorization"
            response["Access-Control-Max-Age"] = "600"
    return response


UNCONFIRMED = (
    "The database went away before it confirmed. What you sent may have been stored, and be answered: look into the "
    "dialog before you send it again, which may store it twice."
)


def _problem(request: HttpRequest, error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case Refusal():
            return of_refusal(error)
        case RequestDataTooBig():
            return ApiError(413, "request_too_large", "The body has more than 32 MB.")
        case Restarted():
            return RESTARTED
        case DatabaseError() | TimeoutError() | Dialog.DoesNotExist():  # the last has just expired
            log.warning("v1_unavailable", path=request.path, error=str(error) or type(error).__name__)
            message = UNCONFIRMED if isinstance(error, OutcomeUnknown) else "The database is busy or away. Try again."
            return ApiError(503, "unavailable", message, retry_after_seconds=5)
    log.error("v1_failed", path=request.path, exc_info=error)
    return ApiError(500, "internal", "This call failed because of a fault of ours; it has been logged.")


def _key_in(request: HttpRequest) -> str:
    return bearer_of(request.headers.get("Authorization", "")) or request.headers.get("x-api-key", "")


def _key_of(request: HttpRequest) -> ApiKey:
    given = _key_in(request)
    key = api_keys.key_of(given)
    if key is None:
        raise ApiError(401, "invalid_api_key", api_keys.refusal_of(given))
    if key.scope == ApiKey.Scope.READ:
        raise of_refusal(ScopeRefused(key))
    charge(key)
    return key


def _give_back_connection() -> None:
    if not connection.in_atomic_block:
        connection.close()  # to the pool: an answer takes minutes


# -- models ------------------------------------------------------------------------------------------------------------


@call("GET")
async def list_models(request: HttpRequest) -> HttpResponseBase:
    data = await sync_to_async(_models)(request)
    ids = [row["id"] for row in data] or [None]
    page = {"has_more": False, "first_id": ids[0], "last_id": ids[-1]}  # as Anthropic's clients expect it
    return JsonResponse({"object": "list", "data": data, **page})


@call("GET")
async def get_model(request: HttpRequest, model: str) -> HttpResponseBase:
    results = [row for row in await sync_to_async(_models)(request) if row["id"] == model]
    if not results:
        raise ApiError(404, "model_not_found", f"The model {model!r} does not exist.", param="model")
    return JsonResponse(results[0])


def _models(request: HttpRequest) -> list[dict[str, Any]]:
    _key_of(request)
    agents = list(Agent.objects.filter(enabled=True).order_by("pk"))
    return [_model_json(agent, row) for agent, row in zip(agents, overviews.of_agents(agents), strict=True)]


def _model_json(agent: Agent, overview: dict[str, Any]) -> dict[str, Any]:
    """Describe an agent as a model, in both protocols; one that cannot answer now says why."""
    return {
        "id": agent.pk,
        "object": "model",
        "type": "model",
        "display_name": overview["name"],
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "dominds",
        "name": overview["name"],
        "context_length": overview["model_context_limit"],
        "usable": overview["usable"],
        "reason": overview["reason"],
    }


# -- chat completions --------------------------------------------------------------------------------------------------


@call("POST")
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    return await _answer(request, chat.read)


# -- messages ----------------------------------------------------------------------------------------------------------


@call("POST", error_body=message_error)
async def create_message(request: HttpRequest) -> HttpResponseBase:
    return await _answer(request, read_message)


@call("POST", error_body=message_error)
async def count_message_tokens(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse({"input_tokens": await sync_to_async(_count_tokens)(request)})


def _count_tokens(request: HttpRequest) -> int:
    _key_of(request)
    return est_tokens(chat_request_of(body_of(request.body)))


# -- responses ---------------------------------------------------------------------------------------------------------


@call("POST")
async def create_response(request: HttpRequest) -> HttpResponseBase:
    return await _answer(request, read_response)


@call("POST")
async def count_input_tokens(request: HttpRequest) -> HttpResponseBase:
    tokens = await sync_to_async(_input_tokens)(request)
    return JsonResponse({"object": "response.input_tokens", "input_tokens": tokens})


def _input_tokens(request: HttpRequest) -> int:
    key = _key_of(request)
    return est_tokens(counted(Sent(body_of(request.body), "", "", key)))


@call("POST")
async def compact_response(request: HttpRequest) -> HttpResponseBase:
    key, reading, prior = await sync_to_async(_begin)(request, read_compaction)
    assert isinstance(prior, Prior)
    run, outcome = await _compact(key, prior, reading)
    answer = JsonResponse(compacted_json(run, prior, outcome))
    answer[DIALOG_HEADER] = str(run.dialog_id)
    return answer


@call("GET")
async def get_response(request: HttpRequest, response_id: str) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(_response)(request, response_id))


def _response(request: HttpRequest, response_id: str) -> dict[str, Any]:
    return response_of(_key_of(request), response_id)


# -- embeddings --------------------------------------------------------------------------------------------------------


@call("POST")
async def create_embeddings(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(_embeddings)(request))


def _embeddings(request: HttpRequest) -> dict[str, Any]:
    key = _key_of(request)
    return embeddings_of(body_of(request.body), key)


# -- answers, in any protocol ------------------------------------------------------------------------------------------


async def _answer(request: HttpRequest, read: Reader) -> HttpResponseBase:
    key, reading, begun = await sync_to_async(_begin)(request, read)
    compacted: tuple[Compacted, ...] = ()
    if isinstance(begun, Prior):
        run, outcome = await _compact(key, begun, reading)
        if reading.is_compaction:
            return await _only(reading, run, outcome)
        compacted = (outcome.compacted,)
        reading, run = await sync_to_async(_begin_behind)(key, reading)
    else:
        run = begun
    wanted, writer = reading.request, reading.writer(run)
    relay = Relay(
        run,
        lambda: api_keys.key_of(_key_in(request)) is not None,
        live_text=wanted.stream,
        notices_as_text=wanted.notices == "text",
        reasoning=wanted.include_reasoning,
    )
    try:
        if wanted.stream:
            pieces = relay.pieces()
            first = await anext(pieces)  # what fails before it is told by the status
            report = first.health if isinstance(first, Ended) else await in_db_thread(report_of, run)
            as_comment = wanted.notices == "comment"
            events = _stream(request, run, writer, (*compacted, first), pieces, as_comment=as_comment)
            answer: HttpResponseBase = stream_response(events)
        else:
            for done in compacted:
                writer.piece(done)
            report = await _write_whole(writer, relay)
            answer = JsonResponse(writer.whole())
    except (asyncio.CancelledError, KeyEnded):  # a client that does not wait for it, or may not, stops it
        _abandon(run)
        raise
    answer[DIALOG_HEADER] = str(run.dialog_id)
    add_headers(answer, report)
    return answer


def _begin(request: HttpRequest, read: Reader) -> tuple[ApiKey, Reading, Run | Prior]:
    """Read a request, and begin its answer; or return what of its conversation is to be compacted first."""
    try:
        key, reading, prior = _read(request, read)
        if prior and (prior.has_any or not reading.request.is_asking):
            return key, reading, prior
        return key, *_begun(key, reading)
    finally:
        _give_back_connection()


def _begin_behind(key: ApiKey, reading: Reading) -> tuple[Reading, Run]:
    """Begin the answer behind a compaction."""
    try:
        return _begun(key, reading)
    finally:
        _give_back_connection()


def _read(request: HttpRequest, read: Reader) -> tuple[ApiKey, Reading, Prior | None]:
    key, headers = _key_of(request), request.headers
    check_budget_of(key)
    reading = read(
        Sent(body_of(request.body), headers.get(DIALOG_HEADER, ""), headers.get(lifetime.POLICY_HEADER, ""), key)
    )
    return key, reading, reading.prior() if reading.prior and reading.is_due() else None


async def _compact(key: ApiKey, prior: Prior, reading: Reading) -> tuple[Run, Outcome]:
    """Have a conversation rewritten, and wait for that. It goes on where its client does not wait."""

    def begin() -> Run:
        try:
            return compaction.begin(key, prior)
        except ApiError as error:
            error.named(reading.names)
            raise
        finally:
            _give_back_connection()

    run = await sync_to_async(begin)()
    while (outcome := await in_db_thread(compaction.outcome_of, run, prior)) is None:
        await asyncio.sleep(COMPACTION_POLL_SECONDS)
    return run, outcome


async def _only(reading: Reading, run: Run, outcome: Outcome) -> HttpResponseBase:
    """Answer with a compaction alone."""
    report = await in_db_thread(report_of, run)
    writer = reading.writer(run)
    pieces = (outcome.compacted, Ended("compaction", (), outcome.usage, report))
    events = [*writer.begin(), *(event for piece in pieces for event in writer.piece(piece))]

    async def stream() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    answer = stream_response(stream()) if reading.request.stream else JsonResponse(writer.whole())
    answer[DIALOG_HEADER] = str(run.dialog_id)
    add_headers(answer, report)
    return answer


def _begun(key: ApiKey, reading: Reading) -> tuple[Reading, Run]:
    try:
        run = conversations.begin(key, reading.request)
    except ApiError as error:
        error.named(reading.names)
        raise
    notices = reading.request.notices or _usual_notices(reading.request, run)
    return replace(reading, request=replace(reading.request, notices=notices)), run


def _usual_notices(wanted: ChatRequest, run: Run) -> str:
    """Return the default of notices: words between those of the answer would spoil what a program reads."""
    return "comment" if run.reads_text_alone or "response_format" in wanted.params else "text"


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
) -> AsyncIterator[bytes]:
    """Yield server-sent events; an error after the first pieces is an event, too."""
    complete = isinstance(first[-1], Ended)
    try:
        for event in writer.begin():
            yield event
        for begun in first:
            for event in _events(writer, begun, as_comment=as_comment):
                yield event
        async with aclosing(others) as pieces:
            async for piece in pieces:
                complete = isinstance(piece, Ended)
                for event in _events(writer, piece, as_comment=as_comment):
                    yield event
    except Exception as error:  # noqa: BLE001  the status is sent already: told in the stream, logged there
        for event in writer.failed(_problem(request, error)):
            yield event
    finally:
        if not complete:
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


@call("GET", "POST", "PUT", "PATCH", "DELETE")
async def unknown(request: HttpRequest) -> HttpResponse:
    raise ApiError(404, "not_found", f"There is nothing at {request.path}.")
