"""Serving of static files by the ASGI server itself."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

from dominds.web.build import BUILD
from dominds.web.compression import compress_file

FOR_EVER = f"max-age={WhiteNoiseMiddleware.FOREVER}, public, immutable"


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise ships no types
    """WhiteNoise that answers with whole files, since they are small and ASGI cannot stream a plain iterator."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        result = static_file.get_response(request.method, request.META)
        body = b""
        if result.file is not None:
            with result.file:
                body = result.file.read()
        response = HttpResponse(body, status=int(result.status))
        del response["Content-Type"]
        for name, value in result.headers:
            response[name] = value
        if request.GET.get("v") == BUILD and not settings.DEBUG:
            response["Cache-Control"] = FOR_EVER  # another content has another address
        compress_file(request, response)
        return response
