"""Dialogs with servers whose answers other people's clients failed on (see the test of the readers by this name)."""

from collections.abc import Iterator

import pytest

from dialogs.models import Dialog
from remediation.models import ContextEvent
from tests.dialogs.factories import make_dialog
from tests.dominds.llm.model_server import ModelServer, data, stream_of
from tests.dominds.llm.model_server import running_server as server_of_bytes
from tests.dominds.llm.providers.chat_chunks import DONE, call, delta
from tests.flows.conftest import Minds, say

pytestmark = pytest.mark.django_db(transaction=True)

USAGE = {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 3, "total_tokens": 903}}
ANSWER = stream_of(data(delta(content="Ok."), delta("stop"), USAGE, DONE))


@pytest.fixture
def server(minds: Minds) -> Iterator[ModelServer]:
    with server_of_bytes() as server:
        entry = {"apiType": "openai-compatible", "models": {"a-model": {"context_length": 32_000}}}
        minds.providers["double"] = {**entry, "baseUrl": f"{server.url}/v1"}
        minds.write()
        server.will(ANSWER)
        yield server


@pytest.fixture
def dialog(server: ModelServer) -> Dialog:
    return make_dialog(provider="double", model="a-model")


def test_an_answer_keeps_the_words_that_come_as_numbers(server: ModelServer, dialog: Dialog) -> None:
    pieces = [delta(content=text) for text in ("See [", 1, "].")]
    server.will(stream_of(data(*pieces, delta("stop"), USAGE, DONE)))
    say(dialog, "Who says so?")
    assert dialog.turns.filter(text="See [1].").exists()


def test_a_call_whose_arguments_are_repeated_is_made_once(server: ModelServer, dialog: Dialog) -> None:
    remind = '{"content":"Buy milk."}'
    pieces = (call(0, "a", "add_reminder", remind), call(0, arguments=' {"content": "Buy milk."}'))
    server.will(stream_of(data(*pieces, delta("tool_calls"), USAGE, DONE)), ANSWER)
    say(dialog, "Remind me.")
    assert [reminder.text for reminder in dialog.reminders.all()] == ["Buy milk."]


def test_an_error_in_a_field_of_its_own_is_an_overflow(server: ModelServer, dialog: Dialog) -> None:
    refusal = b'error: {"code":400,"message":"the request exceeds the available context size","type":"x"}\n\n'
    say(dialog, "Hello")
    server.will(stream_of(refusal + data(DONE)), ANSWER)
    say(dialog, "And now?")
    assert ContextEvent.objects.get(dialog=dialog).code == "TOKEN_LIMIT_EXCEEDED"
