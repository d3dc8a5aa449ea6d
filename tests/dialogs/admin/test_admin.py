"""The admin: operators read everything, edit no history, and resolve what waits for them."""

import itertools
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import checks
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from dialogs.accounts.api_keys import create_key, owner_of
from dialogs.actions.exits import exit_named
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Agent, ApiKey, Dialog, PersonSettings, Question
from dialogs.runtime.driver import drive
from remediation.models import CleanupTask, Proposal
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

OURS = ("dialogs", "remediation", "health")
EDITABLE = {"identity", "personsettings"}  # of a person's settings the monthly budget alone
SECRET = "<script>alert(1)</script>"
admin.autodiscover()  # as the addresses do


@pytest.fixture
def operator() -> User:
    return make_operator()


@pytest.fixture
def browser(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def asked(script: Script) -> Question:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": f"Which {SECRET}?"}}]}, {"text": "ok"})
    dialog = send(make_dialog(), f"Hi {SECRET}")
    return Question.objects.get(dialog=dialog)


@pytest.fixture
def suspended(script: Script) -> Question:
    script({"text": "refused-text", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    dialog = send(make_dialog(), "fill", "more")
    return Question.objects.get(dialog=dialog)


def page_of(question: Question) -> str:
    return reverse("admin:dialogs_question_change", args=[question.pk])


def button(question: Question, name: str) -> str:
    return reverse(f"admin:dialogs_question_{name}", args=[question.pk])


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.extras
def test_every_row_of_ours_is_in_the_admin() -> None:
    registered = set(admin.site._registry)
    assert {model for app in OURS for model in apps.get_app_config(app).get_models()} <= registered


def test_djangos_checks_look_at_each_page(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.run_checks(tags=[checks.Tags.admin]) == []
    monkeypatch.setattr(admin.site._registry[Dialog], "list_display", ("no_such_column",))
    assert [result.id for result in checks.run_checks(tags=[checks.Tags.admin])] == ["admin.E108"]


@pytest.mark.parametrize("model", [model for model in admin.site._registry if model._meta.app_label in OURS])
def test_staff_list_and_search_every_table_and_edit_no_history(
    browser: Client, asked: Question, rf: Any, operator: User, model: Any
) -> None:
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    assert browser.get(address).status_code == 200
    if admin.site._registry[model].search_fields:
        assert browser.get(address, {"q": "abc"}).status_code == 200
        assert browser.get(address, {"q": str(asked.dialog_id)}).status_code == 200
    request = rf.get("/")
    request.user = User(is_staff=True, is_superuser=True, is_active=True)
    options = admin.site._registry[model]
    if model._meta.model_name not in EDITABLE:
        assert not options.has_add_permission(request)
        assert not options.has_change_permission(request)
        assert not options.has_delete_permission(request)


def test_pages_of_rows_run_nothing_of_their_texts(browser: Client, asked: Question) -> None:
    dialog = asked.dialog
    rows: list[Model] = [dialog, dialog.generations.get(), dialog.generations.get().snapshot]
    rows += [dialog.turns.earliest("pk"), dialog.events.earliest("pk"), dialog.rounds.earliest("pk")]
    for row in rows:
        page = browser.get(reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk]))
        assert page.status_code == 200
        assert SECRET not in page.content.decode()
    page = browser.get(reverse("admin:dialogs_turn_changelist"), {"dialog__id__exact": str(dialog.pk)})
    assert page.context["cl"].result_count == dialog.turns.count()


def test_it_has_the_pages_design_and_the_readers_theme(browser: Client, operator: User) -> None:
    PersonSettings.objects.create(user=operator, theme="dark")
    address = reverse("admin:dialogs_agent_changelist")
    page = browser.get(address).content.decode()
    assert "css/tokens.css" in page and "css/admin.css" in page
    assert re.search(r'<body class="[^"]*\btheme-dark\b', page)
    assert "admin/js/theme.js" not in page and "admin/css/dark_mode.css" not in page
    assert page.index("admin/css/base.css") < page.index("css/admin.css")  # whose variables stand in place of those


def test_others_are_not_let_in(asked: Question) -> None:
    client = Client()
    client.force_login(asked.dialog.owner)
    assert client.get("/admin/").status_code == 302
    assert client.get(page_of(asked)).status_code == 302
    assert client.post(button(asked, "cancel")).status_code == 302
    asked.refresh_from_db()
    assert asked.state == "open"


def test_logging_in_here_is_throttled_too(db: None) -> None:
    wrong = {"username": "nobody", "password": "wrong"}
    tries = (Client().post("/admin/login/", wrong).status_code for _ in range(40))  # the count begins anew each minute
    statuses = list(itertools.takewhile(lambda status: status == 200, tries))
    assert 10 <= len(statuses) < 40


# -- ordinary questions ------------------------------------------------------------------------------------------------


def test_an_ordinary_question_is_answered_and_the_agent_goes_on(
    browser: Client, operator: User, asked: Question
) -> None:
    page = browser.get(page_of(asked)).content.decode()
    assert "Answer and go on" in page
    assert SECRET not in page
    assert browser.post(button(asked, "answer"), {"text": "Euro"}).status_code == 302
    asked.refresh_from_db()
    assert (asked.state, asked.answer, asked.resolved_by) == ("answered", "Euro", operator)
    assert LogEntry.objects.get(object_id=str(asked.pk)).user == operator
    drive(asked.dialog_id)
    assert Dialog.objects.get(pk=asked.dialog_id).state == "idle"
    again = browser.post(button(asked, "answer"), {"text": "Dollar"})
    assert again.status_code == 409
    assert operator.username in again.content.decode()


def test_an_empty_answer_is_refused_with_its_reason(browser: Client, asked: Question) -> None:
    answer = browser.post(button(asked, "answer"), {"text": " "})
    assert answer.status_code == 400
    assert "empty" in answer.content.decode()


@pytest.mark.parametrize("name", ["answer", "cancel", "resolve"])
def test_buttons_are_posts_with_a_token(browser: Client, operator: User, asked: Question, name: str) -> None:
    assert browser.get(button(asked, name)).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post(button(asked, name), {"text": "x", "action": "close"}).status_code == 403


def test_selected_ordinary_questions_are_cancelled_after_a_question_back(
    browser: Client, asked: Question, suspended_beside: Question
) -> None:
    address = reverse("admin:dialogs_question_changelist")
    chosen = {"action": "cancel_selected", "_selected_action": [str(asked.pk), str(suspended_beside.pk)]}
    page = browser.post(address, chosen)
    assert page.status_code == 200
    assert str(suspended_beside.pk) not in page.content.decode()
    assert Question.objects.filter(state="open").count() == 2
    assert "1 cancelled." in browser.post(address, chosen | {"confirmed": "yes"}, follow=True).content.decode()
    asked.refresh_from_db()
    suspended_beside.refresh_from_db()
    assert (asked.state, suspended_beside.state) == ("cancelled", "open")


@pytest.fixture
def suspended_beside(asked: Question) -> Question:
    dialog = make_dialog()
    return Question.objects.create(dialog=dialog, kind="context_health_critical", text="critical")


@pytest.mark.parametrize("query", ["kind__exact=question", "state__exact=open", "age=1", "age=24", "age=x"])
def test_questions_are_filtered(browser: Client, asked: Question, query: str) -> None:
    assert browser.get(f"{reverse('admin:dialogs_question_changelist')}?{query}").status_code in (200, 302)


# -- critical questions ------------------------------------------------------------------------------------------------


def test_the_evidence_shows_outcomes_and_usage_and_never_a_refused_text(browser: Client, suspended: Question) -> None:
    page = browser.get(page_of(suspended)).content.decode()
    assert page.count("discarded") == 3
    assert page.count("120,000") >= 4
    kept = suspended.dialog.turns.filter(role="assistant", text="refused-text").count()
    assert page.count("refused-text") == kept + suspended.draft.count("refused-text") * 2
    assert suspended.draft.splitlines()[0] in page
    assert "Your answer" not in page


EXITS = [
    ({"action": "clear", "reminder_content": "Go on."}, "queued"),
    ({"action": "accept_draft"}, "queued"),
    ({"action": "retry"}, "queued"),
    ({"action": "switch_model", "model": "test/model"}, "queued"),
    ({"action": "close"}, "closed"),
]


@pytest.mark.parametrize(("exit_", "state"), EXITS, ids=[exit_["action"] for exit_, _ in EXITS])
def test_each_exit_resolves_and_is_logged(
    browser: Client, operator: User, suspended: Question, exit_: dict[str, str], state: str
) -> None:
    if exit_["action"] == "switch_model":  # a move to the same model is refused
        Dialog.objects.filter(pk=suspended.dialog_id).update(provider="test", model="former")
    assert browser.post(button(suspended, "resolve"), exit_).status_code == 302
    suspended.refresh_from_db()
    assert (suspended.state, suspended.action, suspended.resolved_by) == ("resolved", exit_["action"], operator)
    assert Dialog.objects.get(pk=suspended.dialog_id).state == state
    logged = LogEntry.objects.get(object_id=str(suspended.pk))
    assert (logged.user, logged.change_message) == (operator, f"Resolved: {exit_named(exit_['action']).label}")
    assert f"{logged.change_message}." in browser.get(page_of(suspended)).content.decode()


def test_a_critical_question_is_neither_answered_nor_cancelled(browser: Client, suspended: Question) -> None:
    assert browser.post(button(suspended, "answer"), {"text": "Go on"}).status_code == 409
    assert browser.post(button(suspended, "cancel")).status_code == 409
    blank = browser.post(button(suspended, "resolve"), {"action": "clear", "reminder_content": " "})
    assert blank.status_code == 400
    assert "“Hand-over note (re-entry package)” is blank" in blank.content.decode()
    assert browser.post(button(suspended, "resolve"), {"action": "jump"}).status_code == 400
    suspended.refresh_from_db()
    assert suspended.state == "open"


# -- agents and the rest -----------------------------------------------------------------------------------------------


def test_other_settings_are_tried_on_past_dialogs_and_not_made(browser: Client, script: Script) -> None:
    script({"text": "Noted: the port is 48151. " * 40})
    dialog = make_dialog(context_policy="none")
    for number in range(8):
        send(dialog, f"Depot {number} has valve V-{4100 + number}. " + "It rained in the hills. " * 60)
    address = reverse("admin:dialogs_agent_dry_run", args=[dialog.agent_id])
    assert address in browser.get(reverse("admin:dialogs_agent_change", args=[dialog.agent_id])).content.decode()
    assert "As tried" not in browser.get(address).content.decode()
    page = browser.post(address, {"context_policy": "breaking", "context_limit": "3500", "recall": "on"})
    result = {name: (before, after) for name, before, after in page.context["found"].rows}
    assert (page.context["found"].dialogs, page.context["found"].turns) == (1, 16)
    assert result["limit, tokens"] == ("128,000", "3,500") and result["rewrites"][0] == "0" < result["rewrites"][1]
    facts = [text.partition(":") for text in result["facts at the end"]]
    assert facts[0][0] == facts[1][0] and int(facts[0][0]) == 8 and "0 one search away, 0 lost" in facts[0][2]
    assert result["facts at the end"][1] in page.content.decode()
    dialog.refresh_from_db()
    assert (dialog.agent.context_policy, dialog.remediations.count()) == ("none", 0)
    given = {"context_policy": "breaking", "context_limit": "3500", "dialog": str(dialog.pk)}
    assert str(dialog.pk) in browser.get(f"{address}?dialog={dialog.pk}").content.decode()
    tried = [
        browser.post(address, given | {"settings": settings}).context["found"].rows
        for settings in ("", "min_limit: 5000")
    ]
    assert tried[0] != tried[1]
    for wrong, why in (
        ("retention: {preset: mine}", "balanced, newest"),
        ("min_limit: -1", "min_limit"),
        ("- 1", "no mapping"),
        ("{", "not YAML"),
    ):
        assert why in browser.post(address, given | {"settings": wrong}).content.decode()
    assert browser.post(address, given | {"dialog": str(make_dialog().pk)}).context["found"].dialogs == 0
    Agent.objects.update(model="gone")
    assert "gone" in browser.post(address, {"context_policy": "breaking"}).content.decode()


def test_agents_are_read_here_and_edited_on_the_site(browser: Client, script: Script) -> None:
    agent = AgentFactory.create()
    address = reverse("admin:dialogs_agent_change", args=[agent.pk])
    page = browser.get(address).content.decode()
    assert f'href="/agents/{agent.pk}/"' in page and 'name="instructions"' not in page
    assert browser.post(address, {"name": "Other"}).status_code == 403


def test_a_key_is_revoked_and_its_hash_not_shown(browser: Client) -> None:
    key = create_key(UserFactory.create())
    row = ApiKey.objects.get()
    page = browser.get(reverse("admin:dialogs_apikey_change", args=[row.pk])).content.decode()
    assert row.digest not in page
    browser.post(reverse("admin:dialogs_apikey_changelist"), {"action": "revoke", "_selected_action": [row.pk]})
    assert owner_of(key) is None


@pytest.mark.extras
def test_proposals_and_tasks_are_decided(browser: Client, operator: User, script: Script) -> None:
    agent = AgentFactory.create()
    rows = [
        Proposal.objects.create(agent=agent, kind="limit", change={"context_limit": 6000}, grounds="x") for _ in "ab"
    ]
    address = reverse("admin:remediation_proposal_changelist")
    opened = reverse("admin:remediation_proposal_change", args=[rows[0].pk])
    assert "There is no such dialog of this agent." in browser.get(opened).content.decode()
    browser.post(address, {"action": "accept", "_selected_action": [rows[0].pk]})
    browser.post(address, {"action": "reject", "_selected_action": [rows[1].pk]})
    agent.refresh_from_db()
    assert agent.context_limit == 6000
    assert [row.state for row in Proposal.objects.order_by("pk")] == ["accepted", "rejected"]
    task = CleanupTask.objects.create(dialog=make_dialog(), reason="full")
    browser.post(
        reverse("admin:remediation_cleanuptask_changelist"), {"action": "finish", "_selected_action": [task.pk]}
    )
    task.refresh_from_db()
    assert (task.state, task.done_by) == ("done", operator)


def test_an_operator_sets_only_the_monthly_budget_of_a_person(db: None) -> None:
    admin_user = UserFactory.create(is_staff=True, is_superuser=True)
    row = PersonSettings.objects.create(user=UserFactory.create(), theme="dark")
    address = reverse("admin:dialogs_personsettings_change", args=[row.pk])
    client = Client()
    client.force_login(admin_user)
    assert "spent this month" in client.get(address).content.decode().lower()
    assert client.get(reverse("admin:dialogs_personsettings_add")).status_code == 200
    saved = client.post(address, {"monthly_budget_usd": "12.50", "theme": "light", "notifications": "on"})
    assert saved.status_code == 302, saved.content
    row.refresh_from_db()
    assert (row.monthly_budget_usd, row.theme, row.notifications) == (Decimal("12.5"), "dark", False)


def test_times_are_those_of_the_readers_clock(browser: Client, asked: Question) -> None:
    at = reverse("admin:dialogs_dialog_changelist")
    Dialog.objects.update(active_at=datetime(2026, 7, 1, 22, 30, tzinfo=UTC))
    assert "10:30 p.m." in browser.get(at).content.decode()
    browser.cookies["zone"] = "Asia/Tokyo"
    assert "7:30 a.m." in browser.get(at).content.decode()
