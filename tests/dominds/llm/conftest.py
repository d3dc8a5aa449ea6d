from collections.abc import Iterator

import pytest

from tests.dominds.llm.model_server import ModelServer, running_server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running_server() as running:
        yield running
