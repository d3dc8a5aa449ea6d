"""Images that answers name by address: fetched for who asks, from nowhere within, and nothing but images."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from redis import Redis

from dialogs.models import Dialog
from dialogs.pages import remote_image
from dominds.budgets import ATTACHMENT_BYTES, Budget
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.doubles.picture_host import PictureHost, picture_host
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host(
        {"/a.png?x=1&y=2": picture(), "/page.png": b"<html>no image</html>", "/text.png": b"\xff\xfe\x00"}
    ) as host:
        yield host


@pytest.fixture
def dialog(script: Script, host: PictureHost) -> Dialog:
    names = ("/a.png?x=1&y=2", "/page.png", "/text.png", "/missing.png")
    script({"text": " ".join(f"![a picture]({host.url}{name})" for name in names)})
    dialog = make_dialog()
    send(dialog, f"not ![this]({host.url}/a.png)")
    return dialog


def asked(dialog: Dialog, address: str, seq: int = 2, user: Any = None) -> HttpResponse:
    at = f"/d/{dialog.pk}/turn/{seq}/remote-image/"
    return browser_of(user or dialog.owner).get(at, {"address": address})  # type: ignore[return-value]


def test_an_image_comes_by_the_server_as_nothing_but_an_image(dialog: Dialog, host: PictureHost, settings: Any) -> None:
    settings.PRIVATE_IMAGES = True
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode()
    assert "<img" not in page and host.asked == []  # drawing the page asked nobody
    answer = asked(dialog, f"{host.url}/a.png?x=1&y=2")
    assert answer.status_code == 200 and answer.content == picture() and answer["Content-Type"] == "image/png"
    assert answer["X-Content-Type-Options"] == "nosniff" and "sandbox" in answer["Content-Security-Policy"]
    ((path, headers),) = host.asked
    assert path == "/a.png?x=1&y=2" and not {"Cookie", "Referer"} & set(headers)


@pytest.mark.parametrize("way", ["429", "302"])
def test_a_host_that_refuses_or_sends_elsewhere_is_not_followed(
    dialog: Dialog, host: PictureHost, settings: Any, way: str
) -> None:
    settings.PRIVATE_IMAGES = True
    host.most_requests, host.redirects_to = (0, "") if way == "429" else (1_000, f"{host.url}/text.png")
    answer = asked(dialog, f"{host.url}/a.png?x=1&y=2")
    assert answer.status_code == 400 and f"its server answered {way}".encode() in answer.content
    assert len(host.asked) == 1


def test_remote_images_are_limited_per_person_and_minute(
    dialog: Dialog, host: PictureHost, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRIVATE_IMAGES = True
    monkeypatch.setattr(remote_image, "REMOTE_IMAGES", Budget("DOMINDS_REMOTE_IMAGES_PER_MINUTE", 2, "images"))
    address = f"{host.url}/a.png?x=1&y=2"
    assert [asked(dialog, name).status_code for name in (address, f"{host.url}/missing.png")] == [200, 400]
    refused = asked(dialog, address)
    assert refused.status_code == 429 and 1 <= int(refused["Retry-After"]) <= 60
    assert b"DOMINDS_REMOTE_IMAGES_PER_MINUTE" in refused.content and len(host.asked) == 2
    other = UserFactory.create(is_superuser=True)
    assert asked(dialog, address, user=other).status_code == 200


def test_simultaneous_fetches_stay_within_a_persons_bytes(
    dialog: Dialog, host: PictureHost, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRIVATE_IMAGES = True
    size = len(picture())
    monkeypatch.setattr(remote_image, "ATTACHMENT_BYTES", Budget("", size, "bytes"))
    monkeypatch.setattr(remote_image, "REMOTE_IMAGE_BYTES", Budget("DOMINDS_REMOTE_IMAGE_BYTES", 3 * size, "bytes"))
    address = f"{host.url}/a.png?x=1&y=2"
    with ThreadPoolExecutor(6) as threads:
        statuses = list(threads.map(lambda _: _fetched(dialog, address), range(6)))
    assert sorted(statuses) == [200] * 3 + [429] * 3 and len(host.asked) == 3


def _fetched(dialog: Dialog, address: str) -> int:
    try:
        return asked(dialog, address).status_code
    finally:
        connection.close()


def test_an_image_that_took_less_is_charged_for_what_it_took(
    dialog: Dialog, host: PictureHost, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRIVATE_IMAGES = True
    most = ATTACHMENT_BYTES.most + 2 * len(picture())
    monkeypatch.setattr(remote_image, "REMOTE_IMAGE_BYTES", Budget("DOMINDS_REMOTE_IMAGE_BYTES", most, "bytes"))
    statuses = [asked(dialog, f"{host.url}/a.png?x=1&y=2").status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


def test_nothing_is_fetched_where_it_is_off_or_cannot_be_counted(
    dialog: Dialog, host: PictureHost, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRIVATE_IMAGES = True
    address = f"{host.url}/a.png?x=1&y=2"
    monkeypatch.setattr(remote_image, "client", lambda: Redis(port=1, socket_connect_timeout=1))
    assert asked(dialog, address).status_code == 429
    settings.REMOTE_IMAGES = False
    assert asked(dialog, address).status_code == 404 and not host.asked
    assert b"data-images" not in browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content


@pytest.mark.parametrize("name", ["/page.png", "/text.png", "/missing.png"])
def test_what_is_no_image_is_refused(dialog: Dialog, host: PictureHost, settings: Any, name: str) -> None:
    settings.PRIVATE_IMAGES = True
    answer = asked(dialog, host.url + name)
    assert answer.status_code == 400 and answer["Content-Type"].startswith("text/plain")


def test_an_address_within_this_network_is_refused_by_itself(dialog: Dialog, host: PictureHost) -> None:
    answer = asked(dialog, f"{host.url}/a.png?x=1&y=2")
    assert answer.status_code == 400 and b"DOMINDS_PRIVATE_IMAGES" in answer.content and not host.asked


def test_only_images_of_answers_are_fetched_for_their_readers(dialog: Dialog, host: PictureHost, settings: Any) -> None:
    settings.PRIVATE_IMAGES = True
    address = f"{host.url}/a.png?x=1&y=2"
    assert asked(dialog, f"{host.url}/a.png").status_code == 404  # named by the message, not by the answer
    assert asked(dialog, address, seq=1).status_code == 404
    assert asked(dialog, host.url).status_code == 404
    assert asked(dialog, address, user=UserFactory.create()).status_code == 404
    assert not host.asked
