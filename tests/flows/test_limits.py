"""LM Studio's limits: what the model is loaded with, or the agent cannot be used, and why."""

import re
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import forks, messages, reminders
from dialogs.errors import Conflict, TooLarge
from dialogs.models import Dialog, Reminder
from dialogs.runtime.driver import drive
from dominds.llm.providers import server_window
from remediation.models import ContextEvent
from tests.doubles.brains import LAST_RESORT, PACKAGE, Call, Prompt, Reply
from tests.doubles.local_servers import LMStudioDouble
from tests.flows.conftest import Minds, Serve, dialog_with, overflows, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

BOOKS = "The shelf holds books on bees and boats. "


def later() -> None:
    """The two seconds pass for which a listing is kept."""
    server_window.forget()


def refusal(dialog: Dialog) -> str:
    with pytest.raises(Conflict) as refused:
        messages.post_message(dialog.pk, "hello?")
    assert refused.value.code == "agent_unusable"
    return refused.value.message


def test_listed_but_not_loaded_is_unusable_until_it_is(serve: Serve) -> None:
    server = serve(window=8_000, api_type="lmstudio")
    assert isinstance(server, LMStudioDouble)
    server.is_loaded = False
    dialog = dialog_with(server)
    assert "has not loaded it. Load the model there" in refusal(dialog)
    program = Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})
    entry = next(row for row in program.get("/api/agents").json() if row["id"] == dialog.agent_id)
    assert (entry["usable"], entry["model_context_limit"]) == (False, None) and "Load the model" in entry["reason"]
    assert not dialog.turns.exists() and not server.bodies
    server.is_loaded = True
    later()
    say(dialog, "hello!")
    assert dialog.turns.get(text="hello!").status == "answered"
    assert dialog.generations.get().snapshot.limit_source == "loaded_context_length"


def test_the_limit_is_looked_up_again_at_each_message(serve: Serve) -> None:
    server = serve(window=8_000, api_type="lmstudio")
    dialog = dialog_with(server)
    for limit in (8_000, 4_096):
        server.load(limit)
        later()
        say(dialog, "hello")
        assert dialog.generations.latest("id").snapshot.model_context_limit == limit


def test_without_a_reported_length_there_is_no_table_and_no_default(serve: Serve) -> None:
    server = serve(api_type="lmstudio", traits={"tells_window": False}, context_length=32_000)
    assert "reports no context length" in refusal(dialog_with(server))


def test_a_length_in_llm_yaml_is_ignored_with_a_warning(serve: Serve) -> None:
    server = serve(window=8_000, api_type="lmstudio", context_length=32_000)
    dialog = dialog_with(server)
    say(dialog, "hello")
    assert dialog.generations.get().snapshot.model_context_limit == 8_000
    warned = [message for message in run_checks() if message.id == "health.W003"]
    assert len(warned) == 1 and "double/llama-3.1-8b-instruct" in warned[0].msg and "ignored" in warned[0].msg


def test_a_model_unloaded_meanwhile_is_not_asked_blindly(serve: Serve) -> None:
    server = serve(window=8_000, api_type="lmstudio")
    assert isinstance(server, LMStudioDouble)
    dialog = dialog_with(server)

    def answer(_: Any) -> Reply:
        messages.post_message(dialog.pk, "second")
        connection.close()
        server.is_loaded = False
        later()
        return Reply("ok")

    server.brain = answer
    say(dialog, "first")
    assert dialog.turns.get(text="first").status == "answered"
    assert (dialog.turns.get(text="second").status, dialog.state) == ("failed", "failed")
    assert "has not loaded it" in dialog.failure and len(server.bodies) == 1


def test_any_other_model_without_a_limit_chats_on_in_gray(serve: Serve) -> None:
    server = serve()
    dialog = dialog_with(server)
    say(dialog, "hello")
    snapshot = dialog.generations.get().snapshot
    assert (dialog.state, snapshot.level, snapshot.reason) == ("idle", "unknown", "limit_unknown")
    assert snapshot.prompt_tokens is not None


def test_a_change_of_limits_judges_the_last_report_anew(serve: Serve, minds: Minds) -> None:
    from dialogs.context.limits import health_of

    server = serve(context_length=128_000)
    server.brain = lambda _: Reply("ok", usage=(110_000, 5))
    dialog = dialog_with(server)
    say(dialog, "hello")
    assert health_of(dialog)["level"] == "caution"
    minds.set(server.model, context_length=120_000)
    assert health_of(dialog)["level"] == "critical"
    minds.set(server.model, context_length=1_000_000, optimal_max_tokens=200_000)
    assert (health_of(dialog)["level"], health_of(dialog)["hard_util"]) == ("healthy", 0.11)


def test_a_message_that_its_model_cannot_hold_is_refused_unstored(minds: Minds, monkeypatch: Any) -> None:
    """An Ollama would cut its beginning without a word, and report what was left."""
    paste = BOOKS * 700
    with start("ollama/qwen3", lambda _: Reply("ok"), window=4_096) as server:
        dialog = dialog_at(server, minds, monkeypatch, "ollama/qwen3", instructions="Be brief. " * 100)
        with pytest.raises(TooLarge) as refused:
            messages.post_message(dialog.pk, paste)
        words = (
            r"too large for qwen3: it has est. (\S+) tokens, and there is room for (\S+)\. The model takes 4,096, "
            r"of which instructions and reminders take est\. (\d+), tools est\. (\d+), and an answer at least (\d+)\."
        )
        ((*sizes,),) = re.findall(words, refused.value.message)
        own, room, instructions, tools, answer = (int(size.replace(",", "")) for size in sizes)
        assert own > 5_000 and room + instructions + tools + answer == 4_096
        assert 200 < instructions < 400 and tools > 300
        with pytest.raises(TooLarge, match="too large for qwen3"):
            messages.start_dialog(dialog.owner, dialog.agent_id, "", paste, "first")
        assert not dialog.turns.exists() and Dialog.objects.count() == 1 and not server.bodies
        say(dialog, paste[: 4 * room])  # some four characters a token
        assert dialog.turns.get(role="user").status == "answered"
        prompt = server.requests[-1].prompt
        assert prompt and prompt.prompt_tokens < 4_096


