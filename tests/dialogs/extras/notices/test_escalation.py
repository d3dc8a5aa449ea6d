"""Overdue questions: who is reminded, in which order, and how the list is written."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from dialogs.actions import questions, sharing
from dialogs.extras.notices import deliveries, question_mail
from dialogs.models import Delivery, Question, SiteSettings
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.extras.notices.notices import ask, later, send_due
from tests.dialogs.factories import UserFactory, make_operator
from tests.doubles.smtp import MailServer
from tests.flows.hook import Hook

pytestmark = pytest.mark.django_db(transaction=True)


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
        (
            " boss@example.org  60 \r\n\r\nduty@example.org,chief@example.org 5",
            "boss@example.org 60\nduty@example.org\nchief@example.org 5",
        ),
    ],
)
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
