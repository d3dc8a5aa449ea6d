from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dialogs.factories import write_minds

Script = Callable[..., None]


@pytest.fixture
def script(tmp_path: Path, settings: Any) -> Script:
    """Let the model of provider ``test`` take these steps: ``script({"text": "hello"}, context_length=1000)``."""
    settings.MINDS_DIR = tmp_path / "minds"
    settings.DATA_DIR = tmp_path / "var"

    def write(*steps: dict[str, Any], **model: Any) -> None:
        write_minds(tmp_path / "minds", steps, **model)

    write({"text": "Hello."})
    return write


@pytest.fixture(autouse=True)
def _redis(redis_client: Any) -> None:
    """Services poke and wake through Redis: give them the real one."""
