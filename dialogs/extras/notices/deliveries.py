"""The outbox: notices by mail, webhook and push are stored with the change they are about, and sent after its commit.

Each is sent at least once. If a worker dies on the way, another sends its notice again, and the sweeper finds what is
due.
"""

import json
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from dialogs.extras.notices import question_mail, web_push, webhook
from dialogs.models import Delivery, Dialog, PersonSettings, PushSubscription, Question, SiteSettings
from dialogs.store import wakeups
from dialogs.store.db_retry import leaving_what_is_locked
from remediation.models import RemediationRun

log = structlog.get_logger(__name__)

RETRY_AFTER = (10, 60, 300, 1_800, 7_200)  # seconds after each failed try; then it is given up
LEASE_SECONDS = 60  # longer than any try takes
KEPT_DAYS = 7
MOST_AT_ONCE = 100

OPENED, OVERDUE, CLOSED = "question.opened", "question.overdue", "question.closed"
LEVEL, REWRITTEN = "level.changed", "context.rewritten"


def question_opened(question: Question) -> None:
    site = SiteSettings.current()
    _call(site, OPENED, webhook.question_body(question), question)
    if person := _person_asked(question):
        _store(_mail(OPENED, question, person))
    _push(OPENED, question, web_push.browsers_to_reach(question))


def question_closed(question: Question) -> None:
    _call(SiteSettings.current(), CLOSED, webhook.question_body(question), question)


def level_changed(dialog: Dialog, level: str) -> None:
    _call(SiteSettings.current(), LEVEL, webhook.level_body(dialog, level))


def rewritten(dialog: Dialog, run: RemediationRun) -> None:
    """Notify of a rewrite. This costs no statement if there was no webhook when the dialog was read."""
    if dialog.has_webhook:
        _call(SiteSettings.current(), REWRITTEN, webhook.rewrite_body(dialog, run))


def escalate() -> int:
    """Notify again of questions that are open for longer than the site allows, and return their number."""
    site = SiteSettings.current()
    if not site.question_deadline_minutes:
        return 0
    overdue = Question.objects.filter(_overdue(site), state=Question.State.OPEN)
    if not (site.webhook_url or question_mail.is_on()):
        asked = web_push.ASKED_BY_PUSH if not site.asked_next else Q()
        overdue = overdue.filter(asked) if web_push.is_on() else overdue.none()
    results = list(overdue.select_related("dialog__agent", "dialog__owner")[:MOST_AT_ONCE])
    escalated = 0
    for question in results:
        with leaving_what_is_locked(question=str(question.pk)):
            escalated += _escalate(site, question)
    return escalated


def _overdue(site: SiteSettings) -> Q:
    """Return the condition on questions that are open for too long, or that were with the last person asked for too
    long, if another one follows.
    """
    result = Q(escalations=0, created_at__lt=Now() - timedelta(minutes=site.question_deadline_minutes or 0))
    for step, (_address, minutes) in enumerate(site.asked_next[:-1], 1):
        result |= Q(escalations=step, escalated_at__lt=Now() - timedelta(minutes=minutes))
    return result


@transaction.atomic
def _escalate(site: SiteSettings, question: Question) -> int:
    """Remind the owner the first time, and ask the next person who can be reached. Returns 0 if another sweeper was
    first, or nobody can be reached.
    """
    mails: list[Delivery] = []
    browsers: list[PushSubscription] = []
    if not question.escalations:
        mails = [_mail(OVERDUE, question, person)] if (person := _person_asked(question)) else []
        browsers = web_push.browsers_to_reach(question)
    step = question.escalations
    for address, _minutes in site.asked_next[step:]:
        step += 1
        following = question_mail.holder_of(address, question)
        if following == question.dialog.owner and (mails or browsers):
            break
        reached = web_push.browsers_to_reach(question, following) if following else []
        browsers += reached
        if question_mail.is_on():
            mails.append(_mail(OVERDUE, question, following, address))
        if reached or question_mail.is_on():
            break
    if not mails and not browsers and not site.webhook_url:
        return 0
    mine = Question.objects.filter(pk=question.pk, state=Question.State.OPEN, escalations=question.escalations)
    if not mine.update(escalated_at=Now(), escalations=max(step, 1)):
        return 0
    for mail in mails:
        _store(mail)
    _push(OVERDUE, question, browsers)
    _call(site, OVERDUE, webhook.question_body(question) | {"escalation": max(step, 1)}, question)
    return 1


