"""The calls of ``/v1``: who asks, what for, and the answer, whole or as it is made."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from functools import wraps
from typing import Any
from uuid import uuid4

import structlog
from asgiref.sync import sync_to_async
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from structlog.contextvars import get_contextvars

from dialogs.accounts import api_keys
from dialogs.api.auth import ScopeRefused, bearer_of
from dialogs.api.sse import KEEP_ALIVE, streamed, written
from dialogs.errors import Refusal
from dialogs.live.db_threads import in_db_thread
from dialogs.models import Agent, ApiKey, Dialog
from dialogs.openai_api import conversations, lifetime
from dialogs.openai_api.composing import Restarted
from dialogs.openai_api.conversations import Run
from dialogs.openai_api.errors import ApiError, of_refusal
from dialogs.openai_api.health import add_headers, report_of
from dialogs.openai_api.parsing import ChatRequest, parse
from dialogs.openai_api.relay import Ended, KeepAlive, Notice, Piece, Reasoning, Relay, Text
from dialogs.openai_api.shapes import Answer, call_json, model_json
from dialogs.queries import overviews

log = structlog.get_logger(__name__)

REQUEST_HEADER = "X-Request-Id"
DIALOG_HEADER = "X-Dominds-Dialog"
DONE = b"data: [DONE]\n\n"
RESTARTED = ApiError(
    500, "answer_restarted", "The model failed in the middle and its next attempt said something else. Ask again."
)
_leaving: set[asyncio.Task[None]] = set()  # holds what still runs after its request is gone

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def call(*methods: str) -> Callable[[View], View]:
    """A call of ``/v1``: errors in OpenAI's shape, whoever found them."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            try:
                if request.method not in methods:
                    raise ApiError(405, "method_not_allowed", f"Use {' or '.join(methods)}.")
                response = await view(request, **kwargs)
            except Exception as error:  # noqa: BLE001  a program is answered in JSON, and a bug of ours is logged there
                response = _problem(request, error).response
            response[REQUEST_HEADER] = str(get_contextvars().get("request_id") or uuid4())  # as the log has it
            return response

        return answer

    return decorate


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
            return ApiError(503, "unavailable", "The database is busy or away. Try again.", retry_after_seconds=5)
    log.error("v1_failed", path=request.path, exc_info=error)
    return ApiError(500, "internal", "This call failed because of a fault of ours; it has been logged.")


def _key_of(request: HttpRequest) -> ApiKey:
    key = api_keys.key_of(bearer_of(request.headers.get("Authorization", "")))
    if key is None:
        raise ApiError(401, "invalid_api_key", "This API key does not hold. Make one with `manage.py apikey USERNAME`.")
    if key.scope == ApiKey.Scope.READ:
        raise of_refusal(ScopeRefused(key))
    return key


def _give_back_connection() -> None:
    if not connection.in_atomic_block:
        connection.close()  # to the pool: an answer takes minutes


# -- models --------------------------------------------------------------------------------------------------------------


