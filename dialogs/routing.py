from django.urls import path

from dialogs.live.consumers import PageSocket

websocket_urlpatterns = [
    path("ws/dialogs/<uuid:dialog_id>/", PageSocket.as_asgi()),
    path("ws/me/", PageSocket.as_asgi()),
]
