"""A model server that misbehaves, over real HTTP: each class of fault has one rule, and the person sees which."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from dialogs.actions import messages
from dialogs.context.limits import model_of
from dialogs.models import Dialog, Turn
from dialogs.runtime.driver import drive
from dominds.llm.circuit_breaker import FAILURES, circuits
from dominds.llm.provider import Overloaded
from dominds.llm.retry import MAX_TRIES
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import make_dialog
from tests.faults.arena import KEY, ProviderProcess
from tests.faults.effort import everything
from tests.faults.invariants import Evidence, breaches
from tests.faults.proxy import Proxy, Toxics

pytestmark = pytest.mark.django_db(transaction=True)

MARK = "dlg-00000001"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    process = ProviderProcess(tmp_path_factory.mktemp("provider"))
    yield process
    process.process.kill()


@pytest.fixture
def proxy(provider: ProviderProcess) -> Proxy:
    return Proxy(provider.port, "provider")


@pytest.fixture
def dialog(proxy: Proxy, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Dialog:
    monkeypatch.setenv("STUB_KEY", KEY)
    settings.MINDS_DIR, settings.DATA_DIR = tmp_path / "minds", tmp_path / "var"
    settings.MINDS_DIR.mkdir()
    model = {"name": "Stub", "context_length": 128_000, "supports_tool_choice": True}
    address = f"http://127.0.0.1:{proxy.port}/v1"
    stub = {"name": "Stub", "apiType": "openai-compatible", "baseUrl": address, "apiKeyEnvVar": "STUB_KEY"}
    (settings.MINDS_DIR / "llm.yaml").write_text(json.dumps({"providers": {"stub": {**stub, "models": {"m": model}}}}))
    return make_dialog(provider="stub", model="m")


def say(dialog: Dialog, **play: Any) -> Dialog:
    count = dialog.turns.filter(role="user").count()
    messages.post_message(dialog.pk, f"{MARK} message {count} play({json.dumps(play)})")
    drive(dialog.pk)
    result: Dialog = Dialog.objects.get(pk=dialog.pk)
    return result


def answers(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.filter(role="assistant").order_by("position").values_list("status", "text"))


def outcomes(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.generations.order_by("id").values_list("outcome", "error_kind"))


def check(dialog: Dialog, provider: ProviderProcess) -> None:
    assert breaches([Dialog.objects.get(pk=dialog.pk)], Evidence({}, provider.asked(), (KEY,))) == []


# -- faults that pass --------------------------------------------------------------------------------------------------

PASSING: dict[str, tuple[dict[str, Any], str]] = {
    "429 with advice": ({"then": "status", "status": 429, "retry_after": "0.1"}, "rate_limit"),
    "529": ({"then": "status", "status": 529, "retry_after": "0.1"}, "overloaded"),
    "500": ({"then": "status", "status": 500, "retry_after": "0.1"}, "overloaded"),
    "502 in HTML": ({"then": "status", "status": 502, "body": "<html>Bad gateway</html>"}, "overloaded"),
    "reset in the middle": ({"then": "rst"}, "network"),
    "closed in the middle": ({"then": "fin"}, "network"),
    "no explicit end": ({"then": "no_end"}, "malformed_stream"),
    "error inside a 200": ({"then": "error_event"}, "overloaded"),
    "cut tool arguments": ({"then": "cut_call"}, "network"),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_leaves_nothing_but_its_record(
    name: str, dialog: Dialog, provider: ProviderProcess
) -> None:
    play, kind = PASSING[name]
    result = say(dialog, **play, fails=1)
    first, second = outcomes(dialog)
    assert second == ("kept", "")
    assert first[0] == "failed"
    assert first[1] in {kind, "malformed_stream", "network"}
    ((status, text),) = answers(dialog)
    assert (result.state, status, text.endswith("end")) == ("idle", "complete", True)
    assert dialog.reminders.count() == 0
    check(dialog, provider)


# -- faults that stay --------------------------------------------------------------------------------------------------

STAYING = {
    "wrong key": ({"then": "status", "status": 401}, "auth", "failed"),
    "no such model": ({"then": "status", "status": 404}, "refused_for_good", "suspended"),
    "bad request": ({"then": "status", "status": 400}, "refused", "failed"),
}


@pytest.mark.parametrize("name", STAYING)
def test_a_fault_that_stays_is_tried_once_and_told(name: str, dialog: Dialog, provider: ProviderProcess) -> None:
    play, kind, state = STAYING[name]
    result = say(dialog, **play)
    assert outcomes(dialog) == [("failed", kind)]
    assert result.state == state
    message = result.questions.get().text if state == "suspended" else result.failure
    assert message
    assert KEY not in message
    check(dialog, provider)


@everything
def test_a_fault_that_never_passes_ends_after_its_budget(dialog: Dialog, provider: ProviderProcess) -> None:
    result = say(dialog, then="status", status=429, retry_after="0.1")
    assert outcomes(dialog) == [("failed", "rate_limit")] * 5
    assert result.state == "failed"
    assert result.failure.endswith(". Given up after 5 tries.")
    check(dialog, provider)


# -- the wire ----------------------------------------------------------------------------------------------------------


# -- a model that fails for everybody ----------------------------------------------------------------------------------


def let_rest(dialog: Dialog, **advice: float) -> None:
    """Five calls of other dialogs have failed."""
    for _ in range(FAILURES):
        circuits.note(model_of(dialog), Overloaded("The provider is down.", **advice))


def test_a_resting_model_is_asked_when_the_rest_is_over(dialog: Dialog, provider: ProviderProcess) -> None:
    asked = len(provider.asked())
    let_rest(dialog)
    result = say(dialog)
    assert (result.state, outcomes(result), len(provider.asked())) == ("idle", [("kept", "")], asked + 1)
    (notice,) = event_data(dialog, "notice")
    assert notice["text"].startswith(
        "stub/m is not called for now: its last 5 calls failed. The provider is down. Trying again in "
    )
    assert circuits.open_circuit(model_of(dialog)) is None
    assert breaches([result]) == []


def test_a_long_rest_holds_no_worker_and_ends_within_the_tries(dialog: Dialog, provider: ProviderProcess) -> None:
    asked = len(provider.asked())
    let_rest(dialog, retry_after_seconds=50)
    result = say(dialog)
    assert (result.state, result.lease_owner, outcomes(result)) == ("queued", "", [])
    assert result.wake_at is not None
    assert result.wake_at > timezone.now() + timedelta(seconds=40)
    for _ in range(MAX_TRIES):
        Dialog.objects.filter(pk=dialog.pk).update(wake_at=None)
        drive(dialog.pk)
    result.refresh_from_db()
    assert (result.state, len(provider.asked())) == ("failed", asked)
    assert result.failure == "stub/m is not called for now: its last 5 calls failed. The provider is down."
    assert breaches([result]) == []


def test_failures_of_many_dialogs_let_their_model_rest(dialog: Dialog, provider: ProviderProcess) -> None:
    circuits.note(model_of(dialog), None)
    say(dialog, then="status", status=429, retry_after="0.1")
    rest = circuits.open_circuit(model_of(dialog))
    assert rest is not None
    assert rest.failures == FAILURES


def test_an_answer_in_single_bytes_is_the_same_answer(dialog: Dialog, proxy: Proxy, provider: ProviderProcess) -> None:
    proxy.toxics = Toxics(slice_bytes=1)
    say(dialog, words=4, chunk_bytes=1)
    ((status, text),) = answers(dialog)
    assert (status, text.split()[1:]) == ("complete", ["w1", "w2", "w3", "end"])
    check(dialog, provider)


def test_no_done_marker_after_a_finish_reason_is_an_end(dialog: Dialog, provider: ProviderProcess) -> None:
    say(dialog, then="no_done", words=2)
    assert outcomes(dialog) == [("kept", "")]
    check(dialog, provider)


@everything
@pytest.mark.parametrize("toxics", [Toxics(latency=0.05), Toxics(bytes_per_second=4_000)], ids=["latency", "slow line"])
def test_a_slow_line_is_only_slow(dialog: Dialog, proxy: Proxy, provider: ProviderProcess, toxics: Toxics) -> None:
    proxy.toxics = toxics
    say(dialog, words=10)
    assert outcomes(dialog) == [("kept", "")]
    check(dialog, provider)


# -- usage -------------------------------------------------------------------------------------------------------------

ODD_USAGE = [
    "absent",
    None,
    {},
    {"prompt_tokens": 0, "completion_tokens": 1},
    {"prompt_tokens": -5, "completion_tokens": 1},
    {"prompt_tokens": "12", "completion_tokens": 1},
    {"prompt_tokens": 1.5, "completion_tokens": 1},
    {"prompt_tokens": 10**12, "completion_tokens": 1},
    {"prompt_tokens": 5},
    "lots",
    {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 50}},
]


def test_usage_that_cannot_be_true_is_unknown_and_never_zero(dialog: Dialog, provider: ProviderProcess) -> None:
    for usage in ODD_USAGE:
        result = say(dialog, words=1, usage=usage)
        newest = dialog.generations.order_by("-id").first()
        assert newest is not None
        assert (newest.outcome, newest.prompt_tokens, newest.snapshot.level) == ("kept", None, "unknown"), usage
        assert (result.prompt_tokens, newest.snapshot.reason) == (None, "usage_unavailable")
    check(dialog, provider)


# -- overflow and forced clears ----------------------------------------------------------------------------------------


def test_an_overflow_takes_the_forced_clear_once_and_answers(dialog: Dialog, provider: ProviderProcess) -> None:
    result = say(dialog, then="overflow", fails=1)
    purposes = list(dialog.generations.order_by("id").values_list("purpose", "outcome", "error_kind"))
    assert purposes == [
        ("reply", "failed", "context_overflow"),
        ("forced_clear", "kept", ""),
        ("reply", "kept", ""),
    ]
    assert (result.state, result.round_number) == ("idle", 2)
    check(dialog, provider)


def test_a_lasting_overflow_ends_in_a_question_not_a_loop(dialog: Dialog, provider: ProviderProcess) -> None:
    result = say(dialog, then="overflow")
    assert result.state == "suspended"
    assert dialog.generations.count() <= 8
    assert dialog.questions.get().kind == "context_health_critical"
    check(dialog, provider)


@pytest.mark.parametrize("refusal", ["text", "two", "blank", "broken"])
def test_three_refusals_of_any_kind_end_in_one_question(
    refusal: str, dialog: Dialog, provider: ProviderProcess
) -> None:
    say(dialog, usage={"prompt_tokens": 120_000, "completion_tokens": 1})
    result = say(dialog, forced=refusal)
    assert result.state == "suspended"
    forced = dialog.generations.filter(purpose="forced_clear").order_by("id")
    assert list(forced.values_list("outcome", "attempt", "prompt_tokens")) == [
        ("discarded", number, 120_000) for number in (1, 2, 3)
    ]
    assert dialog.questions.count() == 1
    check(dialog, provider)


# -- tools -------------------------------------------------------------------------------------------------------------


def test_a_tool_call_with_what_no_database_stores(dialog: Dialog, provider: ProviderProcess) -> None:
    call = {"name": "add_reminder", "arguments": {"content": "a\x00b \ud83d half"}}
    result = say(dialog, calls=[call])
    assert result.state in ("idle", "failed")
    assert dialog.turns.filter(role=Turn.Role.TOOL).count() == 1
    check(dialog, provider)