@call("GET")
async def list_models(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse({"object": "list", "data": await sync_to_async(_models)(request)})


@call("GET")
async def get_model(request: HttpRequest, model: str) -> HttpResponseBase:
    found = [row for row in await sync_to_async(_models)(request) if row["id"] == model]
    if not found:
        raise ApiError(404, "model_not_found", f"The model {model!r} does not exist.", param="model")
    return JsonResponse(found[0])


def _models(request: HttpRequest) -> list[dict[str, Any]]:
    _key_of(request)
    agents = list(Agent.objects.filter(enabled=True).order_by("pk"))
    return [model_json(agent, row) for agent, row in zip(agents, overviews.of_agents(agents), strict=True)]


# -- chat completions ----------------------------------------------------------------------------------------------------


@call("POST")
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    wanted, run = await sync_to_async(_begin)(request)
    relay = Relay(
        run, drafts=wanted.stream, notices_as_text=wanted.notices == "text", reasoning=wanted.include_reasoning
    )
    try:
        if wanted.stream:
            pieces = relay.pieces()
            first = await anext(pieces)  # what fails before it is told by the status
            report = first.health if isinstance(first, Ended) else await in_db_thread(report_of, run)
            answer: HttpResponseBase = streamed(_stream(request, run, wanted, first, pieces))
        else:
            texts, ended = await _whole(wanted, relay)
            answer, report = JsonResponse(Answer(run, wanted.labels).whole(*texts, ended)), ended.health
    except asyncio.CancelledError:  # a client that does not wait for it stops it
        _abandon(run)
        raise
    answer[DIALOG_HEADER] = str(run.dialog_id)
    add_headers(answer, report)
    return answer


def _begin(request: HttpRequest) -> tuple[ChatRequest, Run]:
    try:
        key = _key_of(request)
        wanted = parse(
            request.body, request.headers.get(DIALOG_HEADER, ""), request.headers.get(lifetime.POLICY_HEADER, "")
        )
        run = conversations.begin(key, wanted)
        return replace(wanted, notices=wanted.notices or _usual_notices(wanted, run)), run
    finally:
        _give_back_connection()


def _usual_notices(wanted: ChatRequest, run: Run) -> str:
    """Words between those of the answer would spoil what a program reads."""
    return "comment" if run.is_proxy or "response_format" in wanted.params else "text"


async def _whole(wanted: ChatRequest, relay: Relay) -> tuple[tuple[str, str], Ended]:
    """Text and reasoning at once, when the answer is complete."""
    texts: list[str] = []
    thoughts: list[str] = []
    ended: Ended | None = None
    async with aclosing(relay.pieces()) as pieces:
        async for piece in pieces:
            match piece:
                case Text(text):
                    texts.append(text)
                case Reasoning(text):
                    thoughts.append(text)
                case Notice(text) if wanted.notices == "text":
                    texts.append(text)
                case Ended():
                    ended = piece
    assert ended is not None
    return ("".join(texts), "".join(thoughts)), ended


async def _stream(
    request: HttpRequest, run: Run, wanted: ChatRequest, first: Piece, others: AsyncGenerator[Piece, None]
) -> AsyncIterator[bytes]:
    """Chunks as server-sent events, ``[DONE]`` last; an error after the first piece is an event, too."""
    answer = Answer(run, wanted.labels)
    complete = isinstance(first, Ended)
    try:
        for chunk in (written(answer.chunk({"role": "assistant", "content": ""})), *_chunks(answer, wanted, first)):
            yield chunk
        async with aclosing(others) as pieces:
            async for piece in pieces:
                complete = isinstance(piece, Ended)
                for chunk in _chunks(answer, wanted, piece):
                    yield chunk
        yield DONE
    except Exception as error:  # noqa: BLE001  the status is sent already: told in the stream, logged there
        yield written(_problem(request, error).body)
    finally:
        if not complete:
            _abandon(run)


def _chunks(answer: Answer, wanted: ChatRequest, piece: Piece) -> list[bytes]:
    match piece:
        case Text(text):
            return [written(answer.chunk({"content": text}))]
        case Reasoning(text):
            return [written(answer.chunk({"reasoning_content": text}))]
        case Notice(text) if wanted.notices == "text":
            return [written(answer.chunk({"content": text}))]
        case Notice(text) if wanted.notices == "comment":
            return [f": {text}\n\n".encode()]
        case KeepAlive():
            return [KEEP_ALIVE]
        case Ended():
            return [written(chunk) for chunk in _last_chunks(answer, wanted, piece)]
    return []


def _last_chunks(answer: Answer, wanted: ChatRequest, ended: Ended) -> list[dict[str, Any]]:
    chunks = [
        answer.chunk({"tool_calls": [{"index": index, **call_json(call)}]}) for index, call in enumerate(ended.calls)
    ]
    chunks.append(answer.chunk({}, ended.finish_reason))
    if wanted.include_usage:
        chunks.append(answer.usage_chunk(ended))
    chunks[-1]["dominds"] = ended.health
    return chunks


def _abandon(run: Run) -> None:
    """The client has gone. The request is being cancelled, so this runs beside it."""

    async def leave() -> None:
        try:
            await in_db_thread(conversations.abandon, run)
        except Exception as error:  # noqa: BLE001  then the answer is merely completed without a reader
            log.warning("v1_not_stopped", dialog_id=str(run.dialog_id), error=str(error) or type(error).__name__)

    task = asyncio.get_running_loop().create_task(leave())
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)


@call("GET", "POST", "PUT", "PATCH", "DELETE")
async def unknown(request: HttpRequest) -> HttpResponse:
    raise ApiError(404, "not_found", f"There is nothing at {request.path}.")