def test_reminders_leave_a_small_window_its_room(serve: Serve) -> None:
    """A model that answered each guidance with one more reminder filled its window for good."""
    server = serve(context_length=4_096)
    dialog = dialog_with(server)
    with pytest.raises(Conflict, match=r"together at most 1,024 are accepted"):
        for number in range(9):
            reminders.add(dialog.pk, f"{number} " + "Goal. " * 100, 0)
    assert dialog.reminders.count() == 5
    say(dialog, "hello")
    assert dialog.state == "idle"
    for number in range(9):  # of an earlier version, or of a larger model
        Reminder.objects.create(dialog=dialog, position=9 + number, text="Goal. " * 300)
    with pytest.raises(TooLarge, match="Delete reminders, shorten the instructions, or choose a model with a larger"):
        messages.post_message(dialog.pk, "Describe the boat and its harbour. " * 260)


@pytest.mark.parametrize("window", [2_048, 4_096])
@pytest.mark.parametrize("policy", ["none", "summarize"])
def test_a_message_is_answered_or_refused_unstored_up_to_the_windows_end(
    serve: Serve, window: int, policy: str
) -> None:
    """The tools of a request take a quarter of such a window. Where no policy counts, or nothing had told their size,
    they were left out of the sum: the server refused the request, and the dialog was suspended."""
    server = serve(window=window, context_length=window)
    server.brain = lambda _: Reply("ok")
    refused = []
    for before in ([], ["Hello"]):
        for percent in range(55, 106, 10):
            dialog = dialog_with(server, context_policy=policy)
            for text in before:
                say(dialog, text)
            try:
                say(dialog, BOOKS * (window * percent // 1_000))
            except TooLarge:
                refused.append(percent)
            else:
                assert dialog.turns.filter(role="user").latest("seq").status == "answered", percent
    assert 105 in refused and 55 not in refused


def clearing(prompt: Prompt) -> Reply:
    """Answer, or clear the mind where nothing else is taken."""
    if LAST_RESORT in prompt.last.text:
        return Reply(calls=(Call("clear_mind", {"reminder_content": PACKAGE}),))
    return Reply("ok")


@pytest.mark.parametrize("window", [2_048, 4_096])
@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        *[(policy, {}) for policy in ("none", "summarize", "retention", "breaking")],
        ("autocompaction", {"api_type": "lmstudio"}),
        ("autocompaction", {"api_type": "lmstudio", "traits": {"overflow": "exceeded"}}),
    ],
)
def test_a_denser_vocabulary_never_suspends_a_dialog(
    serve: Serve, window: int, policy: str, fields: dict[str, Any]
) -> None:
    """The server counts 1.3 times what is estimated. A message that it refused suspended the dialog; now it is answered
    after a rewrite, or fails as one that was too large from the start, and the dialog goes on."""
    traits = {"weight": 1.3, **fields.get("traits", {})}
    server = serve(**{**fields, "window": window, "context_length": window, "refuses": "too long", "traits": traits})
    server.brain = clearing
    failed = 0
    for before in ([], ["Hello", BOOKS * (window // 50)]):
        for percent in range(45, 96, 10):
            dialog = dialog_with(server, context_policy=policy)
            for text in before:
                say(dialog, text)
            asked = overflows(server)
            try:
                say(dialog, BOOKS * (window * percent // 1_000))
            except TooLarge:
                continue
            status = dialog.turns.filter(role="user").latest("seq").status
            assert status in ("answered", "failed") and overflows(server) <= asked + 1, percent
            if status == "failed":
                failed += 1
                assert "too large for" in dialog.failure
                assert ContextEvent.objects.filter(dialog=dialog, message=dialog.failure).exists(), "as /v1 looks it up"
                say(dialog, "And now?")
                assert dialog.turns.get(text="And now?").status == "answered", percent
    assert failed


@pytest.mark.parametrize("policy", ["none", "summarize", "retention", "breaking"])
def test_a_refusal_tells_the_window_that_nobody_knew(serve: Serve, policy: str) -> None:
    """Without a policy the dialog was suspended, and ``retention`` met a refusal with each further message."""
    server = serve(window=4_096, refuses="too long")
    server.brain = clearing
    dialog = dialog_with(server, context_policy=policy)
    for number in range(16):
        say(dialog, f"{number}. {BOOKS * 50}")
    assert set(dialog.turns.filter(role="user").values_list("status", flat=True)) == {"answered"}
    assert overflows(server) <= 1 or policy == "none"


def test_a_person_reads_that_the_message_itself_is_too_long_and_edits_it(serve: Serve) -> None:
    """The server's window is smaller than the metadata say, as with a tokenizer that takes more tokens than ours."""
    server = serve(window=3_000, context_length=4_096, refuses="too long")
    server.brain = lambda _: Reply("ok")
    dialog = dialog_with(server)
    say(dialog, "Hello")
    say(dialog, BOOKS * 290)
    question = dialog.questions.get(state="open")
    assert question.text.endswith(
        "It is most of the request: edit it to shorten it, or choose a model with a larger context."
    )
    made = forks.edit(forks.Branch(dialog.pk, 3, dialog.owner), "Which books are there?")
    drive(made.pk)
    assert list(made.turns.filter(role="user").order_by("seq").values_list("status", flat=True)) == ["answered"] * 2
