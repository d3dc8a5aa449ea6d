"""A dialog with a model behind real HTTP, driven in this process against real rows."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User

from dialogs.actions import messages
from dialogs.models import Dialog, Generation
from dialogs.queries.sent_requests import sent_request
from dialogs.runtime.driver import drive
from dominds.llm.models import learned
from dominds.llm.providers import server_window
from remediation.tokens.counting import counter_for
from tests.dialogs.factories import UserFactory, make_dialog
from tests.doubles.brains import Reply
from tests.doubles.local_servers import EXCEEDING, LlamaCppDouble, LMStudioDouble, LocalDouble
from tests.doubles.rules import Refusal
from tests.doubles.serving import Double
from tests.harness import transactions

MODEL = "llama-3.1-8b-instruct"
TOO_LONG = EXCEEDING.words.format(tokens=200_000, window=131_072)
OVER = Reply(error=(400, LlamaCppDouble.kind.error(Refusal("too long", 400, TOO_LONG, EXCEEDING.type))))
"""What a llama.cpp says to a request that is too long for it."""


@pytest.fixture(autouse=True)
def _redis(redis_client: Any) -> None:
    """Services poke and wake through Redis: give them the real one."""


@pytest.fixture(autouse=True)
def _fresh_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model server answered is not kept, so that whoever asks in a transaction always does."""
    monkeypatch.setattr(server_window, "CACHE_SECONDS", 0.0)
    server_window.forget()


@pytest.fixture(autouse=True)
def _nothing_is_learned() -> Iterator[None]:
    yield
    learned.forget()


@pytest.fixture(scope="session", autouse=True)
def _vocabularies() -> None:
    """Loaded before any transaction, as a worker loads them when it starts."""
    for model in ("gpt-4o", "gpt-4", "llama-3.1-8b-instruct", "llama-2-7b", "mistral-7b-instruct"):
        counter_for(model).count("Loaded.")


@pytest.fixture(autouse=True)
def _nothing_slow_within_transactions(_django_db_marker: None) -> Iterator[None]:
    with transactions.nothing_slow_within(transactions.MOST_COMPUTED_SECONDS):
        yield


@pytest.fixture(autouse=True)
def _requests_made_again(db: None) -> Iterator[None]:
    """Whatever happened to a dialog: each of its requests can be made again from rows, byte for byte,
    while the texts of its guidance are there."""
    yield
    rows = Generation.objects.filter(purpose__in=["reply", "forced_clear"], sent__isnull=False)
    differing = {row.pk: differs for row in rows if (differs := sent_request(row).differs)}
    assert {pk: differs for pk, differs in differing.items() if "is gone in version" not in differs} == {}


Serve = Callable[..., LocalDouble]
"""Those of the fixture ``serve``."""


class Minds:
    """The folder that names a server's models to the product. ``models`` are fields of ``llm.yaml``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.providers: dict[str, Any] = {}

    def serve(self, server: Double, api_type: str = "openai-compatible", **fields: Any) -> None:
        entry = {
            "name": "Double",
            "apiType": api_type,
            "baseUrl": f"{server.url}/v1",
            "models": {server.model: {"name": "Double", **fields}},
        }
        self.providers["double"] = entry
        self.write()

    def set(self, model: str, **fields: Any) -> None:
        """Change a model's metadata, as an operator does with an editor."""
        self.providers["double"]["models"][model].update(fields)
        self.write()

    def write(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "llm.yaml").write_text(yaml.safe_dump({"providers": self.providers}))


@pytest.fixture
def minds(tmp_path: Path, settings: Any) -> Minds:
    settings.MINDS_DIR = tmp_path / "minds"
    settings.DATA_DIR = tmp_path / "var"
    settings.WORKSPACE_DIR = tmp_path / "workspace"
    settings.MESSAGES_PER_MINUTE = 0
    (tmp_path / "workspace").mkdir()
    return Minds(tmp_path / "minds")


@pytest.fixture
def serve(minds: Minds) -> Iterator[Serve]:
    """Start a strict double and name it in llm.yaml: a llama.cpp, or an LM Studio where that is the API's type, as in
    ``serve(window=8_000, api_type="lmstudio", optimal_max_tokens=5_000)``. It counts as the real model does.

    Refused requests fail the test at its end, but by the rules that it names in ``refuses``.
    """
    expected: dict[Double, set[str]] = {}
    with ExitStack() as stack:

        def start(
            model: str = MODEL,
            window: int = 131_072,
            api_type: str = "openai-compatible",
            *,
            refuses: str = "",
            traits: Any = None,
            **fields: Any,
        ) -> LocalDouble:
            is_studio = api_type == "lmstudio"
            kind = LMStudioDouble if is_studio else LlamaCppDouble
            double = stack.enter_context(kind(model=model, window=window, by_template=True, **(traits or {})))
            minds.serve(double, api_type, **fields)
            expected[double] = {refuses, "path"}  # sockets and lists of other software are asked for, and not there
            return double

        yield start
    assert [one for double, rules in expected.items() for one in double.refusals if one.rule not in rules] == []


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(is_staff=True, is_superuser=True)


def dialog_with(server: Double, **agent: Any) -> Dialog:
    """Without recall unless it is asked for: most flows look at the end of a request."""
    return make_dialog(provider="double", model=server.model, **{"recall": False, **agent})


def overflows(server: Double) -> int:
    """Requests that were longer than the window, and answers that were cut because they filled it."""
    too_long = [request for request in server.requests if request.refusal and request.refusal.rule == "too long"]
    return len(too_long) + sum(request.is_full and request.is_sent for request in server.requests)


def say(dialog: Dialog, text: str) -> None:
    """Send a message and let the driver do all that follows from it."""
    messages.post_message(dialog.pk, text)
    go_on(dialog)


def go_on(dialog: Dialog) -> None:
    drive(dialog.pk)
    dialog.refresh_from_db()
