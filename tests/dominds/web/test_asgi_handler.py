"""Requests through the ASGI handler of our own: answered as by Django's, on threads that stay and keep nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from dominds.web.asgi_handler import OneThreadHandler

pytestmark = [pytest.mark.anyio, pytest.mark.django_db(transaction=True)]
seen: dict[str, Any] = {}


def ask_database(where: str) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
    seen[where] = threading.current_thread()
    seen.setdefault("connections", []).append(connections["default"])


def whole(request: HttpRequest) -> HttpResponse:
    ask_database("whole")
    return HttpResponse(request.body)


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    ask_database("streamed")

    async def pieces() -> AsyncIterator[bytes]:
        seen["streaming"] = threading.current_thread()
        yield b"one "
        yield b"two"

    return StreamingHttpResponse(pieces())


async def patient(request: HttpRequest) -> HttpResponse:
    seen["waiting"] = True
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        seen["cancelled"] = True
        raise
    return HttpResponse()


def broken(request: HttpRequest) -> HttpResponse:
    raise ValueError("on purpose")


urlpatterns = [path("whole", whole), path("streamed", streamed), path("patient", patient), path("broken", broken)]
here = override_settings(ROOT_URLCONF=__name__)


def request_to(handler: OneThreadHandler, place: str) -> ApplicationCommunicator:
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/{place}",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    return ApplicationCommunicator(handler, scope)


async def answer(handler: OneThreadHandler, place: str, body: bytes = b"") -> tuple[int, bytes]:
    asking = request_to(handler, place)
    await asking.send_input({"type": "http.request", "body": body[:3], "more_body": True})
    await asking.send_input({"type": "http.request", "body": body[3:]})
    start = await asking.receive_output(10)
    parts = [await asking.receive_output(10)]
    while parts[-1].get("more_body"):
        parts.append(await asking.receive_output(10))
    await asking.wait(10)
    return start["status"], b"".join(part.get("body", b"") for part in parts)


@pytest.fixture
def handler() -> Any:
    seen.clear()
    with here, override_settings(MIDDLEWARE=["django.middleware.common.CommonMiddleware"], ALLOWED_HOSTS=["localhost"]):
        yield OneThreadHandler()


async def test_whole_and_streamed_answers_arrive_whole_and_leave_no_connection(handler: OneThreadHandler) -> None:
    seen["loop"] = threading.current_thread()
    assert await answer(handler, "whole", b"what was sent") == (200, b"what was sent")
    assert await answer(handler, "streamed") == (200, b"one two")
    assert seen["whole"] is not seen["loop"]
    assert seen["streaming"] is seen["loop"]
    assert [connection.connection for connection in seen["connections"]] == [None, None]


async def test_a_thread_serves_one_request_after_another(handler: OneThreadHandler) -> None:
    threads = {await _thread_of(handler) for _ in range(5)}
    assert len(threads) < 5
    assert all(thread.is_alive() for thread in threads)


async def _thread_of(handler: OneThreadHandler) -> threading.Thread:
    await answer(handler, "whole")
    thread: threading.Thread = seen["whole"]
    return thread


async def test_a_view_that_fails_answers_500(handler: OneThreadHandler) -> None:
    status, _ = await answer(handler, "broken")
    assert status == 500


async def test_who_leaves_ends_the_view_that_waits(handler: OneThreadHandler) -> None:
    asking = request_to(handler, "patient")
    await asking.send_input({"type": "http.request", "body": b""})
    while "waiting" not in seen:
        await asyncio.sleep(0.01)
    await asking.send_input({"type": "http.disconnect"})
    await asking.wait(10)
    assert seen["cancelled"]
