"""Webhooks: their signature, tries again, and what they learn of."""

import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from dialogs.actions import questions
from dialogs.extras.notices.webhook import question_body
from dialogs.extras.operations.dashboard import list_undelivered
from dialogs.models import Delivery, Question, SiteSettings
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.extras.notices.notices import SECRET, ask, later, send_due
from tests.dialogs.factories import make_dialog, make_operator, send
from tests.flows.hook import Hook

pytestmark = pytest.mark.django_db(transaction=True)


def signed_with(hook: Hook, body: dict[str, Any]) -> list[str]:
    """Which of the secrets signed it, in the order of the signatures."""
    time_part, *signatures = (part.split("=", 1)[1] for part in hook.headers["x-dominds-signature"].split(","))
    signed = f"{time_part}.{json.dumps(body)}".encode()
    known = {hmac.new(secret.encode(), signed, "sha256").hexdigest(): secret for secret in (SECRET, "the next one")}
    return [known[signature] for signature in signatures]


def test_a_secret_that_is_changed_goes_on_signing_for_a_day(script: Script, hook: Hook) -> None:
    client, site = browser_of(make_operator()), {"webhook_url": hook.url}

    def called() -> list[str]:
        ask(script)
        send_due()
        message = hook.wait()
        assert message["delivery"] == int(hook.headers["x-dominds-delivery"]), "so that it is signed"
        return signed_with(hook, message)

    for secret in ("the next one", "the next one"):
        client.post("/settings/site/", {**site, "webhook_secret": secret})
    assert called() == ["the next one", SECRET]
    assert "signed with both" in client.get("/settings/site/").content.decode()
    SiteSettings.objects.update(webhook_secret_changed_at=Now() - timedelta(hours=25))
    assert called() == ["the next one"]
    client.post("/settings/site/", {**site, "unsigned": "on"})
    row = SiteSettings.current()
    assert (row.sealed_webhook_secret, row.sealed_former_webhook_secret) == ("", "")


def test_a_webhook_is_signed_and_called_again_after_a_failure(script: Script, hook: Hook) -> None:
    hook.fails = [503]
    question = ask(script, "Is <!channel> & co. right?")  # Slack's; Mattermost's below
    send_due()
    assert list_undelivered()[0].error == "The webhook answered with HTTP 503."
    later(1)
    send_due()
    message = hook.wait()
    assert (message["event"], message["question"], message["asked"]) == (
        "question.opened",
        str(question.pk),
        question.text,
    )
    assert "Importer in “" in message["text"] and "&lt;!channel&gt; &amp; co." in message["text"]
    signed = dict(part.split("=") for part in hook.headers["x-dominds-signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{signed['t']}.{json.dumps(message)}".encode(), "sha256").hexdigest()
    assert hmac.compare_digest(signed["v1"], expected)

    questions.answer(question.pk, question.dialog.owner, "Yes")
    send_due()
    message = hook.wait()
    assert (message["event"], message["state"]) == ("question.closed", "answered")
    assert Delivery.objects.filter(sent_at=None).count() == 0
    assert not any(row.body for row in Delivery.objects.all()), "texts are not kept"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("@all", "@\u200ball"),
        ("(@channel)", "(@\u200bchannel)"),
        ("_@here", "_@\u200bhere"),
        ("x/@all.", "x/@\u200ball."),
        ("[your bank](https://evil.example)", "[your bank]\u200b(https://evil.example)"),
        ("![](https://evil.example/seen.png)", "![]\u200b(https://evil.example/seen.png)"),
        ("[bank][1]\n[1]: https://evil.example", "[bank]\u200b[1]\n[1]\u200b: https://evil.example"),
        ("<https://evil.example|bank>", "&lt;https://evil.example|bank&gt;"),
        ("ann@example.org, x[1] = 2", "ann@example.org, x[1] = 2"),
    ],
)
def test_a_line_in_a_chat_mentions_nobody_and_hides_no_address(written: str, shown: str) -> None:
    question = Question.objects.create(dialog=make_dialog(), kind=Question.Kind.QUESTION, text=f"See {written}")
    body = question_body(question)
    assert body["text"].endswith(f"See {shown}") and body["asked"] == f"See {written}"


def test_a_webhook_that_refuses_is_not_asked_again(script: Script, hook: Hook) -> None:
    hook.fails = [400]
    ask(script)
    send_due()
    assert Delivery.objects.get().due_at is None
    assert not list_undelivered()[0].tries_again


def test_a_webhook_learns_of_levels(script: Script, hook: Hook) -> None:
    dialog, _ = suspended_dialog(script)
    send_due()
    messages = [hook.wait() for _ in range(Delivery.objects.count())]
    levels = [call for call in messages if call["event"] == "level.changed"]
    assert [call["level"] for call in levels] == ["critical"], "once, not with each answer"
    assert levels[0]["dialog"] == str(dialog.pk) and "950" in levels[0]["text"]


def test_a_webhook_learns_of_rewrites(script: Script, hook: Hook) -> None:
    script({"text": "Understood. " * 40, "usage": "estimate"}, context_length=16_000)
    dialog = make_dialog(context_policy="retention")
    while not (run := RemediationRun.objects.filter(dialog=dialog).first()):
        send(dialog, "Do consider this carefully, step by step. " * 20)
    send_due()
    message = hook.wait()
    assert (message["event"], message["policy"], message["dialog"]) == (
        "context.rewritten",
        "retention",
        str(dialog.pk),
    )
    assert (message["est_before"], message["est_after"]) == (run.est_before, run.est_after)
    assert f"est. {run.est_after:,} after" in message["text"]
    assert browser_of(dialog.owner).get(message["path"]).status_code == 200
