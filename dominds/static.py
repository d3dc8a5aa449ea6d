"""Serve static files from the ASGI server itself."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise ships no types
    """WhiteNoise for both worlds. As shipped it is synchronous, which would put a thread around every stream."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        return self._later(request) if iscoroutinefunction(self) else super().__call__(request)

    async def _later(self, request: HttpRequest) -> HttpResponse:
        found = super().__call__(request)
        return found if isinstance(found, HttpResponse) else await found

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Answer with the whole file: they are small, and an ASGI server cannot stream from a plain iterator."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
