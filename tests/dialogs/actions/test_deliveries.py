"""Notices of questions: mails with a link that answers, signed webhooks, tries, and reminders of what is overdue."""

import hmac
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from dialogs import checks
from dialogs.actions import deliveries, question_mail, questions, sharing
from dialogs.models import Delivery, PersonSettings, Question, SiteSettings
from dialogs.operations.dashboard import undelivered
from dialogs.state import State
from dialogs.tools.human import ASK_HUMAN
from dominds import sealing
from dominds.redaction import redact
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.doubles.smtp import MailServer, mail_server
from tests.flows.hook import Hook, listening

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "of the site"


@pytest.fixture
def post(settings: Any) -> Iterator[MailServer]:
    """A mail server, as the environment would name it."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = server.login
        settings.MAIL_FROM, settings.PUBLIC_URL = "Dominds <dominds@example.org>", "https://dominds.example.org"
        yield server


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    settings.PRIVATE_WEBHOOKS = True
    with listening() as hook:
        SiteSettings.objects.create(webhook_url=hook.url, sealed_webhook_secret=sealing.seal(SECRET))
        yield hook


def ask(script: Script, question: str = "EUR or USD?", email: str = "ann@example.org") -> Question:
    """A question to a person who can be reached by mail."""
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": question}}]}, {"text": "Thanks."})
    dialog = make_dialog(name="Importer")
    User.objects.filter(pk=dialog.owner_id).update(email=email)
    send(dialog, "Import it")
    return Question.objects.get(dialog=dialog)


def send_due() -> None:
    """What a worker does, or the sweeper has it do."""
    for pk in list(Delivery.objects.filter(due_at__lte=Now()).values_list("pk", flat=True)):
        deliveries.deliver(pk)


def later(minutes: int) -> None:
    """Let time pass for what waits to be sent, and for open questions."""
    past = timedelta(minutes=minutes)
    Delivery.objects.filter(due_at__isnull=False).update(due_at=F("due_at") - past)
    Question.objects.update(created_at=F("created_at") - past, escalated_at=F("escalated_at") - past)


def link_in(mail: EmailMessage) -> str:
    match = re.search(r"https://dominds\.example\.org(/q4h/[^/]+/by-mail/[^/\s]+/)", str(mail.get_content()))
    assert match, mail.get_content()
    return match[1]


def test_a_mails_link_answers_as_the_person_who_was_asked(script: Script, post: MailServer) -> None:
    question = ask(script, "EUR or USD?\n.\n" + "word " * 400)
    send_due()
    mail = post.wait()
    assert (mail["To"], mail["Auto-Submitted"], post.refusals) == ("ann@example.org", "auto-generated", [])
    assert mail["Subject"].startswith("Needs you: Importer in “")
    assert "word word" in mail.get_content() and f"https://dominds.example.org/q4h/{question.pk}/" in mail.get_content()

    client, link = Client(enforce_csrf_checks=True), link_in(mail)
    opened = client.get(link)
    assert (opened.status_code, opened["Referrer-Policy"]) == (302, "no-referrer")
    assert "no-store" in opened["Cache-Control"] and link.split("/")[-2] not in opened["Location"]
    page = client.get(opened["Location"])
    html = page.content.decode()
    assert "EUR or USD?" in html and "no-store" in page["Cache-Control"] and 'id="nav"' not in html
    form = {"text": "EUR"}
    assert client.post(f"{opened['Location']}answer/", form).status_code == 403, "no form of ours sent this"
    form["csrfmiddlewaretoken"] = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', html)[0]
    assert "The agent goes on" in client.post(f"{opened['Location']}answer/", form).content.decode()
    question.refresh_from_db()
    assert (question.state, question.answer, question.resolved_by) == ("answered", "EUR", question.dialog.owner)
    assert client.get("/dialogs/").status_code == 302, "it is no login"
    for address in (link, opened["Location"]):
        assert client.get(address).status_code == 404
    assert client.post(f"{opened['Location']}answer/", form).status_code == 404


def test_a_link_holds_for_its_question_its_person_and_a_week(
    script: Script, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, other = ask(script), ask(script)
    owner, link = question.dialog.owner, question_mail.link_to(question, question.dialog.owner)
    assert Client().get(link).status_code == 302
    assert Client().get(link.replace(str(question.pk), str(other.pk))).status_code == 404
    assert Client().get(link[:-4] + "aaa/").status_code == 404
    stranger = question_mail.link_to(question, UserFactory.create())
    client = Client()
    assert client.get(client.get(stranger)["Location"]).status_code == 404, "it is not their dialog"
    eight_days_ago = time.time() - 8 * 24 * 3600
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: eight_days_ago)
        old = question_mail.link_to(question, owner)
    assert Client().get(old).status_code == 404
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert Client().get(link).status_code == 404


def test_an_exit_is_taken_by_link_where_the_person_may(script: Script, post: MailServer) -> None:
    dialog, question = suspended_dialog(script)
    client = Client()
    page = client.get(question_mail.link_to(question, dialog.owner), follow=True)
    assert "An operator chooses" in page.content.decode()
    dialog.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    where = page.redirect_chain[-1][0]
    assert "Ways out" in client.get(where).content.decode()
    assert client.post(f"{where}resolve/", {"action": "no such"}).status_code == 400
    assert client.post(f"{where}resolve/", {"action": "close"}).status_code == 200
    dialog.refresh_from_db()
    assert dialog.state == State.CLOSED


def test_no_log_holds_the_token_of_a_link(script: Script) -> None:
    link = question_mail.link_to(ask(script), UserFactory.create())
    token = link.split("/")[-2]
    assert token not in redact(f"GET {link} 302") and token not in redact(f"GET {quote(link)} 302")
    assert "/answer/" in redact(f"POST {link.replace(token, 'answer')} 200")


def test_a_mail_that_fails_is_sent_again_and_operators_see_why(script: Script, post: MailServer) -> None:
    post.busy = 2
    ask(script)
    send_due()
    assert [(result.channel, result.count, result.tries_again) for result in undelivered()] == [("mail", 1, True)]
    assert "451" in browser_of(make_operator()).get("/ops/").content.decode()
    send_due()  # not yet
    assert Delivery.objects.get().tries == 1
    for _ in range(2):
        later(60)
        send_due()
    assert post.wait()["To"] == "ann@example.org"
    assert (Delivery.objects.get().tries, undelivered()) == (3, [])


def test_what_is_refused_for_good_is_given_up(script: Script, post: MailServer) -> None:
    ask(script, email="ann@nowhere.test")
    for _ in deliveries.RETRY_AFTER:
        send_due()
        later(180)
    send_due()
    row = Delivery.objects.get()
    assert (row.tries, row.due_at, row.sent_at) == (len(deliveries.RETRY_AFTER) + 1, None, None)
    assert "No such user here" in undelivered()[0].error


def test_nobody_is_mailed_who_does_not_want_it_or_has_answered(script: Script, post: MailServer) -> None:
    question = ask(script)
    questions.answer(question.pk, question.dialog.owner, "EUR")
    send_due()
    PersonSettings.objects.create(user=question.dialog.owner, question_mails=False)
    assert Delivery.objects.get().sent_at is None and post.mails.empty() and not undelivered()
    assert deliveries._asked(question) is None
    ask(script, email="")
    assert Delivery.objects.count() == 1


def test_two_workers_send_one_notice_once(script: Script, post: MailServer) -> None:
    ask(script)
    pk = Delivery.objects.get().pk
    send_due()
    deliveries.deliver(pk)
    Delivery.objects.filter(pk=pk).update(due_at=Now() + timedelta(seconds=9))  # as while another sends it
    deliveries.deliver(pk)
    post.wait()
    assert post.mails.empty()


def test_an_overdue_question_is_escalated_once(script: Script, post: MailServer, hook: Hook) -> None:
    SiteSettings.objects.update(question_deadline_minutes=30, escalation_address="boss@example.org")
    question = ask(script)
    send_due()
    assert "Please answer by" in post.wait().get_content()
    assert (deliveries.escalate(), hook.wait()["event"]) == (0, "question.opened")
    later(31)
    assert (deliveries.escalate(), deliveries.escalate()) == (1, 0)
    send_due()
    reminders = {mail["To"]: mail for mail in (post.wait(), post.wait())}
    assert set(reminders) == {"ann@example.org", "boss@example.org"}
    assert "by-mail" in reminders["ann@example.org"].get_content()
    assert "by-mail" not in reminders["boss@example.org"].get_content(), "it is nobody's in particular"
    assert hook.wait()["event"] == "question.overdue"
    page = browser_of(question.dialog.owner).get(f"/q4h/{question.pk}/").content.decode()
    assert "people were reminded just now" in page


def test_mails_speak_the_language_and_tell_the_time_of_who_gets_them(script: Script, post: MailServer) -> None:
    SiteSettings.objects.create(question_deadline_minutes=30)
    question = ask(script)
    owner, client = question.dialog.owner, browser_of(question.dialog.owner)
    assert not PersonSettings.objects.exists()
    client.cookies["zone"] = "Asia/Shanghai"
    client.get("/settings/", headers={"Accept-Language": "zh-CN,zh"})
    own = PersonSettings.objects.get(user=owner)
    assert (own.language, own.seen_language, own.seen_zone) == ("", "zh-hans", "Asia/Shanghai")
    Question.objects.update(created_at=datetime(2026, 7, 1, 20, tzinfo=UTC))
    send_due()
    mail = post.wait()
    assert (mail["Subject"].strip(), mail["Content-Language"]) == (
        f"需要您处理：Importer（“{question.dialog}”）",
        "zh-hans",
    )
    assert "请在 2026年7月2日 04:30（Asia/Shanghai）前回答。" in mail.get_content()
    assert "EUR or USD?" in mail.get_content() and "by-mail" in mail.get_content()

    PersonSettings.objects.update(language="en", seen_zone="Europe/Berlin")
    assert "You have" not in client.get("/settings/").content.decode()
    assert PersonSettings.objects.get().seen_zone == "Asia/Shanghai", "the browser used last"
    client.cookies["zone"] = "Mars/Olympus"
    client.get("/settings/")
    assert PersonSettings.objects.get().seen_zone == "UTC", "a zone that is none"
    Delivery.objects.update(due_at=Now())
    send_due()
    mail = post.wait()
    assert mail["Subject"] == f"Needs you: Importer in “{question.dialog}”"
    assert "Please answer by 1 Jul 2026, 20:30 (UTC)." in mail.get_content()
    PersonSettings.objects.update(zone="Asia/Kolkata")
    client.get("/settings/")
    assert PersonSettings.objects.get().seen_zone == "UTC", "the cookie repeats a choice from now on"
    Delivery.objects.update(due_at=Now())
    send_due()
    assert "Please answer by 2 Jul 2026, 02:00 (Asia/Kolkata)." in post.wait().get_content()


def test_who_asks_by_a_key_is_called_a_program(script: Script, post: MailServer) -> None:
    owner = ask(script).dialog.owner
    send_due()
    assert "Importer asks in" in post.wait().get_content()
    questions.ask_from_outside(owner, "Ship it?")
    send_due()
    mail = post.wait()
    assert mail["Subject"] == "Needs you: a program in “Ship it?”" and "A program asks in" in mail.get_content()


def test_who_is_asked_next_answers_by_a_link_of_their_own(script: Script, post: MailServer) -> None:
    SiteSettings.objects.create(question_deadline_minutes=30, escalation_address="Boss@example.org")
    boss = UserFactory.create(email="boss@example.org")

    def reminder() -> str:
        Delivery.objects.all().delete()
        Question.objects.update(escalations=0)
        assert deliveries.escalate() == 1
        send_due()
        result = {mail["To"].lower(): str(mail.get_content()) for mail in (post.wait(), post.wait())}
        assert set(result) == {"ann@example.org", "boss@example.org"}
        return result["boss@example.org"]

    question = ask(script)
    later(31)
    assert "by-mail" not in reminder(), "may not see the dialog"
    group = Group.objects.create(name="Desk")
    group.user_set.set([boss, question.dialog.owner])
    sharing.share(question.dialog_id, "Desk", question.dialog.owner)
    mail = reminder()
    assert "go to your address" in mail
    link = re.search(r"https://dominds\.example\.org(/q4h/\S+/by-mail/\S+/)", mail)
    assert link
    client = Client()
    where = client.get(link[1])["Location"]
    assert f"<strong>{boss}</strong>" in client.get(where).content.decode()
    client.post(f"{where}answer/", {"text": "EUR"})
    question.refresh_from_db()
    assert (question.answer, question.resolved_by) == ("EUR", boss)
    late = Client().get(question_mail.link_to(question, question.dialog.owner))
    assert (late.status_code, f"This question was answered by {boss}." in late.content.decode()) == (404, True)
    sharing.share(question.dialog_id, "", question.dialog.owner)
    assert str(boss) not in Client().get(link[1]).content.decode(), "sees the dialog no more"
    UserFactory.create(email="BOSS@example.org")
    assert question_mail.holder_of("boss@example.org", question) is None, "two have this address"


def test_people_are_asked_one_after_another_each_with_a_deadline(script: Script, post: MailServer, hook: Hook) -> None:
    lines = "ann@example.org\nboss@example.org 10\nchief@example.org\nduty@example.org"
    SiteSettings.objects.update(question_deadline_minutes=30, escalation_address=lines)
    question = ask(script)
    send_due()
    assert (post.wait()["To"], hook.wait()["event"]) == ("ann@example.org", "question.opened")

    def asked_after(minutes: int) -> list[str]:
        """Who is mailed once these have passed, and not a minute earlier."""
        later(minutes - 1)
        assert deliveries.escalate() == 0
        later(2)
        assert (deliveries.escalate(), deliveries.escalate()) == (1, 0)
        due = Delivery.objects.filter(due_at__isnull=False, channel="mail").count()
        send_due()
        return [str(post.wait()["To"]) for _ in range(due)]

    assert asked_after(30) == ["ann@example.org"], "who is asked already is not asked twice"
    assert (call := hook.wait())["event"] == "question.overdue" and call["escalation"] == 1
    assert asked_after(30) == ["boss@example.org"]
    assert hook.wait()["escalation"] == 2
    SiteSettings.objects.update(escalation_address=lines.replace("chief@example.org", "chief@example.org 5"))
    assert asked_after(10) == ["chief@example.org"]
    assert asked_after(5) == ["duty@example.org"]
    later(9_999)
    assert deliveries.escalate() == 0, "nobody follows"

    other = ask(script)
    later(31)
    questions.answer(other.pk, other.dialog.owner, "EUR")
    assert deliveries.escalate() == 0, "it is answered"
    question.refresh_from_db()
    assert (question.state, question.escalations) == (Question.State.OPEN, 4)


def test_each_who_is_asked_reads_until_when_they_have(script: Script, post: MailServer) -> None:
    SiteSettings.objects.create(
        question_deadline_minutes=30, escalation_address="boss@example.org 90\nduty@example.org"
    )
    ask(script, email="")
    later(31)
    deliveries.escalate()
    Question.objects.update(escalated_at=datetime(2026, 7, 1, 20, tzinfo=UTC))
    send_due()
    assert "Please answer by 1 Jul 2026, 21:30 (UTC)." in post.wait().get_content()
    deliveries.escalate()
    send_due()
    mail = post.wait()
    assert (mail["To"], "Please answer by" in mail.get_content()) == ("duty@example.org", False), "nobody follows"


def test_who_was_taken_off_the_list_is_not_mailed_any_more(script: Script, post: MailServer) -> None:
    SiteSettings.objects.create(question_deadline_minutes=30, escalation_address="boss@example.org\nduty@example.org")
    ask(script, email="")
    later(31)
    deliveries.escalate()
    SiteSettings.objects.update(escalation_address="duty@example.org")
    send_due()
    assert post.mails.empty() and not Delivery.objects.filter(due_at__isnull=False).exists()


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("boss@example.org", "boss@example.org"),
        (" boss@example.org  60 \r\n\r\nduty@example.org,chief@example.org 5", "boss@example.org 60\nduty@example.org\nchief@example.org 5"),
    ],
)  # fmt: skip
def test_settings_keep_who_is_asked_line_by_line(typed: str, kept: str) -> None:
    client = browser_of(make_operator())
    client.post("/settings/site/", {"question_deadline_minutes": "30", "escalation_address": typed})
    row = SiteSettings.current()
    assert (row.escalation_address, row.question_deadline_minutes) == (kept, 30)
    assert kept in client.get("/settings/site/").content.decode()


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("boss", "“boss” is no mail address."),
        ("boss@example.org 0", "Behind boss@example.org stand minutes"),
        ("boss@example.org 5 6", "Behind boss@example.org stand minutes"),
        ("boss@example.org ٥", "Behind boss@example.org stand minutes"),
        ("\n".join(f"{n}@example.org" for n in range(11)), "At most 10 people"),
    ],
)
def test_settings_refuse_who_cannot_be_asked(typed: str, problem: str) -> None:
    client = browser_of(make_operator())
    page = client.post("/settings/site/", {"escalation_address": typed}).content.decode()
    assert problem in page and SiteSettings.current().escalation_address == ""


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
    question = ask(script, "Is <!channel> & co. right?")
    send_due()
    assert undelivered()[0].error == "The webhook answered with HTTP 503."
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


def test_a_webhook_that_refuses_is_not_asked_again(script: Script, hook: Hook) -> None:
    hook.fails = [400]
    ask(script)
    send_due()
    assert Delivery.objects.get().due_at is None
    assert not undelivered()[0].tries_again


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


def test_without_a_public_address_a_check_warns_and_mails_hold_no_links(
    script: Script, post: MailServer, settings: Any
) -> None:
    assert checks.mails_have_links() == []
    settings.PUBLIC_URL = ""
    assert "DOMINDS_PUBLIC_URL is not" in str(checks.mails_have_links()[0])
    ask(script)
    send_due()
    content = post.wait().get_content()
    assert "://" not in content and "open “Needs you” to answer" in content


def test_settings_keep_the_address_and_the_secret(settings: Any) -> None:
    settings.PRIVATE_WEBHOOKS = True
    operator = make_operator()
    client = browser_of(operator)
    client.post("/settings/appearance/", {"theme": "dark", "email": "op@example.org"})
    operator.refresh_from_db()
    assert (operator.email, operator.dominds_settings.question_mails) == ("op@example.org", False)
    site = {"webhook_url": "http://127.0.0.1:9/hook", "webhook_secret": SECRET, "question_deadline_minutes": "60"}
    client.post("/settings/site/", site)
    row = SiteSettings.current()
    assert (sealing.unseal(row.sealed_webhook_secret), row.question_deadline_minutes) == (SECRET, 60)
    assert SECRET not in client.get("/settings/site/").content.decode()
    client.post("/settings/site/", {**site, "webhook_secret": ""})
    assert SiteSettings.current().sealed_webhook_secret
    client.post("/settings/site/", {**site, "webhook_secret": "", "unsigned": "on"})
    assert not SiteSettings.current().sealed_webhook_secret
    settings.PRIVATE_WEBHOOKS = False
    assert "lies on this machine" in client.post("/settings/site/", site).content.decode()
