"""Addresses below ``/api/``. The last one answers unknown addresses in JSON, since a program cannot
read an HTML page."""

from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt

from dialogs.api.application import api
from dialogs.api.problems import in_json, unknown_address

_addresses, _app, _namespace = api.urls
for address in _addresses:
    assert isinstance(address, URLPattern)
    address.callback = in_json(address.callback)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", (_addresses, _app, _namespace)),
    re_path(r"", csrf_exempt(unknown_address)),
]
