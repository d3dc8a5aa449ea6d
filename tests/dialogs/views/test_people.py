"""Logging in, settings and keys, without a browser."""

import html
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from dialogs.accounts import api_keys
from dialogs.context.config import current_config
from dialogs.context.config import problems as problems_of_file
from dialogs.models import Agent, ApiKey, PersonSettings, PromptTemplate
from dialogs.store.wakeups import client as redis_client
from remediation.config import ContextConfig
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_visitor_makes_the_administrator_once() -> None:
    client = Client()
    assert client.get("/login/")["Location"] == "/setup/"
    form = {"username": "ada", "password1": "correct horse battery", "password2": "correct horse battery"}
    assert client.post("/setup/", {**form, "password2": "other"}).status_code == 200
    assert client.post("/setup/", form)["Location"] == "/"
    ada = User.objects.get()
    assert ada.is_superuser
    assert ada.is_staff
    assert Client().post("/setup/", {**form, "username": "eve"})["Location"] == "/login/"
    assert User.objects.count() == 1


def test_logging_in_works_and_failures_are_slowed_down() -> None:
    user = UserFactory.create(is_superuser=True)
    client = Client()
    assert client.post("/login/", {"username": user.username, "password": "a long enough password"})["Location"] == "/"
    eve = Client()
    for _ in range(10):
        assert eve.post("/login/", {"username": user.username, "password": "wrong"}).status_code == 200
    answer = eve.post("/login/", {"username": user.username, "password": "a long enough password"})
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0


def test_attempts_are_counted_for_a_minute_from_the_first_on() -> None:
    Client().post("/login/", {"username": "eve", "password": "wrong"}, REMOTE_ADDR="10.9.8.7")
    (key,) = redis_client().scan_iter("dominds:login:address:10.9.8.7")
    redis_client().expire(key, 30)  # as if it had been half a minute ago
    Client().post("/login/", {"username": "eve", "password": "wrong"}, REMOTE_ADDR="10.9.8.7")
    assert 0 < redis_client().ttl(key) <= 30
    assert redis_client().get(key) == b"2"


def passwords(number: int, username: str, address: str = "127.0.0.1") -> list[HttpResponse]:
    """The answers to so many wrong passwords, sent at once from one address, or from one each with ``10.0.0.*``."""

    def attempt(at: int) -> Any:
        try:
            given = {"username": username, "password": f"wrong {at}"}
            return Client().post("/login/", given, REMOTE_ADDR=address.replace("*", str(at)))
        finally:
            connection.close()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(attempt, range(number)))


class SlowHasher(PBKDF2PasswordHasher):
    """Counts how many passwords it checks, and how many at once."""

    algorithm = "slow"
    iterations = 1
    lock = threading.Lock()
    running = most = checked = 0

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        cls = SlowHasher
        with self.lock:
            cls.running, cls.checked = cls.running + 1, cls.checked + 1
            cls.most = max(cls.most, cls.running)
        time.sleep(0.05)
        with self.lock:
            cls.running -= 1
        encoded: str = super().encode(password, salt, iterations)
        return encoded


@pytest.fixture
def slow_user(settings: Any) -> User:
    settings.PASSWORD_HASHERS = [f"{__name__}.SlowHasher"]
    user = UserFactory.create(is_superuser=True)
    user.set_password("a long enough password")
    user.save()
    SlowHasher.most = SlowHasher.checked = 0
    return user


def test_many_wrong_passwords_at_once_are_hardly_hashed(slow_user: User) -> None:
    answers = passwords(80, slow_user.username)
    assert SlowHasher.checked <= 10
    assert SlowHasher.most <= 2
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 429, 503}
    assert statuses[200] <= 10
    assert all(int(answer["Retry-After"]) > 0 for answer in answers if answer.status_code != 200)


def test_one_account_is_not_tried_from_many_addresses(slow_user: User) -> None:
    answers = passwords(60, slow_user.username, "10.0.0.*")
    assert SlowHasher.checked <= 20
    assert {answer.status_code for answer in answers} <= {200, 429, 503}
    other = Client().post("/login/", {"username": "somebody else", "password": "x"}, REMOTE_ADDR="10.0.1.1")
    assert other.status_code == 200


def test_right_passwords_do_not_count_against_an_office_behind_one_address(slow_user: User) -> None:
    given = {"username": slow_user.username, "password": "a long enough password"}
    assert [Client().post("/login/", given).status_code for _ in range(25)] == [302] * 25


