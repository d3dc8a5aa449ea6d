"""Compression of answers for clients that accept gzip."""

import gzip
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware, re_accepts_gzip
from django.utils.cache import patch_vary_headers

KINDS = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "image/svg+xml",
        "text/css",
        "text/html",
        "text/javascript",
        "text/markdown",
        "text/plain",
    }
)
LEAST_BYTES = 200  # Django's bound: a shorter answer would hardly shrink


class CompressedAnswers(GZipMiddleware):
    """Compresses answers of views, except for streams, since a compressor holds pieces back.

    Django adds up to 100 random bytes to each answer, so that its length does not reveal whether somebody guessed a
    secret of the page (BREACH).
    """

    def __init__(self, get_response: Any) -> None:
        if not settings.COMPRESS_ANSWERS:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not _is_worth_it(response):
            return response
        return super().process_response(request, response)


def compress_file(request: HttpRequest, response: HttpResponse) -> None:
    """Compress the answer with a static file. The compressed content is cached."""
    is_whole = response.status_code == 200  # excludes parts of a file, and the answer that it has not changed
    if (
        not settings.COMPRESS_ANSWERS
        or not is_whole
        or len(response.content) < LEAST_BYTES
        or not _is_worth_it(response)
    ):
        return
    patch_vary_headers(response, ("Accept-Encoding",))
    if re_accepts_gzip.search(request.headers.get("Accept-Encoding", "")):
        response.content = _compress(response.content)
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(len(response.content))


def _is_worth_it(response: HttpResponseBase) -> bool:
    return response.get("Content-Type", "").partition(";")[0] in KINDS


@lru_cache(maxsize=256)  # there are fewer files
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
