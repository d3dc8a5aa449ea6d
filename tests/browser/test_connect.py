"""The first minute of somebody new who has a model server on this machine."""

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import answered
from tests.doubles.local_servers import OllamaDouble
from tests.harness.stack import Stack


def test_somebody_new_chats_with_a_local_model_by_clicks_alone(make_stack: Callable[..., Stack], page: Page) -> None:
    with OllamaDouble() as server:
        stack = make_stack(settings={"DOMINDS_LOCAL_SERVERS": f"ollama={server.url}"})
        began_at = time.monotonic()
        page.goto(stack.base_url)
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("link", name="Connect a model").click()
        page.get_by_role("button", name=f"Use {server.model}").click()
        expect(page.get_by_role("button", name=f"Agent: {server.model}")).to_be_visible()
        expect(page.locator("#text")).to_be_focused()  # the last thing that the page's scripts do
        page.get_by_role("button", name="What can you do here").click()
        page.get_by_role("button", name="Send").click()
        answered(page)
        assert time.monotonic() - began_at < 60
        assert server.bodies[-1]["model"] == server.model