def test_the_admins_login_is_within_the_same_limits(slow_user: User) -> None:
    passwords(20, slow_user.username)
    answer = Client().post("/admin/login/", {"username": slow_user.username, "password": "wrong"})
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0


def test_nobody_is_sent_away_to_another_site_after_the_login() -> None:
    user = UserFactory.create(is_superuser=True)
    given = {"username": user.username, "password": "a long enough password", "next": "https://evil.example/"}
    assert Client().post("/login/", given)["Location"] == "/"


def test_a_link_does_not_log_out() -> None:
    client = browser_of(UserFactory.create())
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302
    assert client.get("/").status_code == 302


def test_settings_are_kept_and_bad_ones_refused() -> None:
    user = UserFactory.create()
    client = browser_of(user)
    client.post("/settings/appearance/", {"theme": "dark", "notifications": "on"})
    given = {"show_breaking_progress": "on", "progress_detail": "detailed", "auto_hide_seconds": "7"}
    client.post("/settings/context-display/", given)
    own = PersonSettings.objects.get(user=user)
    assert (own.theme, own.notifications, own.auto_hide_seconds, own.highlight_p1) == ("dark", True, 7, False)
    assert 'data-theme="dark"' in client.get("/settings/").content.decode()
    assert client.post("/settings/context-display/", {**given, "auto_hide_seconds": "11"}).status_code == 400
    assert client.post("/settings/appearance/", {"theme": "pink"}).status_code == 400


def test_an_api_key_is_shown_once_and_can_be_revoked() -> None:
    user = UserFactory.create()
    client = browser_of(user)
    page = client.post("/settings/keys/", {"name": "laptop"})
    assert page["Cache-Control"] == "no-store"
    key = re.search(r'id="new-key">([^<]+)<', page.content.decode())
    assert key is not None
    assert api_keys.owner_of(key[1]) == user
    assert key[1] not in client.get("/settings/keys/").content.decode()
    row = ApiKey.objects.get(owner=user)
    browser_of(UserFactory.create()).post(f"/settings/keys/{row.pk}/revoke/")
    assert api_keys.owner_of(key[1]) == user
    client.post(f"/settings/keys/{row.pk}/revoke/")
    assert api_keys.owner_of(key[1]) is None


def test_a_changed_password_ends_other_sessions_and_keeps_this_one() -> None:
    user = UserFactory.create()
    here, there = browser_of(user), browser_of(user)
    given = {
        "old_password": "a long enough password",
        "new_password1": "another long one",
        "new_password2": "another long one",
    }
    assert here.post("/settings/password/", {**given, "old_password": "wrong"}).status_code == 400
    assert here.post("/settings/password/", given).status_code == 302
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302


def test_an_old_password_is_guessed_no_faster_in_the_settings(slow_user: User) -> None:
    client, limit = browser_of(slow_user), "dominds:login:address:127.0.0.1"
    given = {"new_password1": "another long one", "new_password2": "another long one"}
    assert client.post("/settings/password/", {**given, "old_password": "wrong"}).status_code == 400
    assert redis_client().get(limit) == b"1"
    redis_client().set(limit, 10, ex=60)
    answer = client.post("/settings/password/", {**given, "old_password": "a long enough password"})
    assert (answer.status_code, int(answer["Retry-After"]) > 0) == (429, True)
    assert "Too many attempts. Try again in" in answer.content.decode()
    assert client.get("/").status_code == 200  # the session stands, and so the password


def test_only_staff_choose_the_pruning_agent() -> None:
    agent: Agent = AgentFactory.create()
    browser_of(UserFactory.create()).post("/settings/site/", {"pruning_agent": agent.pk})
    staff = browser_of(make_operator())
    assert "Same as current agent" in staff.get("/settings/site/").content.decode()
    staff.post("/settings/site/", {"pruning_agent": agent.pk})
    assert f'value="{agent.pk}" selected' in staff.get("/settings/site/").content.decode()


