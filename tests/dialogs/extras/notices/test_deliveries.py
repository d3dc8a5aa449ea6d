"""Mails about questions: a link that answers, tries again, languages and time zones."""

import re
import time
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models.functions import Now
from django.test import Client

from dialogs.actions import folders, questions
from dialogs.extras.notices import checks, deliveries, question_mail
from dialogs.extras.operations.dashboard import list_undelivered
from dialogs.models import Delivery, Dialog, PersonSettings, Question, SiteSettings
from dialogs.state import State
from dominds import sealing
from dominds.redaction import redact
from tests.dialogs.browsing import browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.extras.notices.notices import SECRET, ask, later, send_due
from tests.dialogs.factories import UserFactory, make_dialog, make_operator
from tests.doubles.smtp import MailServer

pytestmark = pytest.mark.django_db(transaction=True)


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
    assert [(result.channel, result.count, result.tries_again) for result in list_undelivered()] == [("mail", 1, True)]
    assert "451" in browser_of(make_operator()).get("/ops/").content.decode()
    send_due()  # not yet
    assert Delivery.objects.get().tries == 1
    for _ in range(2):
        later(60)
        send_due()
    assert post.wait()["To"] == "ann@example.org"
    assert (Delivery.objects.get().tries, list_undelivered()) == (3, [])


def test_what_is_refused_for_good_is_given_up(script: Script, post: MailServer) -> None:
    ask(script, email="ann@nowhere.test")
    for _ in deliveries.RETRY_AFTER:
        send_due()
        later(180)
    send_due()
    row = Delivery.objects.get()
    assert (row.tries, row.due_at, row.sent_at) == (len(deliveries.RETRY_AFTER) + 1, None, None)
    assert "No such user here" in list_undelivered()[0].error


def test_nobody_is_mailed_who_does_not_want_it_or_has_answered(script: Script, post: MailServer) -> None:
    question = ask(script)
    questions.answer(question.pk, question.dialog.owner, "EUR")
    send_due()
    PersonSettings.objects.create(user=question.dialog.owner, question_mails=False)
    assert Delivery.objects.get().sent_at is None and post.mails.empty() and not list_undelivered()
    assert deliveries._person_asked(question) is None
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


def test_mails_use_the_readers_language_and_clock(script: Script, post: MailServer) -> None:
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


def test_without_a_public_address_mails_have_no_links(script: Script, post: MailServer, settings: Any) -> None:
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


def test_nothing_more_is_told_of_a_deleted_dialog(dialog: Dialog) -> None:
    other = make_dialog()
    SiteSettings.objects.update_or_create(singleton=True, defaults={"webhook_url": "https://example.org/hook"})
    for one in (dialog, other):
        deliveries.level_changed(one, "caution")
    question = Question.objects.create(dialog=dialog, kind="question", text="mellon?", state="answered")
    Delivery.objects.create(channel="webhook", event="question.closed", question=question, body='{"asked": "mellon?"}')
    folders.delete(dialog.owner, [dialog.pk])
    (left,) = Delivery.objects.filter(due_at__isnull=False)
    assert str(other.pk) in left.body
    assert list(Delivery.objects.exclude(pk=left.pk).values_list("body", flat=True)) == ["", ""]
