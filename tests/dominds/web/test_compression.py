"""Answers are compressed for whoever accepts it, and streams never are."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from dominds.web.compression import CompressedAnswers

GZIP = {"accept-encoding": "gzip, deflate, br"}
STYLES = "/static/css/base.css"

pytestmark = pytest.mark.django_db


def through(response: HttpResponse | StreamingHttpResponse) -> HttpResponse:
    middleware = CompressedAnswers(lambda _: response)
    answer = middleware(RequestFactory().get("/", headers=GZIP))
    assert isinstance(answer, type(response))
    return answer  # type: ignore[return-value]


def test_a_page_is_compressed_only_for_who_accepts_it(client: Client) -> None:
    plain, packed = client.get("/admin/login/"), client.get("/admin/login/", headers=GZIP)
    assert "Content-Encoding" not in plain and packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in plain["Vary"] and "Accept-Encoding" in packed["Vary"]
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content) / 2
    assert b"</html>" in gzip.decompress(packed.content)


def test_the_length_of_a_compressed_page_gives_no_secret_away() -> None:
    def page(_: HttpRequest) -> HttpResponse:
        return HttpResponse("<p>The same text.</p>" * 40)

    middleware = CompressedAnswers(page)
    answers = [middleware(RequestFactory().get("/", headers=GZIP)) for _ in range(40)]
    lengths = {len(answer.content) for answer in answers if isinstance(answer, HttpResponse)}
    assert len(lengths) > 5


@pytest.mark.parametrize("kind", ["text/event-stream", "text/markdown; charset=utf-8"])
def test_no_stream_waits_in_a_compressor(kind: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"data: a piece that is long enough to be worth it\n\n" * 20

    answer = through(StreamingHttpResponse(pieces(), content_type=kind))
    assert "Content-Encoding" not in answer and b"".join(answer).startswith(b"data: a piece")


def test_what_is_packed_already_stays_as_it_is() -> None:
    assert "Content-Encoding" not in through(HttpResponse(b"\x89PNG" * 200, content_type="image/png"))
    assert through(HttpResponse(b"{}" * 200, content_type="application/json"))["Content-Encoding"] == "gzip"


def test_a_static_file_is_compressed_and_still_revalidated(client: Client) -> None:
    plain, packed = client.get(STYLES), client.get(STYLES, headers=GZIP)
    assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.content) == plain.content
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content) / 2
    assert client.get(STYLES, headers={**GZIP, "if-none-match": packed["ETag"]}).status_code == 304
    part = client.get(STYLES, headers={**GZIP, "range": "bytes=0-999"})
    assert (part.status_code, part.content) == (206, plain.content[:1000])


def test_a_proxy_may_compress_instead(client: Client, settings: Any) -> None:
    settings.COMPRESS_ANSWERS = False
    assert "Content-Encoding" not in client.get(STYLES, headers=GZIP)
    with pytest.raises(MiddlewareNotUsed):
        CompressedAnswers(lambda _: HttpResponse())
