"""Mails about questions (Q4H), with a signed link by which the person who was asked can answer without a login."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from dialogs.models import Delivery, PersonSettings, Question, SiteSettings
from dialogs.permissions import RESOLVE, may, may_act, may_see
from dominds.unreachable import plain_reason

SALT = "dialogs.question-mail"
LINK_DAYS = 7


class Failed(Exception):
    """Raised when the mail server did not take a mail. Another try may succeed, whatever the reason."""

    may_pass = True


def is_on() -> bool:
    return bool(settings.MAIL_FROM)


def send(row: Delivery) -> bool:
    """Write and send the mail, or return False if it is no longer needed. Raises ``Failed``."""
    question, site = row.question, SiteSettings.current()
    address = row.person.email if row.person else row.body
    if question is None or question.state != Question.State.OPEN or not address or not is_on():
        return False
    if row.person is None and address not in [asked for asked, _minutes in site.asked_next]:
        return False
    if row.person is not None and not (row.person.is_active and may_see(row.person, question.dialog)):
        return False
    with as_read_by(row.person):
        subject = " ".join(title_of(row, question).split())
        mail = EmailMessage(subject[:200], _text(row, question, site), settings.MAIL_FROM, [address])
        mail.extra_headers = {
            "Auto-Submitted": "auto-generated",
            "Content-Language": translation.get_language() or settings.LANGUAGE_CODE,
        }
    try:
        mail.send()
    except (OSError, SMTPException, ValueError) as error:
        raise Failed(plain_reason(str(error)) or type(error).__name__) from error
    return True


@contextmanager
def as_read_by(person: User | None) -> Iterator[None]:
    """Write in the language and time zone of the person's pages; in English and UTC for a person without any."""
    own = PersonSettings.objects.filter(user=person).first() if person else None
    language = (own.language or own.seen_language) if own else ""
    with translation.override(language or settings.LANGUAGE_CODE), timezone.override(own.zone_in_force if own else UTC):
        yield


def title_of(row: Delivery, question: Question) -> str:
    text = _("Still waiting for you: {who} in “{dialog}”") if row.is_reminder else _("Needs you: {who} in “{dialog}”")
    return text.format(who=_who(question), dialog=question.dialog)


def text_of(question: Question) -> str:
    """Return a question's text. A question that the runtime wrote is in the reader's language."""
    if not question.approves:
        return question.text
    return f"{_(Question.APPROVAL).format(tool=question.tool)}\n\n{question.arguments}"


def _who(question: Question) -> str:
    return _("a program") if question.is_from_outside else str(question.dialog.agent)


def _text(row: Delivery, question: Question, site: SiteSettings) -> str:
    base = settings.PUBLIC_URL
    person, dialog = row.person, question.dialog
    is_ordinary = question.kind == Question.Kind.QUESTION
    may_answer = person is None or (may_act(person, dialog) if is_ordinary else may(person, RESOLVE))
    context = {
        "question": question,
        "text": text_of(question),
        "who": _who(question),
        "dialog": dialog,
        "is_ordinary": is_ordinary,
        "zone": timezone.get_current_timezone_name(),
        "is_overdue": row.is_reminder,
        "answer_by": _answer_by(row, question, site),
        "base": base,
        "is_mine": person is not None and person.pk == dialog.owner_id,
        "is_known": person is not None,
        "may_answer": may_answer,
        "link": base + link_to(question, person) if base and person and may_answer else "",
        "question_at": base + reverse("question", args=[question.pk]),
        "dialog_at": base + reverse("dialog", args=[dialog.pk]),
        "settings_at": base + reverse("settings"),
        "link_days": LINK_DAYS,
    }
    return render_to_string("questions/mail.txt", context)


def _answer_by(row: Delivery, question: Question, site: SiteSettings) -> datetime | None:
    """Return when people are reminded or the next one is asked, or None if nobody is."""
    minutes, since = site.question_deadline_minutes, question.created_at
    if row.is_reminder and question.escalated_at:
        has_next = question.escalations < len(site.asked_next)
        minutes = site.asked_next[question.escalations - 1][1] if has_next else None
        since = question.escalated_at
    return since + timedelta(minutes=minutes) if minutes else None


def link_to(question: Question, person: User) -> str:
    """Return the path of a page where this person can answer this question, and do nothing else."""
    token = signing.dumps([str(question.pk), person.pk], salt=SALT)
    return reverse("question-link", args=[question.pk, token])


def holder_of(address: str, question: Question) -> User | None:
    """Return the person with this address, if exactly one account has it and may see the dialog.

    Overdue questions go to this address. Its person answers by a link of their own.
    """
    holders = list(User.objects.filter(email__iexact=address, is_active=True)[:2])
    return holders[0] if len(holders) == 1 and may_see(holders[0], question.dialog) else None


def person_of(question_id: UUID, token: str) -> User | None:
    """Return the person of the link as long as it is valid: the question is open, and the link not too old."""
    if not Question.objects.filter(pk=question_id, state=Question.State.OPEN).exists():
        return None
    return _holder(question_id, token)


def closed_meanwhile(question_id: UUID, token: str) -> Question | None:
    """Return the question behind a mailed link if it has been closed since, and the holder may see how it ended."""
    person = _holder(question_id, token)
    rows = Question.objects.exclude(state=Question.State.OPEN).select_related("dialog", "resolved_by")
    question = rows.filter(pk=question_id, dialog__removed_at=None).first() if person else None
    return question if question and person and may_see(person, question.dialog) else None


def _holder(question_id: UUID, token: str) -> User | None:
    try:
        signed = signing.loads(token, salt=SALT, max_age=timedelta(days=LINK_DAYS))
    except signing.BadSignature:
        return None
    return User.objects.filter(pk=signed[1], is_active=True).first() if signed[0] == str(question_id) else None