def _mail(event: str, question: Question, person: User | None, address: str = "") -> Delivery:
    """Return an unsaved mail to this person, or to the ``address`` of somebody without an account."""
    mail = Delivery(channel=Delivery.Channel.MAIL, event=event, question=question, person=person)
    mail.body = "" if person else address
    return mail


def _person_asked(question: Question) -> User | None:
    """Return the dialog's owner if a mail can and may reach them."""
    owner = question.dialog.owner
    if not question_mail.is_on() or not owner.email or not owner.is_active:
        return None
    return None if PersonSettings.objects.filter(user=owner, question_mails=False).exists() else owner


def _push(event: str, question: Question, browsers: list[PushSubscription]) -> None:
    for browser in browsers:
        about = {"event": event, "question": question, "person_id": browser.user_id, "subscription": browser}
        _store(Delivery(channel=Delivery.Channel.PUSH, **about))


def _call(site: SiteSettings, event: str, body: dict[str, Any], question: Question | None = None) -> None:
    if site.webhook_url:
        content = json.dumps({"event": event, **body})
        _store(Delivery(channel=Delivery.Channel.WEBHOOK, event=event, question=question, body=content))


def _store(row: Delivery) -> None:
    row.save(force_insert=True)
    wakeups.deliver(row.pk)


# -- Sending -----------------------------------------------------------------------------------------------------------


SENDERS: dict[str, Callable[[Delivery], bool]] = {
    Delivery.Channel.MAIL: question_mail.send,
    Delivery.Channel.WEBHOOK: webhook.send,
    Delivery.Channel.PUSH: web_push.send,
}


def sweep() -> None:
    """Escalate questions that are overdue, and send what is due."""
    if escalated := escalate():
        log.info("questions_escalated", questions=escalated)
    wake_due()


def wake_due() -> None:
    """Send notices that were lost on their way to a worker, failed before, or were left by a worker that vanished."""
    due = Delivery.objects.filter(due_at__lte=Now()).order_by("due_at")
    for delivery_id in due.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        wakeups.deliver(delivery_id)


def deliver(delivery_id: int) -> None:
    """Send one notice, unless another worker sends or has sent it. Call it outside any transaction."""
    due = Delivery.objects.filter(pk=delivery_id, due_at__lte=Now())
    if not due.update(due_at=Now() + timedelta(seconds=LEASE_SECONDS), tries=F("tries") + 1):
        return
    rows = Delivery.objects.select_related("question__dialog__agent", "person", "subscription__user")
    row = rows.get(pk=delivery_id)
    this_try = Delivery.objects.filter(pk=delivery_id, tries=row.tries)  # none, once another worker tries again
    try:
        is_sent = SENDERS[row.channel](row)
    except (webhook.Failed, question_mail.Failed) as failed:
        pause = RETRY_AFTER[row.tries - 1] if failed.may_pass and row.tries <= len(RETRY_AFTER) else None
        log.warning(
            "notice_failed", channel=row.channel, notice=row.event, tries=row.tries, again_in=pause, error=str(failed)
        )
        this_try.update(due_at=None if pause is None else Now() + timedelta(seconds=pause), error=str(failed))
    else:
        this_try.update(due_at=None, sent_at=Now() if is_sent else None, error="", body="")


def drop_of(dialogs: Collection[UUID]) -> None:
    """Drop the notices of deleted dialogs, with their retries, in the transaction that deletes the dialogs."""
    due = Delivery.objects.filter(due_at__isnull=False)
    words = due.filter(question=None).values_list("pk", "body")
    about = [pk for pk, body in words if any(str(dialog) in body for dialog in dialogs)]
    due.filter(Q(question__dialog__in=dialogs) | Q(pk__in=about)).update(due_at=None, body="")


def delete_old() -> None:
    Delivery.objects.filter(due_at=None, created_at__lt=Now() - timedelta(days=KEPT_DAYS)).delete()
