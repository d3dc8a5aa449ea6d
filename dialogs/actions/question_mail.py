"""Mails about questions (Q4H), with a signed link by which the person who is asked answers without a login."""

from datetime import timedelta
from smtplib import SMTPException
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse

from dialogs.models import Delivery, Question, SiteSettings
from dialogs.permissions import RESOLVE, may

SALT = "dialogs.question-mail"
LINK_DAYS = 7


class Failed(Exception):
    """The mail server did not take it. It is tried again: what it answers today it may not answer tomorrow."""

    may_pass = True


def is_on() -> bool:
    return bool(settings.MAIL_FROM)


def send(row: Delivery) -> bool:
    """Write and send the mail; False where it is no longer needed. Raises ``Failed``."""
    question, site = row.question, SiteSettings.current()
    address = row.person.email if row.person else site.escalation_address
    if question is None or question.state != Question.State.OPEN or not address or not is_on():
        return False
    if row.person is not None and not row.person.is_active:
        return False
    what = "Still waiting for you" if row.is_reminder else "Needs you"
    subject = " ".join(f"{what}: {question.dialog.agent} in “{question.dialog}”".split())
    mail = EmailMessage(subject[:200], _text(row, question, site), settings.MAIL_FROM, [address])
    mail.extra_headers = {"Auto-Submitted": "auto-generated"}
    try:
        mail.send()
    except (OSError, SMTPException, ValueError) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    return True


def _text(row: Delivery, question: Question, site: SiteSettings) -> str:
    base, minutes = settings.PUBLIC_URL, site.question_deadline_minutes
    may_answer = question.kind == Question.Kind.QUESTION or (row.person is not None and may(row.person, RESOLVE))
    context = {
        "question": question,
        "is_overdue": row.is_reminder,
        "answer_by": question.created_at + timedelta(minutes=minutes) if minutes else None,
        "base": base,
        "is_mine": row.person is not None,
        "may_answer": may_answer,
        "link": base + link_to(question, row.person) if base and row.person and may_answer else "",
        "link_days": LINK_DAYS,
    }
    return render_to_string("questions/mail.txt", context)


def link_to(question: Question, person: User) -> str:
    """The path of a page where this person answers this question, and does nothing else."""
    token = signing.dumps([str(question.pk), person.pk], salt=SALT)
    return reverse("question-link", args=[question.pk, token])


def person_of(question_id: UUID, token: str) -> User | None:
    """Whose link it is, while it holds: the question is open, and the link of these days."""
    try:
        signed = signing.loads(token, salt=SALT, max_age=timedelta(days=LINK_DAYS))
    except signing.BadSignature:
        return None
    if signed[0] != str(question_id) or not Question.objects.filter(pk=question_id, state="open").exists():
        return None
    return User.objects.filter(pk=signed[1], is_active=True).first()
