"""All addresses. Apps are named as text, since the lowest layer imports none."""

from django.contrib import admin
from django.urls import include, path

from dominds.web import probes, scripts

admin.autodiscover()
admin.site.site_header = admin.site.site_title = "Dominds operations"

handler500 = "dominds.web.busy_database.page"

urlpatterns = [
    path("livez", probes.livez),
    path("readyz", probes.readyz),
    path("metrics", probes.metrics),
    path("scripts.js", scripts.serve, name="scripts"),
    path("admin/", admin.site.urls),
    path("", include("dialogs.urls")),
]
