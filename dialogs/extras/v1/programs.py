"""The addresses at which programs find `/v1`, `/v1beta` and `/mcp`."""

from django.urls import include, path, re_path

from dialogs.extras.v1 import views
from dialogs.extras.v1.mcp import views as mcp

urlpatterns = [
    path("v1/", include("dialogs.extras.v1.urls")),
    path("v1beta/", include("dialogs.extras.v1.gemini.views")),
    path("mcp", mcp.serve, name="mcp"),
    # Clients whose base URL lacks /v1 ask here. They are told so in JSON, where a page would tell them nothing.
    re_path(r"^(?:chat/completions|completions|embeddings|messages|responses)$", views.unknown),
]