LIMITS = {
    "min_limit": 3500,
    "default_limit": 6000,
    "warning_threshold": 0.7,
    "recovery_mode": "truncate",
    "llm-TOTAL_FORMS": 2,
    "llm-INITIAL_FORMS": 0,
    "llm-0-type": "local_14b",
    "llm-0-limit": 4200,
    "llm-1-type": "",
}


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        (
            {"default_limit": 3499},
            [
                "Not saved. Default limit: 3,499 tokens are below the global minimum (min_limit) of 3,500. "
                "Give 3,500 or more, or lower the minimum first."
            ],
        ),
        ({"llm-0-limit": 3499}, ["Not saved. Limit: 3,499 tokens are below the global minimum (min_limit) of 3,500."]),
        ({"min_limit": 0}, ["Global minimum: found “0”. Give a whole number of tokens from 1 to 2,000,000,000."]),
        ({"min_limit": ""}, ["Global minimum: found nothing. Give a whole number of tokens"]),
        ({"warning_threshold": "80 %"}, ["Warning threshold: found “80 %”. Give a number above 0 and up to 1"]),
        ({"llm-0-type": ""}, ["LLM type: found a limit of 4,200 tokens without one. Name the type, or empty the row."]),
        ({"llm-0-limit": ""}, ["Limit: found none for local_14b. Give one, or tick “Follow default”."]),
        ({"llm-1-type": "local_14b", "llm-1-limit": 5000}, ["There are two rows of local_14b. Keep one of them."]),
        ({"min_limit": "x", "llm-0-limit": "y"}, ["Global minimum: found “x”.", "Limit: found “y”."]),
        ({"llm-TOTAL_FORMS": "many"}, ["Not saved."]),
    ],
)
def test_limits_are_refused_with_what_was_found_and_what_is_allowed(
    given: dict[str, Any], sentences: list[str]
) -> None:
    refused = browser_of(make_operator()).post("/settings/limits/", {**LIMITS, **given})
    assert refused.status_code == 400
    page = html.unescape(in_one_line(refused.content.decode()))
    alert = re.search(r'role="alert">(.*?)</li>', page)
    assert alert is not None
    assert all(sentence in alert[1] for sentence in sentences)
    assert current_config() == ContextConfig()


def test_a_limit_of_the_file_below_the_minimum_is_reported(settings: Any, tmp_path: Path) -> None:
    settings.MINDS_DIR = tmp_path
    (tmp_path / "context.yaml").write_text("default_limit: 3499")
    assert ["3,499 tokens are below" in str(problem) for problem in problems_of_file()] == [True]
    assert "3,499 tokens are below" in browser_of(make_operator()).get("/settings/limits/").content.decode()


@pytest.mark.parametrize(
    ("form", "given", "sentence"),
    [
        ("context-display", {"progress_detail": "normal", "auto_hide_seconds": 11}, "from 1 to 10"),
        ("context-display", {"progress_detail": "loud", "auto_hide_seconds": 3}, "loud is not one of"),
        ("appearance", {"theme": "pink"}, "pink is not one of"),
        ("password", {"old_password": "wrong"}, "Old password: "),
        ("keys", {"name": "x" * 81}, "it has 81"),
    ],
)
def test_settings_are_refused_at_the_top_of_the_page(form: str, given: dict[str, Any], sentence: str) -> None:
    refused = browser_of(UserFactory.create()).post(f"/settings/{form}/", given)
    assert refused.status_code == 400
    alert = re.search(r'role="alert">(Not saved\..*?)</li>', html.unescape(in_one_line(refused.content.decode())))
    assert alert is not None
    assert sentence in alert[1]


def test_what_may_not_be_done_is_said() -> None:
    client = browser_of(UserFactory.create())
    page = client.post("/settings/site/", {"pruning_agent": ""}, follow=True).content.decode()
    assert "only an operator may change them" in page
    assert "no such key" in client.post("/settings/keys/77/revoke/", follow=True).content.decode()
    UserFactory.create(is_superuser=True)
    assert "No account was made" in Client().post("/setup/", {"username": "eve"}, follow=True).content.decode()


