from typing import Any

from django.urls import path, re_path

from dialogs.live.consumers import NOT_FOUND, PageSocket


async def unknown_address(scope: Any, receive: Any, send: Any) -> None:
    """Refuse an unknown address as a page would, without an error in the log."""
    await receive()
    await send({"type": "websocket.close", "code": NOT_FOUND})


websocket_urlpatterns = [
    path("ws/dialogs/<uuid:dialog_id>/", PageSocket.as_asgi()),
    path("ws/me/", PageSocket.as_asgi()),
    re_path(r"", unknown_address),  # type: ignore[arg-type]  # the stubs know only pages
]
