"""Debian's Chromium for pytest-playwright, and sessions for it without a login form."""

import os
import shutil
from typing import Any

import pytest

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),  # a camera that shows a moving pattern
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def chromium() -> str:
    """Return the browser to test with."""
    wanted = [name] if (name := os.environ.get("CHROMIUM")) else ["chromium-headless-shell", "chromium"]
    for name in wanted:
        if result := shutil.which(name):
            return result
    raise FileNotFoundError(
        f"There is no {' and no '.join(wanted)}. `make test` installs one, or CHROMIUM names another."
    )


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Launch the system's browser, without its background traffic."""
    return {**browser_type_launch_args, "executable_path": chromium(), "args": list(FLAGS)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """Give every page the same size and language, and no animations: they take half of the compositor's time."""
    ours = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "reduced_motion": "reduce"}
    return {**browser_context_args, **ours}


def open_details(page: Any) -> None:
    """Show the details beside a conversation, as a person does: from its ring. Another tab may have left them open."""
    if not page.locator("#side").is_visible():
        page.locator("#ring-button").click()
        page.locator("#context-popover").get_by_role("button", name="Details").click()
    page.locator("#side").wait_for(state="visible")
    page.locator("#context-panel > *").first.wait_for()  # which moves what stands below it


def session_key(user: Any) -> str:
    """Make a logged-in session and return the value of its cookie."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)