def test_staff_edit_context_limits_under_the_rules_of_the_file(script: Script) -> None:
    agent: Agent = AgentFactory.create(llm_type="local_14b")
    assert browser_of(UserFactory.create()).get("/settings/limits/").status_code == 404
    staff = browser_of(make_operator())
    given = dict(LIMITS)
    assert staff.post("/settings/limits/", given).status_code == 302
    config = current_config()
    assert (config.default_limit, config.warning_threshold, config.recovery_mode) == (6000, 0.7, "truncate")
    page = staff.get("/settings/limits/").content.decode()
    assert re.search(rf"{agent}.*?4,200", page, re.S)
    given |= {"llm-INITIAL_FORMS": 1, "llm-0-follow_default": "on"}
    staff.post("/settings/limits/", given)
    assert re.search(rf"{agent}.*?6,000", staff.get("/settings/limits/").content.decode(), re.S)
    refused = staff.post("/settings/limits/", {**given, "default_limit": 0})
    assert refused.status_code == 400
    assert "Default limit" in refused.content.decode()
    assert current_config().default_limit == 6000


def test_templates_are_ones_own_and_have_one_name_each() -> None:
    person, other = UserFactory.create(), UserFactory.create()
    browser, address = browser_of(person), "/settings/templates/"
    weekly = {"name": "weekly", "text": "What happened this week?"}
    assert browser.post(address, weekly)["Location"] == "/settings/templates/"
    row = PromptTemplate.objects.get()
    assert browser.get("/api/templates").json() == [weekly] and browser_of(other).get("/api/templates").json() == []
    refused = browser.post(address, {**weekly, "text": "Twice"})
    assert refused.status_code == 400 and "You have a template /weekly." in html.unescape(refused.content.decode())
    assert browser.post(address, {"name": "two words", "text": "x"}).status_code == 400
    assert browser_of(other).post(address, {**weekly, "id": row.pk}).status_code == 302  # a new one, of their own
    browser_of(other).post(address, {"id": row.pk, "delete": "yes"})
    browser.post(address, {"id": row.pk, "name": "week", "text": "What now?"})
    assert browser.get("/api/templates").json() == [{"name": "week", "text": "What now?"}]
    browser.post(address, {"id": row.pk, "delete": "yes"})
    assert list(PromptTemplate.objects.values_list("owner", "name")) == [(other.pk, "weekly")]


LOCAL = {"SERVER_NAME": "127.0.0.1", "REMOTE_ADDR": "127.0.0.1"}


def test_at_the_machine_itself_the_first_start_asks_for_nothing(script: Script) -> None:
    client = Client(**LOCAL)  # type: ignore[arg-type]
    assert 'name="begin"' in client.get("/setup/").content.decode()
    assert client.post("/setup/", {"begin": "yes"})["Location"] == "/"
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser, admin.has_usable_password()) == ("admin", True, False)
    assert client.session.get_expiry_age() > 300 * 86_400
    assert Client(**LOCAL).post("/setup/", {"begin": "yes"})["Location"] == "/login/"  # type: ignore[arg-type]
    assert User.objects.count() == 1
    script({"text": "Hello."})
    AgentFactory.create(is_demo=False)
    assert "Choose a password" in client.get("/").content.decode()
    chosen = {"new_password1": "another long one", "new_password2": "another long one"}
    assert client.post("/settings/password/", chosen).status_code == 302
    assert "Choose a password" not in client.get("/").content.decode()
    assert client.session.get_expiry_age() < 30 * 86_400
    assert client.post("/settings/password/", chosen).status_code == 400  # from now on the old one is asked for
    assert Client().post("/login/", {"username": "admin", "password": "another long one"})["Location"] == "/"


@pytest.mark.parametrize(
    "from_afar",
    [
        {"REMOTE_ADDR": "10.0.0.9"},
        {"SERVER_NAME": "testserver"},
        {"HTTP_X_FORWARDED_FOR": "203.0.113.9"},
        {"HTTP_FORWARDED": "for=203.0.113.9"},
        {"HTTP_VIA": "1.1 proxy"},
    ],
)
def test_from_anywhere_else_it_asks_for_a_name_and_a_password(from_afar: dict[str, str]) -> None:
    client = Client(**{**LOCAL, **from_afar})  # type: ignore[arg-type]
    assert 'name="begin"' not in client.get("/setup/").content.decode()
    assert client.post("/setup/", {"begin": "yes"}).status_code == 200
    assert not User.objects.exists()


def test_others_without_a_password_cannot_choose_one_so() -> None:
    person = UserFactory.create()
    person.set_unusable_password()
    person.save()
    chosen = {"new_password1": "another long one", "new_password2": "another long one"}
    assert browser_of(person).post("/settings/password/", chosen).status_code == 400
    person.refresh_from_db()
    assert not person.has_usable_password()
