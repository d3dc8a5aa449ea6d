"""Questions by Web Push: whose browsers are notified, of what, and when a subscription ends."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from dialogs.actions import questions
from dialogs.actions.questions import ASK_HUMAN
from dialogs.extras.notices import deliveries, web_push
from dialogs.extras.operations.dashboard import list_undelivered
from dialogs.models import Delivery, Dialog, PushSubscription, Question, SiteSettings
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import PASSWORD, UserFactory, make_dialog, send
from tests.doubles.push import Browser, PushService, push_service, text_of

pytestmark = pytest.mark.django_db(transaction=True)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[PushService]:
    """A push service that this process trusts and may call."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "push.pem"))
    settings.PRIVATE_PUSH = True
    with push_service(tmp_path) as running:
        yield running


def subscribed(service: PushService, client: Client) -> Browser:
    """A browser of theirs, subscribed as the script of the settings page does it."""
    browser = service.browser(web_push.public_key())
    answer = client.post("/settings/push/", browser.as_form(), headers={"User-Agent": FIREFOX}, follow=True)
    assert "Subscribed." in answer.content.decode()
    return browser


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or\nUSD? " * 60}}]}, {"text": "Thanks."})
    return make_dialog(name="Importer")


def ask(dialog: Dialog) -> Question:
    send(dialog, "Import it")
    return Question.objects.get(dialog=dialog, state="open")


def send_due(minutes_later: int = 0) -> None:
    past = timedelta(minutes=minutes_later)
    Delivery.objects.filter(due_at__isnull=False).update(due_at=F("due_at") - past)
    for pk in list(Delivery.objects.filter(due_at__lte=Now()).values_list("pk", flat=True)):
        deliveries.deliver(pk)


def test_each_browser_of_the_person_who_is_asked_is_notified(dialog: Dialog, service: PushService) -> None:
    client, stranger = browser_of(dialog.owner), browser_of(UserFactory.create(is_superuser=True))
    mine, other = [subscribed(service, client) for _ in range(2)], subscribed(service, stranger)
    question = ask(dialog)
    send_due()
    assert (service.refusals, other.shown) == ([], [])
    for browser in mine:
        [(text, headers)] = browser.shown
        shown = json.loads(text)
        assert (shown["path"], shown["tag"], shown["again"]) == (f"/q4h/{question.pk}/", str(question.pk), False)
        assert shown["title"].startswith("Needs you: Importer in “")
        assert shown["body"].startswith("EUR or USD? EUR") and len(shown["body"]) == 300 and shown["body"][-1] == "…"
        assert (headers["urgency"], headers["ttl"], headers["topic"]) == ("normal", "86400", question.pk.hex)
    assert client.get(shown["path"]).status_code == 200
    assert Delivery.objects.filter(sent_at=None).count() == 0
    page = client.get("/settings/").content.decode()
    assert page.count("Firefox on Linux<") == 1 and page.count("(this browser)") == 1
    assert not any(browser.address in page for browser in mine)


def test_an_overdue_question_is_pushed_again_without_mail_or_webhook(dialog: Dialog, service: PushService) -> None:
    browser = subscribed(service, browser_of(dialog.owner))
    SiteSettings.objects.update(question_deadline_minutes=30)
    question = ask(dialog)
    send_due()
    assert deliveries.escalate() == 0
    Question.objects.update(created_at=F("created_at") - timedelta(minutes=31))
    assert (deliveries.escalate(), deliveries.escalate()) == (1, 0)
    send_due()
    text, headers = browser.shown[1]
    assert json.loads(text)["title"].startswith("Still waiting for you: Importer")
    assert (json.loads(text)["again"], headers["urgency"], headers["topic"]) == (True, "high", question.pk.hex)


def test_nobody_to_reach_is_not_escalated(dialog: Dialog) -> None:
    SiteSettings.objects.create(question_deadline_minutes=30)
    ask(dialog)
    Question.objects.update(created_at=F("created_at") - timedelta(minutes=31))
    assert deliveries.escalate() == 0
    assert Question.objects.get().escalated_at is None


