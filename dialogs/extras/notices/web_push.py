"""Notices of questions (Q4H) by Web Push, to browsers in which no page is open, and the subscriptions of browsers."""

import json
import re
import time
from email.utils import parseaddr
from secrets import compare_digest

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse

from dialogs.errors import Invalid
from dialogs.extras.notices import question_mail, webhook
from dialogs.models import Delivery, PushSubscription, Question, SiteSettings
from dialogs.permissions import may_see
from dominds import budgets, outbound_http, sealing
from dominds.web import web_push

log = structlog.get_logger(__name__)

KEPT_SECONDS = 24 * 3600  # how long a push service keeps a notice for a browser that is away
GONE = (404, 410)  # statuses for a browser that took its subscription back, or was not seen for months
MOST_TITLE, MOST_TEXT = 120, 300  # characters; a screen shows fewer, and six bytes for each still fit
BROWSERS = {  # parts of user agents, in this order because most browsers name others as well
    "Edg": "Edge",
    "OPR": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def is_on() -> bool:
    return bool(settings.WEB_PUSH)


# -- Subscriptions -----------------------------------------------------------------------------------------------------


def subscribe(user: User, *, address: str, key: str, secret: str, browser: str) -> PushSubscription:
    """Subscribe a browser for this person, and for nobody else from now on. Raises ``Invalid``.

    The address comes from the browser, which may be anybody's program, so it is checked here, and again at each call.
    Another person's address is taken over only with the keys that belong to it, which only that browser has.
    """
    if not is_on():
        raise Invalid("This server sends no push notifications: its operator has switched them off.")
    given = {"user": user, "browser": browser_name(browser), **_check_keys(address, key, secret)}
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # locks, so that one subscription at a time is counted
        others = PushSubscription.objects.filter(user=user).exclude(address=address)
        if others.count() >= budgets.PUSH_BROWSERS.most:
            raise Invalid(
                f"{budgets.PUSH_BROWSERS.sentence('You cannot subscribe')} Remove one that you no longer use."
            )
        standing = PushSubscription.objects.select_for_update().filter(address=address).exclude(user=user).first()
        if standing is not None and not compare_digest(standing.secret, str(given["secret"])):
            raise Invalid("This browser is subscribed for somebody else. Subscribe it anew.")
        return PushSubscription.objects.update_or_create(address=address, defaults=given)[0]


def _check_keys(address: str, key: str, secret: str) -> dict[str, str]:
    """Check the keys, and return them in stored form."""
    most = PushSubscription.ADDRESS_CHARS
    if len(address) > most or not re.fullmatch(r"https://[!-~]+", address):
        raise Invalid(f"A push service's address begins with https:// and has at most {most:,} ASCII characters.")
    try:
        outbound_http.check(address, allow_private=settings.PRIVATE_PUSH)
    except outbound_http.Refused as refused:
        raise Invalid(f"The push service may not be called. {refused}") from refused
    try:
        point, word = web_push.from_text(key), web_push.from_text(secret)
        web_push.check_browser_keys(point, word)
    except ValueError as error:
        raise Invalid(f"The browser's keys cannot be used: {error}.") from error
    return {"key": web_push.as_text(point), "secret": web_push.as_text(word)}


def browser_name(user_agent: str) -> str:
    """Return a browser's name as its owner would call it."""
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "A browser")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser


def subscriptions_of(user: User) -> QuerySet[PushSubscription]:
    return PushSubscription.objects.filter(user=user)


ASKED_BY_PUSH = Exists(PushSubscription.objects.filter(user=OuterRef("dialog__owner")))  # a condition on questions


def browsers_to_reach(question: Question, person: User | None = None) -> list[PushSubscription]:
    """Return the browsers of this person, or else of the dialog's owner, who is asked first."""
    asked = person or question.dialog.owner
    return list(subscriptions_of(asked)) if is_on() and asked.is_active else []


# -- The server's key pair ---------------------------------------------------------------------------------------------


def public_key() -> str:
    """Return the public key with which browsers subscribe, of the pair that is made once for the site.

    A key that was sealed under a lost signing key is replaced, and with it the subscriptions, which are valid for it
    alone. Nobody gets here before they log in under the new signing key.
    """
    try:
        key = _key()
    except sealing.Unreadable:
        key = None
    return web_push.as_text(web_push.point_of(key or _make_key()))


def _key() -> EllipticCurvePrivateKey | None:
    """Return the private key. Raises ``sealing.Unreadable``."""
    sealed = SiteSettings.current().sealed_push_key
    return web_push.read_key(sealing.unseal(sealed)) if sealed else None


@transaction.atomic
def _make_key() -> EllipticCurvePrivateKey:
    SiteSettings.objects.get_or_create(singleton=True)
    site = SiteSettings.objects.select_for_update().get(singleton=True)
    try:
        if key := _key():
            return key  # another process made it first
    except sealing.Unreadable:
        lost, _ = PushSubscription.objects.all().delete()
        log.warning("push_key_replaced", reason="stored under another SECRET_KEY", subscriptions=lost)
    kept = web_push.new_key()
    site.sealed_push_key = sealing.seal(kept)
    site.save(update_fields=["sealed_push_key"])
    return web_push.read_key(kept)


# -- Sending -----------------------------------------------------------------------------------------------------------


def send(row: Delivery) -> bool:
    """Send the notice, or return False if it is no longer needed. Raises ``webhook.Failed``."""
    question, browser = row.question, row.subscription
    if question is None or browser is None or question.state != Question.State.OPEN or not is_on():
        return False
    if browser.user_id != row.person_id or not browser.user.is_active or not may_see(browser.user, question.dialog):
        return False
    with question_mail.as_read_by(browser.user):
        text = _text(row, question)
    status = webhook.post(
        browser.address,
        web_push.encrypt(text, web_push.from_text(browser.key), web_push.from_text(browser.secret)),
        {
            "Authorization": web_push.authorization(_signing_key(), browser.address, _contact(), int(time.time())),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(KEPT_SECONDS),
            "Urgency": "high" if row.is_reminder else "normal",
            "Topic": question.pk.hex,  # a push service keeps only the newest waiting notice of one topic
        },
        allow_private=settings.PRIVATE_PUSH,
    )
    if status in GONE:
        log.info("push_subscription_gone", person=browser.user_id, browser=browser.browser, status=status)
        browser.delete()
        return False
    webhook.check_status("The push service", status)
    return True


def _signing_key() -> EllipticCurvePrivateKey:
    try:
        key = _key()
    except sealing.Unreadable:
        raise webhook.Failed(
            "The key for push notifications was stored under another SECRET_KEY: see SECRET_KEY_FALLBACKS.",
            may_pass=True,
        ) from None
    if key is None:
        raise webhook.Failed(
            "There is no key for push notifications: each browser must subscribe again.", may_pass=False
        )
    return key


def _contact() -> str:
    """Return an address at which a push service can reach the operator."""
    if settings.MAIL_FROM:
        return f"mailto:{parseaddr(settings.MAIL_FROM)[1]}"
    if settings.PUBLIC_URL.startswith("https://"):
        return str(settings.PUBLIC_URL)
    return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.').replace('*', 'localhost')}"


def _text(row: Delivery, question: Question) -> bytes:
    shown = {
        "title": _shorten(question_mail.title_of(row, question), MOST_TITLE),
        "body": _shorten(question_mail.text_of(question), MOST_TEXT),
        "path": reverse("question", args=[question.pk]),
        "tag": str(question.pk),  # replaces a notice about the same question that is still shown
        "again": row.is_reminder,
    }
    return json.dumps(shown, ensure_ascii=False).encode()


def _shorten(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
