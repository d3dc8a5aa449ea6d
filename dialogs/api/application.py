"""The API as a whole: its routers, JSON parser and renderer, and the shape of its errors."""

from typing import Any, cast

import orjson
from django.http import HttpRequest
from django.utils.module_loading import import_string
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.types import DictStrAny

from dialogs.api import (
    agents,
    attachments,
    context,
    dialogs,
    events,
    messages,
    problems,
    questions,
    reminders,
    search,
    settings,
    turns,
)
from dialogs.api.auth import AUTH
from dialogs.api.schemas import Problem
from dialogs.extension import installed_extensions


class JsonParser(Parser):
    def parse_body(self, request: HttpRequest) -> DictStrAny:
        return cast(DictStrAny, orjson.loads(request.body))


class JsonRenderer(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return orjson.dumps(data)


class Api(NinjaAPI):
    """The API, which adds the one shape of all errors to the description of every call."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        described = super().get_openapi_schema(**options)
        schemas = described["components"]["schemas"]
        schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schemas["Problem"].pop("$defs")
        problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        for calls in described["paths"].values():
            for call in calls.values():
                call["responses"]["default"] = {"description": "refused, or failed", "content": problem}
        return described


api = Api(
    title="Dominds",
    description="Dialogs with agents, and the health of their contexts. Errors are `{error: {code, message}}`.",
    urls_namespace="api",
    auth=AUTH,
    parser=JsonParser(),
    renderer=JsonRenderer(),
)
for subject in (
    agents,
    dialogs,
    messages,
    attachments,
    turns,
    events,
    questions,
    reminders,
    context,
    search,
    settings,
):
    api.add_router("", subject.router)
for extension in installed_extensions():
    for name in extension.routers:
        api.add_router("", import_string(name))
problems.register(api)
