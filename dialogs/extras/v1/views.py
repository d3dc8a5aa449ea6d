"""The calls of ``/v1``, by protocol."""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from dialogs.extras.v1 import chat
from dialogs.extras.v1.answers import DIALOG_HEADER, answer_by, begin, compact
from dialogs.extras.v1.calls import call, key_of
from dialogs.extras.v1.embeddings import embeddings_of
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.messages.answer import error_body as message_error
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.messages.request import read as read_message
from dialogs.extras.v1.parsing import body_of
from dialogs.extras.v1.responses.compacting import compacted_json, read_compaction
from dialogs.extras.v1.responses.request import read as read_response
from dialogs.extras.v1.responses.request import read_to_count
from dialogs.extras.v1.responses.retrieval import cancel, response_of
from dialogs.extras.v1.wire import Prior, Sent
from dialogs.models import Agent
from dialogs.queries import overviews

ADDRESSES = (
    "Clients of OpenAI's protocols take the address of this server with /v1 behind it as their base URL, those of "
    "Anthropic's and Google's without; there are chat/completions, responses, messages, embeddings and models."
)

# -- models ------------------------------------------------------------------------------------------------------------


@call("GET")
async def list_models(request: HttpRequest) -> HttpResponseBase:
    data = await sync_to_async(models_of)(request)
    ids = [row["id"] for row in data] or [None]
    page = {"has_more": False, "first_id": ids[0], "last_id": ids[-1]}  # as Anthropic's clients expect it
    return JsonResponse({"object": "list", "data": data, **page})


@call("GET")
async def get_model(request: HttpRequest, model: str) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(model_of)(request, model))


def model_of(request: HttpRequest, model: str) -> dict[str, Any]:
    row = next((row for row in models_of(request) if row["id"] == model), None)
    if row is None:
        raise ApiError(404, "model_not_found", f"The model {model!r} does not exist.", param="model")
    return row


def models_of(request: HttpRequest) -> list[dict[str, Any]]:
    key_of(request)
    agents = list(Agent.objects.filter(enabled=True).order_by("pk"))
    return [_model_json(agent, row) for agent, row in zip(agents, overviews.describe_agents(agents), strict=True)]


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
    return await answer_by(request, chat.read)


# -- messages ----------------------------------------------------------------------------------------------------------


@call("POST", error_body=message_error)
async def create_message(request: HttpRequest) -> HttpResponseBase:
    return await answer_by(request, read_message)


@call("POST", error_body=message_error)
async def count_message_tokens(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse({"input_tokens": await sync_to_async(_count_tokens)(request)})


def _count_tokens(request: HttpRequest) -> int:
    key_of(request)
    return est_tokens(chat_request_of(body_of(request.body)))


# -- responses ---------------------------------------------------------------------------------------------------------


@call("POST")
async def create_response(request: HttpRequest) -> HttpResponseBase:
    return await answer_by(request, read_response)


@call("POST")
async def count_input_tokens(request: HttpRequest) -> HttpResponseBase:
    tokens = await sync_to_async(_input_tokens)(request)
    return JsonResponse({"object": "response.input_tokens", "input_tokens": tokens})


def _input_tokens(request: HttpRequest) -> int:
    key = key_of(request)
    return est_tokens(read_to_count(Sent(body_of(request.body), "", "", key)))


@call("POST")
async def compact_response(request: HttpRequest) -> HttpResponseBase:
    key, reading, prior = await sync_to_async(begin)(request, read_compaction)
    assert isinstance(prior, Prior)
    run, outcome = await compact(key, prior, reading)
    answer = JsonResponse(compacted_json(run, prior, outcome))
    answer[DIALOG_HEADER] = str(run.dialog_id)
    return answer


@call("GET")
async def get_response(request: HttpRequest, response_id: str) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(_response)(request, response_id))


def _response(request: HttpRequest, response_id: str) -> dict[str, Any]:
    key = key_of(request)
    if (name := "stream") in request.GET and request.GET[name] != "false":
        raise invalid("A stream is not begun again: read the response until its status says that it has ended.", name)
    return response_of(key, response_id)


@call("POST")
async def cancel_response(request: HttpRequest, response_id: str) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(_cancel)(request, response_id))


def _cancel(request: HttpRequest, response_id: str) -> dict[str, Any]:
    return cancel(key_of(request), response_id)


# -- embeddings --------------------------------------------------------------------------------------------------------


@call("POST")
async def create_embeddings(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse(await sync_to_async(_embeddings)(request))


def _embeddings(request: HttpRequest) -> dict[str, Any]:
    key = key_of(request)
    return embeddings_of(body_of(request.body), key)


@call("GET", "POST", "PUT", "PATCH", "DELETE")
async def unknown(request: HttpRequest) -> HttpResponse:
    words = f"There is nothing at {request.path}. {ADDRESSES}"
    raise ApiError(404, "not_found", words)
