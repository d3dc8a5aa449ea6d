"""What a worker tells of its work: every log line of a run names its dialog and generation, and spans follow it."""

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.test import Client
from opentelemetry.trace import StatusCode

from dialogs.actions import questions, rewrite_requests
from dialogs.models import Dialog
from dominds import logs, telemetry
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.dialogs.spans import NAMES, OPERATIONS, Recorder, recorder

__all__ = ["recorder"]

pytestmark = pytest.mark.django_db(transaction=True)


class Lines:
    """What was logged as JSON since the test began."""

    def __init__(self) -> None:
        self.stream = StringIO()

    def of(self, event: str) -> dict[str, Any]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return next(line for line in lines if line["event"] == event)


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    handler = logging.StreamHandler(lines.stream)
    handler.setFormatter(logs.json_formatter())
    root, requests = logging.getLogger(), logging.getLogger("django_structlog.middlewares")
    levels = root.level, requests.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    requests.setLevel(logging.INFO)
    yield lines
    root.removeHandler(handler)
    root.setLevel(levels[0])
    requests.setLevel(levels[1])


def answered(dialog: Dialog) -> Dialog:
    send(dialog, "Hi")
    return dialog


def test_lines_of_a_run_name_dialog_epoch_and_generation(script: Script, lines: Lines) -> None:
    dialog = answered(make_dialog())
    assert lines.of("driving")["dialog_id"] == str(dialog.pk)
    line = lines.of("model_call_ended")
    assert line["dialog_id"] == str(dialog.pk)
    assert line["epoch"] == 1
    generation = dialog.generations.get()
    assert (line["generation_id"], line["prompt_tokens"]) == (generation.pk, generation.prompt_tokens)
    logging.getLogger("any.library").warning("said afterwards")
    assert "dialog_id" not in lines.of("said afterwards")


def test_requests_carry_an_id_that_their_lines_repeat(client: Client, lines: Lines) -> None:
    client.force_login(UserFactory.create())
    client.get("/q4h/")
    started, finished = lines.of("request_started"), lines.of("request_finished")
    assert started["request_id"] == finished["request_id"]
    assert len(finished["request_id"]) == 36
    assert finished["user_id"]


