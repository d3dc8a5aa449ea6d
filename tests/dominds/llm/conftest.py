from collections.abc import Iterator

import pytest

from dominds.llm.providers import server_window
from tests.dominds.llm.model_server import ModelServer, running_server


@pytest.fixture(autouse=True)
def _fresh_answers() -> None:
    """What a server answered to an earlier test is not kept for two seconds."""
    server_window.forget()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running_server() as running:
        yield running
