"""What machines ask: life, readiness, numbers; and the headers that every page carries."""

import hashlib
import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.templatetags.static import static
from django.test import AsyncClient, Client

from tests.harness.stack import ROOT

pytestmark = pytest.mark.server


def test_a_living_process_says_so_without_asking_anyone(client: Client) -> None:
    answer = client.get("/livez")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db(transaction=True)
def test_it_is_ready_when_database_and_redis_answer(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.json() == {"ready": True, "database": "ok", "redis": "ok"}
    assert answer.status_code == 200


@pytest.mark.django_db(transaction=True)
def test_it_is_not_ready_without_redis_and_names_it(client: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "ok"
    assert answer.json()["redis"] == "Unavailable: ConnectionError"


def test_probes_answer_by_address_and_pages_only_by_name(client: Client) -> None:
    assert client.get("/livez", headers={"host": "10.1.2.3"}).status_code == 200
    assert client.get("/admin/login/", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.django_db
def test_metrics_are_open_on_loopback_and_guarded_elsewhere(client: Client, settings: Any) -> None:
    assert b"django_http_requests" in client.get("/metrics").content
    settings.LOOPBACK_ONLY = False
    assert client.get("/metrics").status_code == 404
    settings.METRICS_TOKEN = "scrape-me-please"
    assert client.get("/metrics", headers={"authorization": "Bearer scrape-me-please"}).status_code == 200
    assert client.get("/metrics", headers={"authorization": "Bearer guess"}).status_code == 404
    ada = get_user_model().objects.create_user("ada", is_staff=True)
    client.force_login(ada)
    assert client.get("/metrics").status_code == 404
    ada.user_permissions.add(Permission.objects.get(codename="view_metrics"))
    assert client.get("/metrics").status_code == 200


@pytest.mark.django_db
def test_every_page_carries_the_security_headers(client: Client) -> None:
    answer = client.get("/admin/login/")
    policy = dict(part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert policy["img-src"] == "'self' data:"
    assert policy["style-src"] == policy["form-action"] == policy["font-src"] == "'self'"
    assert policy["script-src"].startswith("'self'")
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert policy["connect-src"] == "'self' ws://testserver", "sockets to its own origin, to no other port"
    named = client.get("/admin/login/", headers={"host": "127.0.0.1:8123"})["Content-Security-Policy"]
    assert "connect-src 'self' ws://127.0.0.1:8123;" in f"{named};"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"


def test_static_files_are_served_and_refreshed_soon(client: Client) -> None:
    answer = client.get("/static/admin/css/base.css")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/css")
    assert answer["Cache-Control"] == "max-age=60, public"
    again = client.get("/static/admin/css/base.css", headers={"if-none-match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/static/../settings.py").status_code == 404


@pytest.mark.anyio
async def test_static_files_are_served_by_the_asgi_server_too(async_client: AsyncClient) -> None:
    answer = await async_client.get("/static/admin/css/base.css")
    assert answer.status_code == 200
    assert len(answer.content) == int(answer["Content-Length"])


def test_files_are_kept_for_ever_under_the_build_in_their_addresses(client: Client) -> None:
    for address, kept in (
        (static("icons.svg"), True),
        ("/static/icons.svg", False),
        ("/static/icons.svg?v=other", False),
    ):
        assert ("immutable" in client.get(address)["Cache-Control"]) is kept


def test_fonts_are_kept_for_ever_under_the_hash_in_their_names(client: Client) -> None:
    styles = (ROOT / "static/css/fonts.css").read_text()
    named = re.findall(r'url\("\.\./fonts/([^"]+)"\)', styles)
    assert sorted(named) == sorted(path.name for path in (ROOT / "static/fonts").glob("*.woff2"))
    for name in named:
        answer = client.get(f"/static/fonts/{name}")
        assert hashlib.sha256(answer.content).hexdigest()[:8] == name.split(".")[1]
        assert "max-age=315360000" in answer["Cache-Control"] and "immutable" in answer["Cache-Control"]
    page = (ROOT / "templates/base.html").read_text()
    preloaded = re.search(r'<link\s+rel="preload"\s+href="{% get_static_prefix %}fonts/([^"]+)"', page)
    assert preloaded is not None and preloaded[1] == named[0]  # the one that every page needs