@pytest.mark.parametrize("change", ["answered", "inactive", "another person's", "removed", "off"])
def test_what_is_no_longer_right_is_not_sent(dialog: Dialog, service: PushService, settings: Any, change: str) -> None:
    client = browser_of(dialog.owner)
    browser = subscribed(service, client)
    question = ask(dialog)
    if change == "answered":
        questions.answer(question.pk, dialog.owner, "EUR")
    elif change == "inactive":
        User.objects.update(is_active=False)
    elif change == "another person's":
        browser_of(UserFactory.create()).post("/settings/push/", browser.as_form())
    elif change == "removed":
        client.post(f"/settings/push/{PushSubscription.objects.get().pk}/remove/")
    else:
        settings.WEB_PUSH = False
    send_due()
    assert (browser.shown, service.refusals, list_undelivered()) == ([], [], [])
    assert not Delivery.objects.filter(due_at__isnull=False).exists()


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_is_gone_is_forgotten(dialog: Dialog, service: PushService, status: int) -> None:
    client = browser_of(dialog.owner)
    gone, there = [subscribed(service, client) for _ in range(2)]
    gone.is_gone = status == 410
    if status == 404:
        service.browsers = {path: browser for path, browser in service.browsers.items() if browser is there}
    ask(dialog)
    send_due()
    assert len(there.shown) == 1
    assert PushSubscription.objects.get().address == there.address
    assert list_undelivered() == []


def test_a_busy_push_service_is_asked_again(dialog: Dialog, service: PushService) -> None:
    browser = subscribed(service, browser_of(dialog.owner))
    service.fails = [429, 503]
    ask(dialog)
    send_due()
    assert [(result.channel, result.error) for result in list_undelivered()] == [
        ("push", "The push service answered with HTTP 429.")
    ]
    send_due(1)
    assert not browser.shown
    send_due(5)
    assert (len(browser.shown), list_undelivered()) == (1, [])
    browser.application_key = "another"
    Question.objects.update(escalations=0)
    row = Delivery.objects.create(
        channel="push",
        event="question.opened",
        question=Question.objects.get(),
        person=dialog.owner,
        subscription=PushSubscription.objects.get(),
    )
    send_due()
    row.refresh_from_db()
    assert (row.due_at, row.error) == (None, "The push service answered with HTTP 403.")
    assert PushSubscription.objects.exists()


def test_a_subscription_ends_with_the_login_of_its_browser(service: PushService) -> None:
    person, other = UserFactory.create(), UserFactory.create()
    client = browser_of(person)
    subscribed(service, client)
    client.cookies.pop("sessionid")  # the session ends by itself
    assert PushSubscription.objects.count() == 1
    client.post("/login/", {"username": person.username, "password": PASSWORD})
    assert PushSubscription.objects.count() == 1
    client.post("/logout/")
    assert PushSubscription.objects.count() == 0
    client.post("/login/", {"username": person.username, "password": PASSWORD})
    subscribed(service, client)
    client.cookies.pop("sessionid")
    client.post("/login/", {"username": other.username, "password": PASSWORD})
    assert PushSubscription.objects.count() == 0


