"""Access to the MCP server: for holders of a key, and from no other site's page."""

from typing import Any, cast

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.csrf import csrf_exempt

from dialogs.accounts import api_keys
from dialogs.api import problems
from dialogs.api.auth import PersonRequest, ScopeRefused, Unauthorized, bearer_of
from dialogs.errors import Refusal
from dialogs.models import ApiKey
from dialogs.store.charging import charge
from dominds.web import busy_database
from dominds.web.socket_origin import is_own


class OriginRefused(Refusal):
    status, code = 403, "origin_refused"


@csrf_exempt  # a cookie is nothing here
@problems.in_json
def serve(request: HttpRequest) -> HttpResponse:
    """Answer one message of the Model Context Protocol (Streamable HTTP). Without sessions, GET opens no stream."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    scope = _scope_of(request)
    try:
        if "Origin" in request.headers and not is_own(scope):
            raise OriginRefused("A page of another site asks. Programs send no Origin header.")
        key = _key_of(request)
    except Refusal as problem:
        answer = problems.refusal_response(problem)
        if problem.status == 401:
            answer["WWW-Authenticate"] = "Bearer"
        return answer
    except (*busy_database.AWAY, TimeoutError) as problem:
        return problems.unavailable(request, problem)
    from dialogs.extras.v1.mcp.server import exchange

    person = cast(PersonRequest, request)
    person.auth = key.owner
    return async_to_sync(exchange)(person, key, scope)


def _key_of(request: HttpRequest) -> ApiKey:
    given = bearer_of(request.headers.get("Authorization", ""))
    key = api_keys.key_of(given)
    if key is None:
        raise Unauthorized(api_keys.refusal_of(given))
    if key.scope == ApiKey.Scope.V1:
        raise ScopeRefused(key)
    charge(key)
    return key


def _scope_of(request: HttpRequest) -> dict[str, Any]:
    """Return the request as ASGI has it."""
    headers = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in request.headers.items()]
    return {
        "type": "http",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "query_string": b"",
        "headers": headers,
    }
