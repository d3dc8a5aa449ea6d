"""Django's ASGI handler with one change of thread for each request.

Django's own handler sends its signals, the middlewares, the view and the end of the answer to a thread one by one, and
starts a thread for each request. Here a whole request runs at once on a thread of a pool, as under WSGI. Asynchronous
views and streams of responses run on the event loop.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import connections
from django.http import FileResponse, HttpResponseBase
from django.urls import set_script_prefix

# Enough threads for all requests: one to an asynchronous view keeps its thread until the view has answered.
_threads = ThreadPoolExecutor(max_workers=1000, thread_name_prefix="requests")


def get_application() -> "OneThreadHandler":
    """Set up Django and return its application. This replaces Django's ``get_asgi_application``."""
    django.setup(set_prefix=False)
    return OneThreadHandler()


class OneThreadHandler(ASGIHandler):
    """A handler that answers pages and API calls."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the request, unless the client disconnects before."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        answering = asyncio.create_task(self._answer(scope, body, send))
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answering.cancel()  # has no effect on a task that is done
            leaving.cancel()
            await asyncio.wait((answering, leaving))
            body.close()
        if not leaving.cancelled():
            leaving.exception()  # retrieved and ignored: the client has disconnected
        if not answering.cancelled():
            answering.result()

    async def _answer(self, scope: Any, body: Any, send: Any) -> None:
        set_script_prefix(get_script_prefix(scope))
        request, response = self.create_request(scope, body)
        if response is None:
            respond = sync_to_async(self._respond, thread_sensitive=False, executor=_threads)
            response = await respond(scope, request)
        try:
            await self.send_response(response, send)
        finally:
            if not response.closed:
                await sync_to_async(response.close)()

    def _respond(self, scope: Any, request: Any) -> HttpResponseBase:
        """Make the response, on a thread of the pool. If it does not stream it is closed, which ends the request."""
        request_started.send(sender=self.__class__, scope=scope)
        response = self.get_response(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # the sender of ``request_finished``
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if response.streaming:
            connections.close_all()  # the stream is read on other threads
        else:
            response.close()
        return response
