"""The addresses at which programs find `/v1`, `/v1beta` and `/mcp`."""

from django.urls import include, path

from dialogs.extras.v1.mcp import views as mcp

urlpatterns = [
    path("v1/", include("dialogs.extras.v1.urls")),
    path("v1beta/", include("dialogs.extras.v1.gemini.views")),
    path("mcp", mcp.serve, name="mcp"),
]
