"""Images that answers name by address: fetched for who asks, from nowhere within, and nothing but images."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse

from dialogs.models import Dialog
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


@pytest.mark.parametrize("name", ["/page.png", "/text.png", "/missing.png"])
def test_what_is_no_image_is_refused(dialog: Dialog, host: PictureHost, settings: Any, name: str) -> None:
    settings.PRIVATE_IMAGES = True
    answer = asked(dialog, host.url + name)
    assert answer.status_code == 400 and answer["Content-Type"].startswith("text/plain")


def test_an_address_within_this_network_is_refused_by_itself(dialog: Dialog, host: PictureHost) -> None:
    answer = asked(dialog, f"{host.url}/a.png?x=1&y=2")
    assert answer.status_code == 400 and b"DOMINDS_PRIVATE_IMAGES" in answer.content and not host.asked


def test_only_what_an_answer_names_is_fetched_and_for_its_readers_alone(
    dialog: Dialog, host: PictureHost, settings: Any
) -> None:
    settings.PRIVATE_IMAGES = True
    address = f"{host.url}/a.png?x=1&y=2"
    assert asked(dialog, f"{host.url}/a.png").status_code == 404  # named by the message, not by the answer
    assert asked(dialog, address, seq=1).status_code == 404
    assert asked(dialog, host.url).status_code == 404
    assert asked(dialog, address, user=UserFactory.create()).status_code == 404
    assert not host.asked
