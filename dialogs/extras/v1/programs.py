"""The addresses at which programs find `/v1` and `/mcp`."""

from django.urls import include, path

from dialogs.extras.v1.mcp import views as mcp

urlpatterns = [
    path("v1/", include("dialogs.extras.v1.urls")),
    path("mcp", mcp.serve, name="mcp"),
]
