"""Autocompaction behind LM Studio's API: the window is never overrun,
whatever the tools and the pruning agent answer."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dialogs.actions import rewrite_requests
from dialogs.context.request import GO_ON
from dialogs.extras.v1.ending import ended_by
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.runs import Run
from dialogs.models import Artifact, Dialog, SiteSettings, Turn
from dialogs.runtime import auxiliary_calls
from health.models import HealthSnapshot
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from remediation.strategies.cut_answer import HEAD_ARCHIVED
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import AgentFactory
from tests.doubles.brains import Brain, Call, Prompt, Reply, Scripted
from tests.doubles.local_servers import LMStudioDouble, LocalDouble
from tests.flows import pruner
from tests.flows.conftest import Minds, Serve, dialog_with, go_on, overflows, say
from tests.flows.texts import prose
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 8_000  # of which tools, instructions and the room for an answer take about 2,000
COMPACTING, COMPACTED = "Compacting conversation history...", "Context compacted, continuing..."


@pytest.fixture
def lmstudio(serve: Serve) -> LocalDouble:
    server = serve(window=LIMIT, api_type="lmstudio")
    server.brain = lambda prompt: pruner.prune(prompt) if pruner.is_asked(prompt.body) else Reply("Understood.")
    return server


def talked(server: LocalDouble, messages: int, tokens: int = 500, **agent: Any) -> Dialog:
    dialog = dialog_with(server, **agent)
    for number in range(messages):
        say(dialog, prose(number, tokens))
    return dialog


def runs(dialog: Dialog) -> list[RemediationRun]:
    return list(RemediationRun.objects.filter(dialog=dialog).order_by("id"))


def replies(server: LocalDouble) -> list[Any]:
    return [body for body in server.bodies if not pruner.is_asked(body)]


def assert_sound(server: LocalDouble, dialog: Dialog) -> None:
    assert overflows(server) == 0
    assert dialog.state == "idle"
    assert set(dialog.turns.filter(role="user").values_list("status", flat=True)) == {"answered"}


# Phase 1: before the request


def test_above_80_percent_it_is_compacted_before_it_is_sent(lmstudio: LocalDouble, caplog: Any) -> None:
    dialog = talked(lmstudio, 10)
    assert_sound(lmstudio, dialog)
    assert "rewriting" in caplog.text and "rewritten" in caplog.text
    run, *_ = runs(dialog)
    assert run.reason.startswith("over the est. ") and run.limit == LIMIT
    assert run.est_before + 1_024 > LIMIT * 0.8  # with the room for the answer
    assert run.est_after <= LIMIT * 6 // 10 and "Removed" in run.summary
    notices = list(dialog.turns.filter(role=Turn.Role.NOTICE).order_by("seq").values_list("text", flat=True))
    assert notices[:2] == [COMPACTING, COMPACTED]
    # The task, the newest message and the last exchanges are seen as they were; nothing is lost for people.
    sent = [message["content"] for message in replies(lmstudio)[-1]["messages"]]
    assert prose(0) in sent and prose(9) in sent
    assert dialog.turns.filter(role="user").count() == 10
    assert RemovedUnit.objects.filter(dialog=dialog).exists()
    # The level is gray until the next report.
    events = event_data(dialog, "health")
    awaiting = [index for index, data in enumerate(events) if data["reason"] == "awaiting_report"]
    assert awaiting and events[awaiting[0] + 1]["level"] == "healthy"


def test_trigger_at_80_and_aim_at_half_keep_compactions_rare(lmstudio: LocalDouble) -> None:
    dialog = talked(lmstudio, 18, recall=False)  # which would have a share of so small a window
    made = runs(dialog)
    assert 2 <= len(made) <= 4
    assert all(run.est_after <= LIMIT * 6 // 10 for run in made)


# Phase 2: tool results


def writes(name: str, text: str, settings: Any) -> None:
    (Path(settings.WORKSPACE_DIR) / name).write_text(text)


def reader(name: str) -> Brain:
    """A model that reads a file once for each message, and then answers."""

    def answer(prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        if prompt.last.role == "tool":
            return Reply("I have read it.")
        return Reply(calls=(Call("read_file", {"path": name}),))

    return answer


def test_an_overflowing_result_is_kept_whole_and_marks_a_restart(
    lmstudio: LocalDouble, settings: Any, caplog: Any
) -> None:
    dialog = talked(lmstudio, 4, tools=["read_file"])
    result = prose(99, 3_900)
    writes("big.txt", result, settings)
    lmstudio.brain = reader("big.txt")
    say(dialog, "read big.txt")
    assert_sound(lmstudio, dialog)
    assert "restart_marked" in caplog.text
    assert len(runs(dialog)) == 1
    last = replies(lmstudio)[-1]["messages"]
    assert last[-1] == {"role": "tool", "tool_call_id": last[-1]["tool_call_id"], "content": result}
    assert last[-2]["tool_calls"][0]["id"] == last[-1]["tool_call_id"]
    assert dialog.turns.get(role="tool").text == result


@pytest.mark.parametrize("tokens", [12_000, 6_200], ids=["longer than the window", "too long beside what must stay"])
def test_a_result_that_cannot_fit_is_an_error_with_sizes(lmstudio: LocalDouble, settings: Any, tokens: int) -> None:
    dialog = talked(lmstudio, 2, tools=["read_file"])
    result = prose(99, tokens)
    writes("huge.txt", result, settings)
    lmstudio.brain = reader("huge.txt")
    say(dialog, "read huge.txt")
    assert_sound(lmstudio, dialog)
    turn = dialog.turns.get(role="tool")
    assert turn.status == "error"
    assert f"{LIMIT:,}" in turn.text and "larger context" in turn.text and "read_artifact" in turn.text
    artifact = Artifact.objects.get(dialog=dialog)
    assert artifact.text == result
    lmstudio.brain = Scripted(
        Reply(calls=(Call("read_artifact", {"id": artifact.pk, "offset": 100, "limit": 400}),)), Reply("There it is.")
    )
    say(dialog, "read a part")
    assert dialog.turns.filter(role="tool").latest("seq").text.startswith(result[100:500])
    assert not runs(dialog)


def test_parallel_results_never_overrun_the_window(lmstudio: LocalDouble, settings: Any) -> None:
    for number in range(3):
        writes(f"{number}.txt", prose(number, 2_400), settings)
    both = Reply(calls=tuple(Call("read_file", {"path": f"{number}.txt"}) for number in range(3)))
    lmstudio.brain = Scripted(both, Reply("Read."))
    dialog = dialog_with(lmstudio, tools=["read_file"])
    say(dialog, "read all three")
    assert_sound(lmstudio, dialog)
    assert list(dialog.turns.filter(role="tool").order_by("position").values_list("status", flat=True)) == [
        "ok",
        "ok",
        "error",
    ]


# Phase 3: while streaming


def slow_from_85_percent(prompt: Prompt) -> Callable[[str], None]:
    """The pace of an answer, to be called with each piece: whoever leaves at 90 % is gone before the window is full."""
    left = (LIMIT * 0.85 - prompt.prompt_tokens) * 4  # characters, of which these texts have more to a token

    def wait(piece: str) -> None:
        nonlocal left
        left -= len(piece)
        if left < 0:
            time.sleep(0.02)

    return wait


def test_at_90_percent_the_answer_goes_on_after_a_notice(lmstudio: LocalDouble, caplog: Any) -> None:
    dialog = talked(lmstudio, 4)
    book = prose(500, 6_000)

    def answer(prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        return Reply("The end.") if prompt.last.text == GO_ON else Reply(book, after_piece=slow_from_85_percent(prompt))

    lmstudio.brain = answer
    say(dialog, "write a book")
    assert_sound(lmstudio, dialog)
    assert "stream_interrupted" in caplog.text
    assert eventually(lambda: sum(request.is_cut_off for request in lmstudio.requests) == 1), (
        "it notices with the next piece"
    )
    rows = list(dialog.turns.filter(position__gt=dialog.turns.get(text="write a book").position).order_by("position"))
    assert [(row.role, row.status) for row in rows] == [
        ("assistant", "interrupted"),
        ("notice", "complete"),
        ("notice", "complete"),
        ("assistant", "complete"),
    ]
    assert book.startswith(rows[0].text) and len(rows[0].text) > 1_000
    assert [row.text for row in rows[1:]] == [COMPACTING, COMPACTED, "The end."]
    assert runs(dialog)[-1].reason == "the answer filled 90 % of the limit"
    sent = replies(lmstudio)[-1]["messages"]
    end = sent[-2]["content"].removeprefix(HEAD_ARCHIVED)
    assert sent[-2]["role"] == "assistant" and rows[0].text.endswith(end) and len(end) > 1_000
    assert sent[-1]["content"] == GO_ON
    assert not dialog.turns.filter(text=GO_ON).exists()


def test_a_tool_call_that_is_cut_half_written_is_never_run(lmstudio: LocalDouble, settings: Any) -> None:
    dialog = talked(lmstudio, 4, tools=["read_file"])
    long_call = Reply("I look.", calls=(Call("read_file", {"path": prose(500, 6_000)}),))

    def answer(prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        return (
            Reply("Never mind.")
            if prompt.last.text == GO_ON
            else replace(long_call, after_piece=slow_from_85_percent(prompt))
        )

    lmstudio.brain = answer
    say(dialog, "read it")
    assert_sound(lmstudio, dialog)
    assert not dialog.turns.filter(role="tool").exists()
    assert list(dialog.turns.filter(role="assistant").order_by("position").values_list("status", "text"))[-2:] == [
        ("interrupted", "I look."),
        ("complete", "Never mind."),
    ]
    assert not dialog.turns.filter(status="interrupted", tool_calls__isnull=False).exists()


def test_at_100_percent_the_answer_is_aborted_with_an_error(lmstudio: LocalDouble) -> None:
    dialog = talked(lmstudio, 4)
    lmstudio.brain = lambda _: Reply(prose(500, 9_000), chunk_chars=100_000)
    say(dialog, "write it all at once")
    assert (dialog.state, dialog.turns.get(text="write it all at once").status) == ("failed", "failed")
    assert "filled the context" in dialog.failure and f"{LIMIT:,}" in dialog.failure
    assert dialog.turns.filter(role="assistant").latest("seq").status == "failed"
    assert ContextEvent.objects.filter(dialog=dialog, code="TOKEN_LIMIT_EXCEEDED").exists()
    lmstudio.brain = lambda prompt: pruner.prune(prompt) if pruner.is_asked(prompt.body) else Reply("Short.")
    say(dialog, "then briefly")
    assert dialog.turns.filter(role="assistant").latest("seq").text == "Short."

    # The estimate stayed below 90 %, and the server's own count ended the answer where its window ends.
    full = Reply("Half a sen", usage=(LIMIT - 10, 10), finish="length")
    lmstudio.brain = lambda prompt: (
        pruner.prune(prompt) if pruner.is_asked(prompt.body) else Reply("tence.") if prompt.last.text == GO_ON else full
    )
    say(dialog, "and on")
    said = list(dialog.turns.order_by("-seq").values_list("status", "text")[:4])[::-1]
    assert said == [("interrupted", "Half a sen"), *[("complete", text) for text in (COMPACTING, COMPACTED, "tence.")]]


def test_an_endless_answer_ends_after_three_compactions(lmstudio: LocalDouble) -> None:
    dialog = talked(lmstudio, 4)
    lmstudio.brain = lambda prompt: (
        pruner.prune(prompt)
        if pruner.is_asked(prompt.body)
        else Reply(prose(500, 9_000), after_piece=slow_from_85_percent(prompt))
    )
    say(dialog, "write for ever")
    assert dialog.restarts == 3
    assert (dialog.state, dialog.failure.startswith("After 3 compactions the answer has no end")) == ("failed", True)
    assert dialog.turns.filter(status="interrupted").count() == 4
    asked = dialog.turns.get(text="write for ever")
    assert asked.status == "failed"
    assert overflows(lmstudio) == 0
    with pytest.raises(ApiError) as told:  # another status would have its client send it again
        ended_by(Run(dialog.pk, str(dialog.agent_id), dialog.owner_id, asked.seq, False, 0, 0), asked.status)
    assert (told.value.status, told.value.code) == (400, "context_length_exceeded")
    over = ContextEvent.objects.filter(dialog=dialog, code="CONTEXT_OVER_HIT")
    assert [event.message for event in over if (event.est_tokens or 0) <= LIMIT] == []


# The pruning agent


@pytest.mark.parametrize("form", [*pruner.NONSENSE, "growth"])
def test_when_the_pruning_agent_fails_the_fallback_goes_on(lmstudio: LocalDouble, form: str) -> None:
    def answer(prompt: Prompt) -> Reply:
        if not pruner.is_asked(prompt.body):
            return Reply("Understood.")
        return pruner.grow(prompt) if form == "growth" else pruner.NONSENSE[form]

    lmstudio.brain = answer
    dialog = talked(lmstudio, 6, tokens=1_000)
    assert_sound(lmstudio, dialog)
    run, *_ = runs(dialog)
    assert (run.steps[-1]["strategy"], run.est_after <= LIMIT // 2) == ("fallback", True)
    assert ContextEvent.objects.filter(dialog=dialog, code="PRUNER_FAILED").exists()
    assert run.steps[-1]["note"]  # why


def test_a_pruning_agent_that_hangs_is_left_behind(lmstudio: LocalDouble, monkeypatch: Any) -> None:
    monkeypatch.setattr(auxiliary_calls, "SECONDS", 0.4)
    lmstudio.brain = lambda prompt: (
        Reply("late", pause_seconds=2) if pruner.is_asked(prompt.body) else Reply("Understood.")
    )
    dialog = talked(lmstudio, 6, tokens=1_000)
    assert_sound(lmstudio, dialog)
    assert dialog.generations.filter(purpose="prune", outcome="failed", error_kind="timeout").exists()
    assert runs(dialog)[0].steps[-1]["strategy"] == "fallback"


def test_the_chosen_pruning_agents_window_is_not_overrun(lmstudio: LocalDouble, minds: Minds) -> None:
    with LMStudioDouble(pruner.prune, model="mistral-7b-instruct", window=4_000, by_template=True) as other:
        entry = {"apiType": "lmstudio", "baseUrl": f"{other.url}/v1", "models": {other.model: {}}}
        minds.providers["other"] = entry
        minds.write()
        agent = AgentFactory.create(provider="other", model=other.model)
        SiteSettings.objects.create(pruning_agent=agent)
        dialog = talked(lmstudio, 10)
    assert_sound(lmstudio, dialog)
    assert len(other.bodies) > 1  # in parts, each with room for the answer
    assert all(pruner.is_asked(body) for body in other.bodies) and (overflows(other), other.refusals) == (0, [])
    assert len(replies(lmstudio)) == len(lmstudio.bodies)
    assert "Removed" in runs(dialog)[0].summary
    levels = HealthSnapshot.objects.filter(generation__dialog=dialog, generation__purpose="prune")
    assert not levels.exists()  # a side call is no measure of the dialog's health


def test_no_model_is_asked_for_a_rewrite_that_cannot_pay(lmstudio: LocalDouble) -> None:
    """The message alone takes most of the window, so that nothing can be removed."""
    lmstudio.brain = Scripted(Reply(calls=(Call("list_files", {}),)), Reply("None."))
    dialog = dialog_with(lmstudio, tools=["list_files"])
    say(dialog, prose(1, 4_700))
    assert_sound(lmstudio, dialog)
    assert not RemediationRun.attempts.filter(dialog=dialog).exists()
    assert len(replies(lmstudio)) == len(lmstudio.bodies) == 2


def test_an_overflow_is_the_policys_and_forces_no_clear(serve: Serve) -> None:
    server = serve(window=LIMIT, api_type="lmstudio")
    refused: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt, keep=1)
        if len(prompt.messages) > 6 and not refused:
            refused.append(prompt)
            return Reply(error=(400, {"error": {"code": "context_length_exceeded", "message": "too long"}}))
        return Reply("Understood.")

    server.brain = answer
    dialog = dialog_with(server)
    for number in range(5):
        say(dialog, prose(number, 500))
    assert_sound(server, dialog)
    assert refused and [run.reason for run in runs(dialog)] == ["the provider refused the request as too long"]
    assert not dialog.generations.filter(purpose="forced_clear").exists()


# Others, and the way back


def test_another_provider_is_not_touched_at_the_same_size(serve: Serve) -> None:
    bodies = []
    for fields in list[dict[str, Any]]([{}, {"context_policy": "none"}]):
        server = serve(context_length=LIMIT // 2, critical_max_tokens=90_000)
        server.brain = lambda _: Reply("Understood.")
        dialog = talked(server, 8, **fields)
        assert not runs(dialog) and not dialog.generations.filter(est_tokens__isnull=False).exists()
        bodies.append([json.dumps(body) for body in server.bodies])
        assert not any("/api/" in request.path for request in server.requests)
    assert bodies[0] == bodies[1] and len(bodies[0]) == 8
    for shorter, longer in zip(bodies[0], bodies[0][1:], strict=False):
        before, after = json.loads(shorter)["messages"], json.loads(longer)["messages"]
        assert json.dumps(after[: len(before)]) == json.dumps(before)  # a stable prefix, and all of it


def test_undoing_two_nested_compactions_restores_byte_equal_requests(lmstudio: LocalDouble, settings: Any) -> None:
    writes("a.txt", prose(7, 200), settings)
    lmstudio.brain = reader("a.txt")
    dialog = dialog_with(lmstudio, tools=["read_file"])
    for number in range(4):
        say(dialog, prose(number, 150))
    before = replies(lmstudio)[-1]
    for keep in (8, 1):
        lmstudio.brain = partial(pruner.prune, keep=keep)
        rewrite_requests.request(dialog.pk, "compact", dialog.owner)
        go_on(dialog)
    made = runs(dialog)
    assert len(made) == 2 and made[1].est_after < made[0].est_after < made[0].est_before
    for run in reversed(made):
        rewrite_requests.undo(run.pk, dialog.owner)
    lmstudio.brain = lambda _: Reply("So it is.")
    say(dialog, "as before?")
    after = replies(lmstudio)[-1]
    count = len(before["messages"])
    assert json.dumps(after["messages"][:count]) == json.dumps(before["messages"])
    assert json.dumps({**after, "messages": None}) == json.dumps({**before, "messages": None})
    assert [message["content"] for message in after["messages"][count:]] == ["I have read it.", "as before?"]


@pytest.mark.parametrize(("policy", "tokens"), [("autocompaction", 1_200), ("retention", 1_450)])
def test_where_no_rewrite_can_help_a_person_reads_once_why(serve: Serve, policy: str, tokens: int) -> None:
    server = serve(window=2_048, api_type="lmstudio")
    server.brain = lambda prompt: Reply("Green." if prompt.tools else "They spoke of colours.")
    instructions = prose(1, tokens)
    dialog = dialog_with(server, context_policy=policy, instructions=instructions)
    for number in range(3):
        say(dialog, f"Name colour {number}.")
    assert_sound(server, dialog)
    assert not dialog.generations.exclude(purpose="reply").exists() and not runs(dialog)
    told = dialog.turns.filter(role=Turn.Role.NOTICE).values_list("text", flat=True)
    assert len(told) == 1
    assert "Instructions, tools and reminders take est. 1," in told[0] and "offer fewer tools" in told[0]
