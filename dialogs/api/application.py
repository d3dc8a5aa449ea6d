"""The API as a whole: its routers, how it reads and writes JSON, and its words for errors."""

from typing import Any, cast

import orjson
from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.types import DictStrAny

from dialogs.api import agents, context, dialogs, events, messages, problems, questions, reminders, settings
from dialogs.api.auth import AUTH


class JsonParser(Parser):
    def parse_body(self, request: HttpRequest) -> DictStrAny:
        return cast(DictStrAny, orjson.loads(request.body))


class JsonRenderer(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return orjson.dumps(data)


api = NinjaAPI(
    title="Dominds",
    description="Dialogs with agents, and the health of their contexts. Errors are `{error: {code, message}}`.",
    urls_namespace="api",
    auth=AUTH,
    parser=JsonParser(),
    renderer=JsonRenderer(),
)
for subject in (agents, dialogs, messages, events, questions, reminders, context, settings):
    api.add_router("", subject.router)
problems.register(api)
