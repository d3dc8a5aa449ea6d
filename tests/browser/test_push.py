"""Push notifications: the switch in the settings, and the service worker. No browser of a test reaches a real push
service: where one would answer, ``SUBSCRIBES`` does in its place."""

import json
from typing import Any

from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, Worker, expect

from dialogs.models import PushSubscription, Question
from tests.browser.conftest import LogIn, eventually_on
from tests.doubles.push import Browser
from tests.harness.stack import Stack, eventually

# A browser whose push service gave it this address and these keys.
SUBSCRIBES = """({ address, key, secret }) => {
  const found = () => localStorage.getItem("pushed") && {
    toJSON: () => ({ endpoint: address, keys: { p256dh: key, auth: secret } }),
    unsubscribe: async () => localStorage.removeItem("pushed"),
  };
  PushManager.prototype.getSubscription = async () => found();
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly || applicationServerKey.length !== 87) throw new TypeError("options");
    localStorage.setItem("pushed", "yes");
    return found();
  };
}"""
# The headless shell shows no notifications, whatever is granted: this notes what would be shown,
# and where a click leads.
NOTES = """() => {
  self.shown = []; self.led = [];
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    self.shown.push({ title, ...options });
  };
  Clients.prototype.openWindow = async (address) => { self.led.push(`opened ${address}`); };
  WindowClient.prototype.focus = async function () { self.led.push(`focused ${this.url}`); };
}"""
CLICK = """async () => {
  const event = new ExtendableEvent("notificationclick");
  event.notification = { data: self.shown.at(-1).data, close: () => self.led.push("closed") };
  const works = [];
  event.waitUntil = (work) => works.push(work);
  self.dispatchEvent(event);
  await Promise.all(works);
  return self.led.splice(0);
}"""


def test_the_switch_says_so_where_the_browser_refuses(stack: Stack, person: User, page: Page, log_in: LogIn) -> None:
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/settings/")
    section = page.locator("#push")
    expect(section).to_contain_text("This browser refuses notifications of this site.")
    expect(section.get_by_role("switch", name="Notify this browser")).to_be_disabled()
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then((found) => found.length)") == 0
    page.add_init_script("delete window.PushManager")
    page.reload()
    expect(section).to_contain_text("This browser has no push notifications")


def test_a_browser_subscribes_once_its_person_switches_it_on(
    stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    # An address outside, which nothing is sent to, and a permission that is asked for first.
    given = Browser("https://8.8.8.8/push/a", "").as_form()
    page.add_init_script("""
        let permission = localStorage.getItem("permission") ?? "default";
        Object.defineProperty(Notification, "permission", { get: () => permission });
        Notification.requestPermission = async () => {
          localStorage.setItem("permission", permission = localStorage.getItem("next") ?? "denied");
          return permission;
        };""")
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/settings/")
    section, switch = page.locator("#push"), page.get_by_role("switch", name="Notify this browser")
    switch.click()
    expect(section).to_contain_text("This browser refuses notifications")
    expect(switch).not_to_be_checked()

    page.evaluate("localStorage.setItem('permission', 'default'); localStorage.setItem('next', 'granted')")
    page.reload()
    with page.expect_console_message(lambda message: "does not support the Push API" in message.text):
        switch.click()  # the browser of a test has no push service, and says so once
    expect(section).to_contain_text("did not get an address from its push service", timeout=30_000)
    complaints.clear()

    page.add_init_script(f"({SUBSCRIBES})({json.dumps(given)})")
    page.reload()
    switch.click()
    expect(page.locator(".messages")).to_contain_text("Subscribed.")
    expect(switch).to_be_checked()
    expect(section.locator("li")).to_contain_text("(this browser)")
    row = PushSubscription.objects.get(user=person)
    assert {"address": row.address, "key": row.key, "secret": row.secret} == given

    page.evaluate("localStorage.removeItem('pushed')")
    page.reload()
    expect(section).to_contain_text("has dropped its subscription")
    page.evaluate("localStorage.setItem('pushed', 'yes')")
    page.reload()
    switch.click()
    expect(page.locator(".messages")).to_contain_text("Removed.")
    assert not PushSubscription.objects.filter(user=person).exists()
    assert page.evaluate("localStorage.getItem('pushed')") is None


def test_a_push_is_shown_and_leads_to_the_question(
    stack: Stack, person: User, page: Page, context: BrowserContext, log_in: LogIn, complaints: list[str]
) -> None:
    with stack.api_as(person) as api:
        dialog = api.post("/api/dialogs", json={"agent": "asks"}).json()["id"]
        api.post(f"/api/dialogs/{dialog}/messages", json={"text": "Please ask"})
    question = eventually(lambda: Question.objects.filter(dialog_id=dialog, state="open").first())
    log_in(context, person)
    page.goto(f"{stack.base_url}/settings/")
    worker, push = registered(page, context)
    worker.evaluate(NOTES)
    path = f"/q4h/{question.pk}/"
    shown = {"title": "Needs you", "body": "Which currency?", "path": path, "tag": str(question.pk), "again": True}
    push(json.dumps(shown))
    eventually(lambda: worker.evaluate("self.shown.length") == 1)
    assert worker.evaluate("self.shown[0]") == {
        "title": "Needs you",
        "body": "Which currency?",
        "tag": str(question.pk),
        "renotify": True,
        "data": {"path": path},
    }
    assert worker.evaluate(CLICK) == ["closed", f"opened {stack.base_url}{path}"]
    page.goto(f"{stack.base_url}{path}#answer")
    expect(page.locator("main")).to_contain_text("Which currency?")
    assert worker.evaluate(CLICK) == ["closed", f"focused {stack.base_url}{path}#answer"]


def registered(page: Page, context: BrowserContext) -> tuple[Worker, Any]:
    """The worker, registered as the settings page does it, and what hands it a message as the browser does."""
    session, result = context.new_cdp_session(page), list[dict[str, Any]]()
    session.on("ServiceWorker.workerRegistrationUpdated", lambda message: result.extend(message["registrations"]))
    session.send("ServiceWorker.enable")
    with context.expect_event("serviceworker") as started:
        page.evaluate("navigator.serviceWorker.register(document.getElementById('push-form').dataset.worker)")
    page.evaluate("navigator.serviceWorker.ready.then(() => 1)")
    eventually_on(page, lambda: result)
    assert result[0]["scopeURL"] == page.url.removesuffix("settings/")

    def push(text: str) -> None:
        origin = result[0]["scopeURL"].rstrip("/")
        given = {"origin": origin, "registrationId": result[0]["registrationId"], "data": text}
        session.send("ServiceWorker.deliverPushMessage", given)

    return started.value, push
