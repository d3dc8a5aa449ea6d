"""The critical level behind a real server: forced attempts, what they leave, and where they end."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages, questions
from dialogs.context import config
from dialogs.context.package_draft import draft_package
from dialogs.errors import Conflict
from dialogs.extras.notices import deliveries
from dialogs.models import Delivery, Dialog, SiteSettings
from dialogs.runtime import sweeping
from dialogs.runtime.driver import drive
from health.models import HealthSnapshot
from remediation.guidance import CLEAR_ONLY
from remediation.models import ContextEvent
from tests.dialogs.event_lists import events_of
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Call, Prompt, Reply, Scripted
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import OVER, Minds, Serve, dialog_with, go_on, say
from tests.flows.traces import shown_holding, tables_holding

pytestmark = pytest.mark.django_db(transaction=True)

RED, GREEN = (120_000, 7), (500, 7)
REFUSED_TEXT = "zebra-4711"  # in every refused output
FULL = Reply("full", usage=RED)
PENDING = "  Word for\n\n word:\t ümlaut 🚀 \\n  "

REFUSALS = {
    "text only": Reply(f"I would rather say {REFUSED_TEXT}.", usage=RED),
    "blank package": Reply(REFUSED_TEXT, calls=(Call("clear_mind", {"reminder_content": " \n\t "}),), usage=RED),
    "wrong tool": Reply(calls=(Call("add_reminder", {"content": REFUSED_TEXT, "position": 0}),), usage=RED),
    "two clears": Reply(calls=(Call("clear_mind", {"reminder_content": REFUSED_TEXT}),) * 2, usage=RED),
    "malformed arguments": Reply(calls=(Call("clear_mind", f'{{"reminder_content": "{REFUSED_TEXT}'),), usage=RED),
    "arguments that are no object": Reply(calls=(Call("clear_mind", f'["{REFUSED_TEXT}"]'),), usage=RED),
    "a package that is no text": Reply(
        REFUSED_TEXT, calls=(Call("clear_mind", {"reminder_content": 4711}),), usage=RED
    ),
}
REASONS = {
    "text only": "text only, no clear_mind call",
    "wrong tool": "no clear_mind call, but add_reminder",
    "two clears": "2 clear_mind calls, exactly one is valid",
    **dict.fromkeys(
        ["blank package", "malformed arguments", "arguments that are no object", "a package that is no text"],
        "clear_mind with a blank, unfilled or unreadable reminder_content",
    ),
}


def accepted(package: str = "Goal: go on", **fields: Any) -> Reply:
    return Reply(calls=(Call("clear_mind", {"reminder_content": package}),), usage=RED, **fields)


def outcomes(dialog: Dialog) -> list[tuple[str, str, int]]:
    return list(dialog.generations.order_by("id").values_list("purpose", "outcome", "attempt"))


@pytest.mark.parametrize("form", REFUSALS)
def test_three_refusals_suspend_and_leave_nothing_of_their_text(
    serve: Serve, redis_client: Any, settings: Any, form: str
) -> None:
    server = serve(context_length=128_000, supports_tool_choice=True)
    server.brain = Scripted(FULL, REFUSALS[form])
    dialog = dialog_with(server, tools=["read_file"])
    say(dialog, "fill it")
    turns, events = dialog.turns.count(), len(events_of(dialog))
    say(dialog, PENDING)

    forced = server.bodies[1:]
    assert len(forced) == 3
    for body in forced:
        assert body["tools"] == server.bodies[0]["tools"] and len(body["tools"]) > 1  # as before: caches bind to them
        assert body["tool_choice"] == {"type": "function", "function": {"name": "clear_mind"}}
        assert body["messages"][-2]["content"] == PENDING
    first, second, third = (body["messages"][-1]["content"] for body in forced)
    assert first == CLEAR_ONLY
    assert f"refused because: {REASONS[form]}" in second and "120,000 of 128,000 tokens" in second
    assert f"refused because: {REASONS[form]}" in third and "the last" in third and "fill it" in third  # the draft

    assert outcomes(dialog)[1:] == [("forced_clear", "discarded", k) for k in (1, 2, 3)]
    usages = dialog.generations.filter(outcome="discarded").values_list("prompt_tokens", "completion_tokens")
    assert list(usages) == [RED] * 3
    levels = HealthSnapshot.objects.filter(generation__dialog=dialog).values_list("level", flat=True)
    assert list(levels) == ["critical"] * 4

    assert dialog.turns.count() == turns + 1  # the message alone
    new = [event["type"] for event in events_of(dialog)[events:]]
    assert set(new) <= {"turn", "generation", "health", "state", "question"} and new.count("question") == 1
    assert tables_holding(REFUSED_TEXT) == []
    assert not [key for key in redis_client.scan_iter() if REFUSED_TEXT.encode() in (redis_client.dump(key) or b"")]

    assert (dialog.state, dialog.turns.get(text=PENDING).status) == ("suspended", "suspended")
    question = dialog.questions.get()
    assert (question.kind, question.state) == ("context_health_critical", "open")
    _nothing_follows(server, dialog)
    logged = "".join(path.read_text() for path in (Path(settings.DATA_DIR) / "discarded").iterdir())
    assert logged.count(REFUSED_TEXT) >= 3


def _nothing_follows(server: LocalDouble, dialog: Dialog) -> None:
    asked = len(server.bodies)
    with pytest.raises(Conflict) as refused:
        messages.post_message(dialog.pk, "hello?")
    assert refused.value.code == "dialog_suspended"
    with pytest.raises(Conflict):
        questions.answer(dialog.questions.get().pk, dialog.owner, "go on then")
    with pytest.raises(Conflict):
        questions.cancel(dialog.questions.get().pk, dialog.owner)
    drive(dialog.pk)
    sweeping.sweep()
    assert len(server.bodies) == asked


def test_a_suspended_dialog_refuses_messages_of_pages_and_programs(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, REFUSALS["text only"])
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    assert shown_holding(dialog, UserFactory.create(is_staff=True, is_superuser=True), REFUSED_TEXT) == []

    program = Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})
    sent = program.post(f"/api/dialogs/{dialog.pk}/messages", {"text": "hi"}, content_type="application/json")
    assert (sent.status_code, orjson.loads(sent.content)["error"]["code"]) == (409, "dialog_suspended")
    question = dialog.questions.get()
    answered = program.post(f"/api/questions/{question.pk}/answer", {"text": "hi"}, content_type="application/json")
    assert (answered.status_code, orjson.loads(answered.content)["error"]["code"]) == (409, "not_answerable")
    page = Client()
    page.force_login(dialog.owner)
    page.post(f"/d/{dialog.pk}/messages/", {"text": "hi"})
    page.post(f"/q4h/{question.pk}/answer/", {"text": "hi"})
    assert dialog.turns.filter(text="hi").count() == 0
    question.refresh_from_db()
    assert question.state == "open"


class Reader:
    """Clears its mind rightly once it is told what was wrong."""

    def __call__(self, prompt: Prompt) -> Reply:
        asked = prompt.last.text
        if "blank, unfilled or unreadable" in asked:
            return accepted("Goal: read what is said")
        return (
            REFUSALS["blank package"]
            if asked == CLEAR_ONLY
            else FULL
            if "fill" in asked
            else Reply("Done.", usage=GREEN)
        )


def test_a_model_that_reads_the_reason_succeeds_in_the_second_attempt(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = Reader()
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "and now?")
    forced = [("forced_clear", "discarded", 1), ("forced_clear", "kept", 2)]
    assert outcomes(dialog)[1:] == [*forced, ("reply", "kept", 1)]
    assert dialog.rounds.get(number=dialog.round_number).package == "Goal: read what is said"


def test_an_operators_sound_prompt_is_sent_and_a_bad_one_not(serve: Serve, minds: Minds) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, REFUSALS["text only"])
    (minds.folder / "prompts").mkdir()
    (minds.folder / "prompts" / "forced_clear_first.md").write_text("Clear your mind now.")
    (minds.folder / "prompts" / "forced_clear_second.md").write_text("Again, since $colour.")
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    first, second = (body["messages"][-1]["content"] for body in server.bodies[1:3])
    assert first == "Clear your mind now."
    assert "refused because: text only" in second
    assert [(one.file, "$colour" in one.reason) for one in config.problems()] == [
        ("prompts/forced_clear_second.md", True)
    ]


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_an_accepted_clear_answers_the_pending_message_in_a_fresh_round(serve: Serve, refused: int) -> None:
    server = serve(context_length=128_000)
    refusals = [REFUSALS["text only"], REFUSALS["wrong tool"]][:refused]
    server.brain = Scripted(
        FULL, *refusals, accepted("  Goal: sort the shelf\n- step 2 "), Reply("Sorted.", usage=GREEN)
    )
    dialog = dialog_with(server, recall=False)
    say(dialog, "fill it")
    say(dialog, PENDING)
    assert outcomes(dialog)[1:] == [
        *[("forced_clear", "discarded", k + 1) for k in range(refused)],
        ("forced_clear", "kept", refused + 1),
        ("reply", "kept", 1),
    ]
    assert (dialog.state, dialog.round_number) == ("idle", 2)
    assert dialog.rounds.get(number=2).package == "Goal: sort the shelf\n- step 2"
    fresh = server.bodies[-1]
    assert [message["content"] for message in fresh["messages"]][-1] == PENDING
    assert "Goal: sort the shelf\n- step 2" in fresh["messages"][-2]["content"]
    assert len(fresh["messages"]) == 3 and len(fresh["tools"]) > 1  # system, package, message; all tools again
    assert "tool_choice" not in fresh
    assert (dialog.turns.get(text=PENDING).status, dialog.turns.latest("position").text) == (
        "answered",
        "Sorted.",
    )
    # The near-empty round is not cleared again, and its episode is over.
    server.brain = lambda _: Reply("ok", usage=GREEN)
    say(dialog, "and then?")
    assert outcomes(dialog)[-1] == ("reply", "kept", 1)
    assert (dialog.failed_clears, dialog.clear_unproven) == (0, False)
    assert not server.refusals


def test_calls_beside_an_accepted_clear_are_skipped_and_counted(serve: Serve) -> None:
    server = serve(context_length=128_000)
    beside = Reply(
        REFUSED_TEXT,
        calls=(
            Call("add_reminder", {"content": REFUSED_TEXT}),
            Call("clear_mind", {"reminder_content": "Goal"}),
            Call("ask_human", {}),
        ),
        usage=RED,
    )
    server.brain = Scripted(FULL, beside, Reply("fine", usage=GREEN))
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    clear = dialog.generations.get(purpose="forced_clear")
    assert (clear.outcome, clear.skipped_calls) == ("kept", 2)
    assert (dialog.reminders.count(), dialog.questions.count(), tables_holding(REFUSED_TEXT)) == (0, 0, [])


def test_a_clear_that_did_not_help_counts_and_names_the_message(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(
        FULL, REFUSALS["text only"], accepted(), FULL, accepted(), Reply("still full", usage=RED), FULL
    )
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "a message that is far too long for this model")
    say(dialog, "next")
    assert outcomes(dialog)[1:] == [
        ("forced_clear", "discarded", 1),
        ("forced_clear", "kept", 2),
        ("reply", "kept", 1),  # its report says: still critical, the second failure
        ("forced_clear", "kept", 3),
        ("reply", "kept", 1),  # the third
    ]
    assert (dialog.state, dialog.round_number) == ("suspended", 3)
    question = dialog.questions.get()
    message = dialog.turns.get(text="next")
    assert (message.status, f"Message {message.seq} alone (4 characters)" in question.text) == ("answered", True)
    assert len(questions.attempts_of(question)) == 3
    assert "- still full" in question.draft  # the answer that was stored together with the question
    assert question.draft == draft_package(dialog)


def test_clears_that_meet_overflows_come_to_an_end(serve: Serve) -> None:
    """A model that always clears, in front of a provider that always finds the message too long."""
    server = serve(context_length=128_000)

    def answer(prompt: Prompt) -> Reply:
        is_forced = "Nothing but clear_mind is possible now" in prompt.last.text
        return accepted() if is_forced else OVER

    server.brain = answer
    dialog = dialog_with(server)
    say(dialog, "far too long")
    assert outcomes(dialog) == [
        ("reply", "failed", 1),
        *_clear_then_overflow(1),
        *_clear_then_overflow(2),
        *_clear_then_overflow(3),
    ]
    assert dialog.state == "suspended"
    assert "Message 1 alone (12 characters) does not fit" in dialog.questions.get().text
    assert dialog.turns.get(text="far too long").status == "suspended"


def _clear_then_overflow(attempt: int) -> list[tuple[str, str, int]]:
    return [("forced_clear", "kept", attempt), ("reply", "failed", 1)]


def test_a_provider_failure_inside_a_forced_attempt_is_not_counted(serve: Serve) -> None:
    server = serve(context_length=128_000)
    broken = Reply(error=(400, {"error": {"message": "no", "code": "invalid_request_error"}}))
    server.brain = Scripted(
        FULL, REFUSALS["text only"], Reply("half", error_event="overloaded"), REFUSALS["text only"], broken
    )
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    assert outcomes(dialog)[1:] == [
        ("forced_clear", "discarded", 1),
        ("forced_clear", "failed", 2),
        ("forced_clear", "discarded", 2),
        ("forced_clear", "failed", 3),
        ("forced_clear", "failed", 3),  # once more without a tool_choice, for a provider that did not name the reason
    ]
    assert (dialog.state, dialog.failed_clears, dialog.turns.get(text="next").status) == ("suspended", 2, "suspended")
    assert "refused the request with HTTP 400: no." in dialog.questions.get().text  # for good: a person has to act


@pytest.mark.parametrize("later", [None, (100, 5)], ids=["unreported", "much smaller"])
def test_an_episode_outlasts_an_unknown_or_lower_level(serve: Serve, later: Any) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, Reply("no", usage=later, is_reported=later is not None))
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    assert outcomes(dialog)[1:] == [("forced_clear", "discarded", k) for k in (1, 2, 3)]
    assert dialog.state == "suspended"


def test_a_change_of_limits_closes_an_episode(serve: Serve, minds: Minds) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, REFUSALS["text only"], Reply(error=(401, {})), Reply("ok", usage=RED))
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")  # one refusal, then a provider's no
    assert (dialog.state, dialog.failed_clears) == ("failed", 1)
    minds.set(server.model, context_length=200_000, optimal_max_tokens=150_000)
    say(dialog, "with more room")
    assert (outcomes(dialog)[-1], dialog.failed_clears) == (("reply", "kept", 1), 0)
    minds.set(server.model, context_length=128_000)
    server.brain = lambda _: REFUSALS["text only"]
    say(dialog, "and less again")
    assert outcomes(dialog)[-3:] == [("forced_clear", "discarded", k) for k in (1, 2, 3)]
    assert len(questions.attempts_of(dialog.questions.get())) == 3


def test_an_overflow_forces_a_clear_and_inside_one_asks_a_human(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = lambda _: OVER
    dialog = dialog_with(server)
    say(dialog, "hello")
    assert outcomes(dialog) == [("reply", "failed", 1), ("forced_clear", "failed", 1)]
    assert dialog.state == "suspended"
    assert ContextEvent.objects.filter(dialog=dialog, code="TOKEN_LIMIT_EXCEEDED").count() == 2
    assert HealthSnapshot.objects.filter(generation__dialog=dialog).exclude(level="unknown").count() == 0


def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow(serve: Serve) -> None:
    server = serve(context_length=128_000)
    refusal = Reply("", error_event="Rate limit reached: too many tokens per minute")
    server.brain = Scripted(refusal, Reply("ok", usage=GREEN))
    dialog = dialog_with(server)
    say(dialog, "hello")
    if dialog.state != "idle":  # a backoff of some seconds was due
        Dialog.objects.filter(pk=dialog.pk).update(wake_at=None)
        go_on(dialog)
    assert [purpose for purpose, *_ in outcomes(dialog)] == ["reply", "reply"]
    assert not dialog.overflowed


def test_discarded_outputs_are_logged_for_seven_days(serve: Serve, settings: Any) -> None:
    from dialogs.store import discarded_log

    SiteSettings.objects.create(keep_discarded_outputs=False)
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, REFUSALS["text only"])
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    folder = Path(settings.DATA_DIR) / "discarded"
    assert dialog.state == "suspended" and not folder.exists()

    folder.mkdir(parents=True)
    (folder / "2026-01-01.jsonl").write_text("{}")
    day = 86_400
    written_at = (folder / "2026-01-01.jsonl").stat().st_mtime
    assert discarded_log.delete_old(written_at + 7 * day) == 0
    assert discarded_log.delete_old(written_at + 7 * day + 1) == 1


def test_operators_are_told_by_webhook_when_a_dialog_is_suspended(serve: Serve, staff: User) -> None:
    from tests.flows.hook import listening

    with listening() as hook:
        SiteSettings.objects.create(webhook_url=hook.url)
        server = serve(context_length=128_000)
        server.brain = Scripted(FULL, REFUSALS["text only"])
        dialog = dialog_with(server)
        say(dialog, "fill it")
        say(dialog, "next")
        deliveries.deliver(Delivery.objects.get(event="question.opened").pk)
        message = hook.wait()
    question = dialog.questions.get()
    assert (message["question"], message["kind"]) == (str(question.pk), "context_health_critical")
    assert message["path"] == f"/q4h/{question.pk}/" and REFUSED_TEXT not in json.dumps(message)


def test_stop_ends_a_forced_attempt_and_counts_nothing(serve: Serve) -> None:
    from django.db import connection

    server = serve(context_length=128_000)

    def answer(prompt: Prompt) -> Reply:
        if len(server.bodies) == 1:
            return FULL
        messages.stop(dialog.pk)
        connection.close()
        return Reply("too late " * 400, chunk_chars=10, chunk_seconds=0.05, usage=RED)

    server.brain = answer
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, "next")
    assert outcomes(dialog)[1:] == [("forced_clear", "stopped", 1)]
    assert (dialog.state, dialog.failed_clears, dialog.turns.get(text="next").status) == ("idle", 0, "stopped")
    assert not dialog.turns.filter(text__contains="too late").exists()