@pytest.mark.parametrize(
    ("proxy", "address"), [(None, "127.0.0.1"), (("HTTP_X_FORWARDED_PROTO", "https"), "203.0.113.9")]
)
def test_lines_of_a_request_name_the_address_that_the_proxy_saw(
    client: Client, lines: Lines, settings: Any, proxy: Any, address: str
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = proxy
    client.get("/login/", headers={"X-Forwarded-For": "10.0.0.1, 203.0.113.9", "X-Real-Ip": "10.0.0.2"})
    assert lines.of("request_started")["ip"] == lines.of("request_finished")["ip"] == address


# -- spans ------------------------------------------------------------------------------------------


def test_a_run_and_its_model_call_are_spans_with_genai_names(script: Script, recorder: Recorder) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    dialog = answered(make_dialog())
    run, call = recorder.spans
    assert (run.name, call.name) == (f"invoke_agent {dialog.agent_id}", "chat model")
    assert call.parent == run
    assert (run.attributes["gen_ai.agent.id"], run.attributes["gen_ai.agent.name"]) == (
        dialog.agent_id,
        dialog.agent.name,
    )
    assert run.attributes["gen_ai.conversation.id"] == call.attributes["gen_ai.conversation.id"] == str(dialog.pk)
    line = {name: call.attributes[f"gen_ai.{name}"] for name in ("operation.name", "provider.name", "request.model")}
    assert line == {"operation.name": "chat", "provider.name": "test", "request.model": "model"}
    assert call.attributes["gen_ai.usage.input_tokens"] == 12
    assert call.attributes["gen_ai.usage.output_tokens"] == 3
    assert call.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert call.attributes["dominds.generation.id"] == dialog.generations.get().pk
    assert run.ended
    assert call.ended
    assert call.status is None


def test_a_rewrite_is_a_span_that_later_calls_name(script: Script, recorder: Recorder) -> None:
    script({"text": "A part of the story. " * 150})
    dialog = send(make_dialog(context_policy="breaking"), "Begin.", "Go on.", "What then?", "And who was it?")
    assert "gen_ai.conversation.compacted" not in recorder.spans[-1].attributes, "never false"
    rewrite_requests.request(dialog.pk, "break", dialog.owner)
    send(dialog, "And on.")
    (rewrite,) = recorder.named("compact_context")
    assert rewrite.ended
    assert rewrite.attributes["gen_ai.conversation.compacted"] is True
    assert rewrite.attributes["dominds.rewrite.policy"] == "breaking"
    run = dialog.remediations.get()
    assert rewrite.attributes["dominds.rewrite.est_tokens.saved"] == run.est_before - run.est_after
    call = recorder.spans[-1]
    assert call.name == "chat model" and call.attributes["gen_ai.conversation.compacted"] is True


def test_tools_recall_and_questions_are_spans_with_genai_names(script: Script, recorder: Recorder) -> None:
    asks = {"name": "ask_human", "arguments": {"question": "Which?"}}
    script(
        {"match": "Use it", "tool_calls": [{"name": "read_file", "arguments": {}}]},
        {"match": "Ask it", "tool_calls": [asks]},
        {"text": "A part of the story. " * 150},
    )
    dialog = send(make_dialog(context_policy="breaking", recall=True), "Begin.", "Go on.", "What then?", "And who?")
    rewrite_requests.request(dialog.pk, "break", dialog.owner)
    send(dialog, "Use it", "Ask it")
    question = dialog.questions.get()
    questions.answer(question.pk, dialog.owner, "The red one")

    run = f"invoke_agent {dialog.agent_id}"
    (failed,), (asked,) = recorder.named("execute_tool read_file"), recorder.named("execute_tool ask_human")
    assert (failed.attributes["error.type"], failed.parent and failed.parent.name) == ("tool_failed", run)
    assert (asked.attributes["dominds.tool.outcome"], "error.type" in asked.attributes) == ("asked", False)
    assert asked.attributes["gen_ai.tool.call.id"] == question.tool_call_id
    recalled = recorder.named("retrieval turns")[0]
    assert recalled.attributes["dominds.recall.turns"] >= 0 and recalled.parent and recalled.parent.name == run
    (waited,) = recorder.named("wait_for_person")
    assert waited.attributes["dominds.question.kind"] == "question"
    assert waited.begins and waited.ends and waited.ends > waited.begins
    used = {name for span in recorder.spans for name in span.attributes if name.startswith("gen_ai.")}
    assert len(used) > 8 and used <= NAMES
    assert {span.attributes.get("gen_ai.operation.name", "chat") for span in recorder.spans} <= OPERATIONS


def test_what_people_and_models_write_is_in_no_span(script: Script, recorder: Recorder) -> None:
    script({"text": "a secret answer"}, {"error": {"kind": "auth", "message": "the secret key was refused"}})
    dialog = make_dialog(instructions="secret instructions")
    answered(dialog)
    send(dialog, "a secret question")
    failed = recorder.spans[-1]
    assert failed.attributes["error.type"] == "auth"
    assert failed.status is not None
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    assert "secret" not in json.dumps([span.attributes for span in recorder.spans])


def test_usage_that_was_not_reported_is_left_out(script: Script, recorder: Recorder) -> None:
    script({"text": "Hello.", "usage": "none"})
    answered(make_dialog())
    assert not [name for name in recorder.spans[-1].attributes if "usage" in name]


def test_an_exception_ends_its_span_by_its_type_alone(recorder: Recorder) -> None:
    with pytest.raises(ValueError, match="secret"), telemetry.span("work", {}):
        raise ValueError("a secret value")
    assert recorder.spans[0].attributes == {"error.type": "ValueError"}


# -- switched on, or not ----------------------------------------------------------------------------


def test_without_an_endpoint_nothing_is_sent_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch, lines: Lines) -> None:
    for name in telemetry.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert not telemetry.start("dominds-test")
    assert "is not set" in lines.of("telemetry_off")["reason"]
    with telemetry.span("anything", {}) as span:
        assert not span.is_recording()


def test_an_endpoint_without_the_packages_is_said_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    monkeypatch.setenv(telemetry.ENDPOINTS[0], "http://127.0.0.1:4318")
    monkeypatch.setattr(telemetry, "PACKAGES", ("opentelemetry.sdk_of_nobody.trace",))
    assert not telemetry.start("dominds-test")
    line = lines.of("telemetry_off")
    assert "opentelemetry.sdk_of_nobody.trace cannot be imported" in line["reason"]
    assert "pip install" in line["way_out"]