def test_what_a_browser_says_is_bounded_and_checked(service: PushService, settings: Any) -> None:
    person = UserFactory.create()
    client, good = browser_of(person), service.browser(web_push.public_key()).as_form()

    def refusal(**changed: str) -> str:
        page = client.post("/settings/push/", {**good, **changed}, follow=True).content.decode()
        return page.partition("Not subscribed. ")[2].partition("<")[0]

    assert "has at most 1,000 ASCII" in refusal(address=f"https://127.0.0.1/{'x' * 1_000}")
    assert "begins with https://" in refusal(address=good["address"].replace("https", "http"))
    assert "begins with https://" in refusal(address=good["address"] + "\r\nX: y")
    assert "name and password" in refusal(address="https://a:b@127.0.0.1/")
    assert "keys cannot be used" in refusal(key="x" * 87)
    assert "keys cannot be used" in refusal(secret=text_of(b"s" * 17))
    assert "keys cannot be used" in refusal(key="💥" * 100_000)
    assert refusal() == ""
    stored = PushSubscription.objects.values("user_id", "key", "secret").get()
    PushSubscription.objects.bulk_create(PushSubscription(address=f"https://a/{n}", **stored) for n in range(9))
    assert refusal() == "", "the same browser again"
    PushSubscription.objects.filter(address=good["address"]).update(address="https://a/another")
    assert "more than 10 browsers" in refusal()
    settings.PRIVATE_PUSH = False
    assert "lies on this machine" in refusal()
    settings.WEB_PUSH = False
    assert "switched them off" in refusal()
    assert "has switched them off" in client.get("/settings/").content.decode()
    assert "push-switch" not in client.get("/settings/").content.decode()
    assert PushSubscription.objects.count() == 10


def test_an_inner_address_is_not_called_later_either(dialog: Dialog, service: PushService, settings: Any) -> None:
    """By then its name may lead elsewhere."""
    browser = subscribed(service, browser_of(dialog.owner))
    settings.PRIVATE_PUSH = False
    ask(dialog)
    send_due()
    assert (browser.shown, "lies on this machine" in list_undelivered()[0].error) == ([], True)


def test_nobody_removes_the_browser_of_another(service: PushService) -> None:
    subscribed(service, browser_of(UserFactory.create()))
    row = PushSubscription.objects.get()
    browser_of(UserFactory.create()).post(f"/settings/push/{row.pk}/remove/")
    forged = browser_of(UserFactory.create())
    forged.cookies["sessionid_push"] = str(row.pk)
    forged.post("/logout/")
    assert PushSubscription.objects.count() == 1


def test_the_push_key_is_sealed_and_follows_the_signing_key(service: PushService, settings: Any) -> None:
    subscribed(service, browser_of(UserFactory.create()))
    key, sealed = web_push.public_key(), SiteSettings.current().sealed_push_key
    assert (web_push.public_key(), len(key), key in sealed) == (key, 87, False)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another, long enough for anybody", [settings.SECRET_KEY]
    assert web_push.public_key() == key
    settings.SECRET_KEY_FALLBACKS = []
    new = web_push.public_key()
    assert (new != key, web_push.public_key() == new, PushSubscription.objects.count()) == (True, True, 0)


def test_without_its_signing_key_a_notice_waits(dialog: Dialog, service: PushService, settings: Any) -> None:
    subscribed(service, browser_of(dialog.owner))
    ask(dialog)
    settings.SECRET_KEY = "of a worker that was told another"
    send_due()
    assert [(result.tries_again, "SECRET_KEY_FALLBACKS" in result.error) for result in list_undelivered()] == [
        (True, True)
    ]


def test_the_service_worker_is_never_served_from_a_cache() -> None:
    answer = Client().get("/push-worker.js")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert answer["Cache-Control"] == "no-cache"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert b"showNotification" in answer.content


CALLED = {
    FIREFOX: "Firefox on Linux",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0 Safari/537.36 "
    "Edg/142.0": "Edge on Windows",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/142.0 Mobile Safari/537.36": "Chrome on Android",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.5 "
    "Safari/605.1.15": "Safari on macOS",
    "": "A browser",
}


def test_browsers_are_called_as_their_owners_call_them() -> None:
    assert {user_agent: web_push.browser_name(user_agent) for user_agent in CALLED} == CALLED


def test_a_push_service_learns_whom_to_write_to(settings: Any) -> None:
    settings.MAIL_FROM, settings.PUBLIC_URL = "Dominds <d@example.org>", "https://d.example.org"
    assert web_push._contact() == "mailto:d@example.org"
    settings.MAIL_FROM = ""
    assert web_push._contact() == "https://d.example.org"
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "http://d.example.org", [".example.org"]
    assert web_push._contact() == "https://example.org"
