"""A page of another program on this machine, which a browser gives the same cookies."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from dialogs.actions import messages
from tests.browser.conftest import LogIn
from tests.harness.stack import Stack

OPEN_SOCKET = """([address]) => new Promise((resolve) => {
  const socket = new WebSocket(address);
  socket.onopen = () => resolve("opened");
  socket.onerror = () => resolve("refused");
})"""


@pytest.fixture
def other_port(tmp_path: Path) -> Iterator[str]:
    """A page at another port of the same host."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    (tmp_path / "index.html").write_text("<!doctype html><title>Other</title><p>Another program.</p>")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def test_a_page_from_another_port_opens_no_socket(
    stack: Stack, person: User, page: Page, log_in: LogIn, other_port: str
) -> None:
    dialog = messages.create_dialog(person, "short")
    log_in(page.context, person)
    sockets = [f"{stack.socket_url}/ws/me/", f"{stack.socket_url}/ws/dialogs/{dialog.pk}/?after=0"]
    page.goto(other_port)
    assert [page.evaluate(OPEN_SOCKET, [address]) for address in sockets] == ["refused", "refused"]
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    assert [page.evaluate(OPEN_SOCKET, [address]) for address in sockets] == ["opened", "opened"]


def test_a_page_of_ours_reaches_no_other_port(
    stack: Stack, person: User, page: Page, log_in: LogIn, other_port: str
) -> None:
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/")
    fetched = "([address]) => fetch(address, {mode: 'no-cors'}).then(() => 'fetched', () => 'refused')"
    assert page.evaluate(fetched, [other_port]) == "refused"
    refused = """([address]) => new Promise((resolve) => {
      addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
      try { new WebSocket(address).onopen = () => resolve("opened"); } catch (error) { resolve("connect-src"); }
    })"""
    assert page.evaluate(refused, [other_port.replace("http", "ws")]) == "connect-src"
