"""The calls of ``/v1beta``, which Gemini's clients make."""

from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path, re_path

from dialogs.extras.v1 import views
from dialogs.extras.v1.answers import answer_by
from dialogs.extras.v1.calls import call, key_of
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.fields import read_object
from dialogs.extras.v1.gemini.answer import error_body
from dialogs.extras.v1.gemini.request import chat_of, read
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.parsing import body_of

PREFIX = "models/"
METHODS = ["generateContent", "streamGenerateContent", "countTokens"]


@call("POST", error_body=error_body)
async def use_model(request: HttpRequest, model: str, method: str) -> HttpResponseBase:
    match method:
        case "generateContent":
            return await answer_by(request, partial(read, model=model, stream=False))
        case "streamGenerateContent" if request.GET.get("alt") != "sse":
            raise invalid("Only streams of server-sent events are offered: ask with ?alt=sse.", "alt")
        case "streamGenerateContent":
            return await answer_by(request, partial(read, model=model, stream=True))
        case "countTokens":
            return JsonResponse({"totalTokens": await sync_to_async(_count_tokens)(request, model)})
    raise ApiError(404, "not_found", f"{method} is not offered; known are {', '.join(METHODS)}.")


def _count_tokens(request: HttpRequest, model: str) -> int:
    key_of(request)
    body = body_of(request.body)
    whole = read_object(body.get("generateContentRequest"), "generateContentRequest") or body
    return est_tokens(chat_of(whole, model).request("", "", is_asking=False))


@call("GET", error_body=error_body)
async def list_models(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse({"models": [_model_json(row) for row in await sync_to_async(views.models_of)(request)]})


@call("GET", error_body=error_body)
async def get_model(request: HttpRequest, model: str) -> HttpResponseBase:
    return JsonResponse(_model_json(await sync_to_async(views.model_of)(request, model)))


def _model_json(row: dict[str, Any]) -> dict[str, Any]:
    limit = {"inputTokenLimit": row["context_length"]} if row["context_length"] else {}
    about = {"displayName": row["name"], "version": "1", "supportedGenerationMethods": METHODS}
    return {"name": f"{PREFIX}{row['id']}", "baseModelId": row["id"], **about, **limit}


@call("GET", "POST", "PUT", "PATCH", "DELETE", error_body=error_body)
async def unknown(request: HttpRequest) -> HttpResponseBase:
    raise ApiError(404, "not_found", f"There is nothing at {request.path}.")


urlpatterns = [
    path("models", list_models, name="v1beta-models"),
    re_path(r"^models/(?P<model>.+):(?P<method>[A-Za-z]+)$", use_model, name="v1beta-use"),
    path("models/<path:model>", get_model, name="v1beta-model"),
    re_path(r"", unknown),
]
