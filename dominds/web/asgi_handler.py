"""Django's ASGI handler with one change of thread for each request.

Django's own handler sends its signals, the middlewares, the view and the end of the answer to a thread one after
another, and makes and ends a thread for each request. Here a whole request runs in one go on a lasting thread, as under
WSGI. Asynchronous views, and the streams of responses, run on the loop.
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

# As many as it takes: a request to an asynchronous view keeps its thread until that has answered.
_threads = ThreadPoolExecutor(max_workers=1000, thread_name_prefix="requests")


def get_application() -> "OneThreadHandler":
    """Set Django up and return its application, in place of Django's ``get_asgi_application``."""
    django.setup(set_prefix=False)
    return OneThreadHandler()


class OneThreadHandler(ASGIHandler):
    """A handler that answers pages and API calls."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the request, unless the client leaves before."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        answering = asyncio.create_task(self._answer(scope, body, send))
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answering.cancel()  # neither does anything to a task that is done
            leaving.cancel()
            await asyncio.wait((answering, leaving))
            body.close()
        if not leaving.cancelled():
            leaving.exception()  # it left: nobody is there to be told
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
        """Answer on a thread. A whole response is closed here, which ends the request."""
        request_started.send(sender=self.__class__, scope=scope)
        response = self.get_response(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # whose signal tells the end
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if response.streaming:
            connections.close_all()  # the stream is read on other threads
        else:
            response.close()
        return response
