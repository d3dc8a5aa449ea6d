"""The pages without a browser: what they answer, to whom, and that they work with scripts switched off."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from dialogs import export, inbox, keys, questions, reminders
from dialogs.context_settings import current_config
from dialogs.driver import drive
from dialogs.models import Agent, ApiKey, Dialog, PersonSettings, Question, Turn
from dialogs.tools.human import ASK_HUMAN
from remediation.models import RemediationRun
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def asked_dialog(script: Script) -> tuple[Dialog, Question]:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or USD?"}}]}, {"text": "Thanks."})
    dialog = make_dialog()
    inbox.post_message(dialog.pk, "Import it")
    drive(dialog.pk)
    return dialog, Question.objects.get(dialog=dialog)


def suspended_dialog(script: Script) -> tuple[Dialog, Question]:
    script({"text": "No.", "usage": {"prompt_tokens": 950, "completion_tokens": 5}}, context_length=1000)
    dialog = make_dialog()
    for text in ("one", "two"):
        inbox.post_message(dialog.pk, text)
        drive(dialog.pk)
    return dialog, Question.objects.get(dialog=dialog)


# -- Who sees what ------------------------------------------------------------------------------------------------------


def dialog_addresses() -> list[tuple[str, dict[str, Any]]]:
    """Every address of ours that names something of somebody's."""
    found = []
    for pattern in get_resolver("dialogs.urls").url_patterns:
        if isinstance(pattern, URLPattern) and pattern.name:
            names = set(pattern.pattern.converters)
            if names & {"dialog_id", "question_id"} and pattern.name != "intervene":
                found.append(pattern.name)
    return sorted(found)


@pytest.mark.parametrize("name", dialog_addresses())
def test_a_strangers_dialog_does_not_exist(script: Script, name: str) -> None:
    dialog, question = asked_dialog(script)
    reminder = reminders.add(dialog.pk, "keep")
    given = {
        "dialog_id": dialog.pk,
        "question_id": question.pk,
        "reminder_id": reminder.pk,
        "run_id": 1,
        "seq": 2,
        "kind": "prune",
    }
    pattern = next(entry for entry in get_resolver("dialogs.urls").url_patterns if getattr(entry, "name", "") == name)
    address = reverse(name, kwargs={key: given[key] for key in pattern.pattern.converters})
    stranger, nobody = browser_of(UserFactory.create()), Client()
    for method in ("get", "post"):
        answer = getattr(stranger, method)(address, {"text": "x", "action": "close", "reminder_content": "x"})
        assert answer.status_code in (404, 405), f"{method} {address}"
        answer = getattr(nobody, method)(address)
        assert answer.status_code == 405 or answer["Location"].startswith("/login/")
    assert dialog.turns.count() == Turn.objects.filter(dialog=dialog).count()
    question.refresh_from_db()
    assert question.state == Question.State.OPEN


def test_staff_see_every_dialog_and_whose_it_is(script: Script) -> None:
    dialog = make_dialog()
    staff = browser_of(UserFactory.create(is_staff=True))
    assert dialog.owner.username in staff.get(f"/d/{dialog.pk}/").content.decode()
    assert str(dialog.pk) in staff.get("/").content.decode()


@pytest.mark.parametrize("path", ["/", "/q4h/", "/models/", "/settings/"])
def test_pages_ask_for_a_login_and_come_back(path: str) -> None:
    UserFactory.create(is_superuser=True)
    assert Client().get(path)["Location"] == f"/login/?next={path}"


def test_every_change_needs_a_token(script: Script) -> None:
    """A form of another site carries the cookie, but not the token (S2)."""
    dialog = make_dialog()
    client = Client(enforce_csrf_checks=True)
    client.force_login(dialog.owner)
    for pattern in get_resolver("dialogs.urls").url_patterns:
        if not isinstance(pattern, URLPattern):
            continue
        given = {"dialog_id": dialog.pk, "question_id": uuid4(), "provider": "test", "model": "model"}
        given |= {"kind": "prune", "action": "stop"}
        address = reverse(pattern.name, kwargs={key: given.get(key, 1) for key in pattern.pattern.converters})
        assert client.post(address).status_code in (403, 405), address


def test_errors_have_pages_too() -> None:
    client = browser_of(UserFactory.create())
    assert "There is no such page" in client.get("/nowhere/").content.decode()
    assert "There is no such page" in Client().get("/nowhere/").content.decode()
    strict = Client(enforce_csrf_checks=True)
    assert "Please send it again" in strict.post("/login/").content.decode()
    assert "Something failed" in render_to_string("500.html")


def test_looking_changes_nothing(script: Script) -> None:
    dialog, question = asked_dialog(script)
    before = list(Dialog.objects.values()), list(Turn.objects.values()), list(Question.objects.values())
    client = browser_of(dialog.owner)
    for name in ("stop", "retry", "close", "post-message", "add-reminder", "clear"):
        assert client.get(reverse(name, args=[dialog.pk])).status_code == 405
    for name in ("dialog", "health", "context", "archive", "export-json", "frames", "older"):
        assert client.get(reverse(name, args=[dialog.pk])).status_code == 200
    assert client.get(f"/q4h/{question.pk}/").status_code == 200
    assert before == (list(Dialog.objects.values()), list(Turn.objects.values()), list(Question.objects.values()))


def test_no_page_carries_an_inline_script_or_style(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(UserFactory.create(is_staff=True, is_superuser=True))
    for path in ("/", f"/d/{dialog.pk}/", f"/d/{dialog.pk}/health/", f"/q4h/{question.pk}/", "/settings/", "/models/"):
        answer = client.get(path)
        html = answer.content.decode()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html), path
        for script_tag in re.findall(r"<script[^>]*>", html):
            assert " src=" in script_tag, path
        assert "script-src 'self'" in answer["Content-Security-Policy"]


# -- Sending without scripts ---------------------------------------------------------------------------------------------


def test_a_plain_form_sends_and_comes_back_to_the_page(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    answer = client.post(f"/d/{dialog.pk}/messages/", {"text": "one\r\ntwo", "client_message_id": "a"})
    assert answer["Location"] == f"/d/{dialog.pk}/#latest"
    client.post(f"/d/{dialog.pk}/messages/", {"text": "one\r\ntwo", "client_message_id": "a"})
    assert [turn.text for turn in dialog.turns.all()] == ["one\ntwo"]
    drive(dialog.pk)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "Hello." in page


def test_htmx_gets_the_pieces_that_changed(script: Script) -> None:
    dialog = make_dialog()
    answer = browser_of(dialog.owner).post(f"/d/{dialog.pk}/messages/", {"text": "<b>Hi</b>"}, headers=HTMX)
    html = answer.content.decode()
    assert 'id="turn-1"' in html
    assert "&lt;b&gt;Hi&lt;/b&gt;" in html
    assert 'id="composer-state"' in html
    assert "<html" not in html


@pytest.mark.parametrize(("text", "status"), [("", 400), ("  ", 400), ("x" * 1_000_001, 413)])
def test_a_refused_message_says_why_and_is_not_lost(script: Script, text: str, status: int) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    answer = client.post(f"/d/{dialog.pk}/messages/", {"text": text})
    assert answer.status_code == status
    assert 'role="alert"' in answer.content.decode()
    assert not text.strip() or text in answer.content.decode()
    assert client.post(f"/d/{dialog.pk}/messages/", {"text": text}, headers=HTMX).status_code == status
    assert not dialog.turns.exists()


def test_a_suspended_dialog_takes_no_message_and_says_so(script: Script) -> None:
    dialog, _ = suspended_dialog(script)
    client = browser_of(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert re.search(r"<textarea[^>]* disabled", page)
    assert "Suspended: context critical" in page
    assert client.post(f"/d/{dialog.pk}/messages/", {"text": "More"}).status_code == 409
    assert dialog.turns.filter(text="More").count() == 0


def test_stop_remove_and_retry_work_by_plain_forms(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    inbox.post_message(dialog.pk, "first")
    queued = inbox.post_message(dialog.pk, "second")
    client.post(f"/d/{dialog.pk}/messages/{queued.seq}/remove/")
    assert Turn.objects.get(dialog=dialog, seq=queued.seq).status == Turn.Status.SUPERSEDED
    client.post(f"/d/{dialog.pk}/stop/")
    assert Turn.objects.get(dialog=dialog, seq=1).status == Turn.Status.STOPPED
    assert "Retry" in client.get(f"/d/{dialog.pk}/").content.decode()
    client.post(f"/d/{dialog.pk}/retry/")
    drive(dialog.pk)
    assert Turn.objects.get(dialog=dialog, seq=1).status == Turn.Status.ANSWERED
    client.post(f"/d/{dialog.pk}/close/")
    assert Dialog.objects.get(pk=dialog.pk).state == "closed"


def test_a_long_dialog_comes_in_pages_upward(script: Script) -> None:
    dialog = make_dialog()
    for number in range(50):
        inbox.post_message(dialog.pk, f"message {number:03}")
        drive(dialog.pk)
    client = browser_of(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "message 049" in page
    assert "message 001" not in page
    seen = set(re.findall(r"message \d{3}", page))
    while link := re.search(r'hx-get="([^"]+older[^"]+)"', page):
        page = client.get(link[1], headers=HTMX).content.decode()
        seen |= set(re.findall(r"message \d{3}", page))
    assert len(seen) == 50


# -- The list ------------------------------------------------------------------------------------------------------------


def test_the_list_finds_words_in_titles_and_messages(script: Script) -> None:
    dialog = make_dialog()
    other = inbox.create_dialog(dialog.owner, dialog.agent_id, "Harbour dues")
    inbox.post_message(dialog.pk, "Where is the LIGHTHOUSE?")
    drive(dialog.pk)
    client = browser_of(dialog.owner)

    def found(**query: str) -> set[str]:
        html = client.get("/", query, headers={**HTMX, "HX-Target": "dialog-rows"}).content.decode()
        assert "<html" not in html
        return {str(row.pk) for row in (dialog, other) if str(row.pk) in html}

    assert found(q="lighthouse") == {str(dialog.pk)}
    assert found(q="harbour") == {str(other.pk)}
    assert found(q="nowhere") == set()
    assert found(state="closed") == set()
    assert found(agent=dialog.agent_id) == {str(dialog.pk), str(other.pk)}
    assert found(q="'; --%_") == set()


def test_nobody_finds_words_of_somebody_else(script: Script) -> None:
    dialog = make_dialog()
    inbox.post_message(dialog.pk, "secret lighthouse")
    assert str(dialog.pk) not in browser_of(UserFactory.create()).get("/?q=lighthouse").content.decode()


def test_a_new_dialog_is_opened_with_an_agent_that_can_be_used(script: Script) -> None:
    user, agent = UserFactory.create(), AgentFactory.create()
    broken = AgentFactory.create(model="gone")
    client = browser_of(user)
    page = client.get("/").content.decode()
    assert re.search(rf'value="{broken.pk}" disabled', page)
    answer = client.post("/d/new/", {"agent": agent.pk})
    assert answer["Location"] == f"/d/{Dialog.objects.get(owner=user).pk}/"
    assert client.post("/d/new/", {"agent": "nobody"}, follow=True).redirect_chain == [("/", 302)]


# -- Health --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt_tokens", "level", "words"),
    [
        (50, "healthy", "50 tok · 0 % of 128,000 · Healthy"),
        (100_000, "healthy", "100,000 tok · 78 % of 128,000 · Healthy"),
        (100_001, "caution", "100,001 tok · 78 % of 128,000 · Caution"),
        (115_200, "caution", "115,200 tok · 90 % of 128,000 · Caution"),
        (115_201, "critical", "115,201 tok · 90 % of 128,000 · Critical"),
    ],
)
def test_the_chip_says_tokens_percent_and_level(script: Script, prompt_tokens: int, level: str, words: str) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 7}})
    dialog = make_dialog()
    inbox.post_message(dialog.pk, "Hi")
    drive(dialog.pk)
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode()
    chip = re.search(r'<button[^>]*id="chip".*?</button>', page, re.S)
    assert chip is not None
    assert f'data-level="{level}"' in chip[0]
    assert words in chip[0]
    assert chip[0].count("gauge-tick") == 2


def test_an_unknown_level_never_shows_a_number(script: Script) -> None:
    script({"text": "Hello.", "usage": "none"})
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    assert "unknown · awaiting report" in client.get(f"/d/{dialog.pk}/").content.decode()
    inbox.post_message(dialog.pk, "Hi")
    drive(dialog.pk)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "unknown · usage not reported" in page
    chip = re.search(r'id="chip".*?</button>', page, re.S)
    assert chip is not None
    assert " tok ·" not in chip[0]


def test_usage_and_history_show_what_was_reported(script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 4_321, "completion_tokens": 7}})
    dialog = make_dialog()
    inbox.post_message(dialog.pk, "Hi")
    drive(dialog.pk)
    client = browser_of(dialog.owner)
    answer = dialog.turns.get(role="assistant")
    assert "4,321" in client.get(f"/d/{dialog.pk}/turn/{answer.seq}/usage/").content.decode()
    assert "4,321" in client.get(f"/d/{dialog.pk}/health/").content.decode()
    assert client.get(f"/d/{dialog.pk}/turn/1/usage/").status_code == 404


def test_the_text_of_discarded_attempts_is_on_no_page(script: Script) -> None:
    full = {"prompt_tokens": 950, "completion_tokens": 5}
    script({"text": "Kept.", "usage": full}, {"text": "SENTINEL", "usage": full}, context_length=1000)
    dialog = make_dialog()
    for text in ("one", "two"):
        inbox.post_message(dialog.pk, text)
        drive(dialog.pk)
    question = Question.objects.get(dialog=dialog)
    staff = browser_of(UserFactory.create(is_staff=True))
    for path in ("", "health/", "context/", "archive/", "frames?after=0"):
        assert "SENTINEL" not in staff.get(f"/d/{dialog.pk}/{path}").content.decode()
    page = staff.get(f"/q4h/{question.pk}/").content.decode()
    assert "SENTINEL" not in page
    assert page.count("discarded") == 3
    assert "SENTINEL" not in "".join(export.as_markdown(dialog)) + "".join(export.as_json(dialog))


def test_a_models_page_names_limit_source_and_traps(script: Script) -> None:
    script({"text": "x"}, context_length=32_768)
    client = browser_of(UserFactory.create())
    page = client.get("/models/test/model/").content.decode()
    assert "32,768" in page
    assert "from context_length" in page
    assert "29,491" in page
    assert "There is no caution band" in page or "caution band" in page
    assert client.get("/models/test/none/").status_code == 404
    assert "model" in client.get("/models/").content.decode()


# -- Q4H -----------------------------------------------------------------------------------------------------------------


def test_an_answer_from_the_inbox_lets_the_run_go_on(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    assert "EUR or USD?" in client.get("/q4h/").content.decode()
    assert "(1) Q4H" in client.get("/settings/").content.decode()
    client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR"})
    drive(dialog.pk)
    assert dialog.turns.filter(text="Thanks.").exists()
    assert "EUR or USD?" in client.get("/q4h/?tab=answered").content.decode()


def test_an_answer_from_the_composer_brings_pieces_not_a_page(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    html = client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR", "from": "dialog"}, headers=HTMX).content.decode()
    assert 'id="composer-state"' in html
    assert "<html" not in html
    answer = client.post(f"/q4h/{question.pk}/answer/", {"text": "USD"}, headers=HTMX)
    assert answer.status_code == 409
    assert "answered by" in answer["HX-Trigger"]


def test_who_comes_second_learns_who_was_first(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR"})
    answer = client.post(f"/q4h/{question.pk}/answer/", {"text": "USD"})
    assert answer.status_code == 409
    assert dialog.owner.username in answer.content.decode()
    assert questions.questions_of(dialog.owner).get().answer == "EUR"


def test_a_critical_question_has_no_answer_box_and_five_exits_for_who_may(script: Script) -> None:
    dialog, question = suspended_dialog(script)
    owner, staff = browser_of(dialog.owner), browser_of(UserFactory.create(is_staff=True))
    page = owner.get(f"/q4h/{question.pk}/").content.decode()
    assert "/answer/" not in page
    assert "/resolve/" not in page
    assert owner.post(f"/q4h/{question.pk}/answer/", {"text": "x"}).status_code == 409
    assert owner.post(f"/q4h/{question.pk}/resolve/", {"action": "close"}).status_code == 409
    assert set(re.findall(r'name="action" value="(\w+)"', staff.get(f"/q4h/{question.pk}/").content.decode())) >= {
        "clear",
        "accept_draft",
        "retry",
        "close",
    }
    dialog.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    assert "/resolve/" in owner.get(f"/q4h/{question.pk}/").content.decode()


@pytest.mark.parametrize(
    ("form", "state"),
    [
        ({"action": "clear", "reminder_content": "Goal: go on"}, "queued"),
        ({"action": "accept_draft"}, "queued"),
        ({"action": "retry"}, "queued"),
        ({"action": "close"}, "closed"),
    ],
)
def test_each_exit_ends_the_suspension(script: Script, form: dict[str, str], state: str) -> None:
    dialog, question = suspended_dialog(script)
    staff = browser_of(UserFactory.create(is_staff=True))
    answer = staff.post(f"/q4h/{question.pk}/resolve/", form)
    assert answer.status_code == 302
    assert Dialog.objects.get(pk=dialog.pk).state == state


@pytest.mark.parametrize("form", [{}, {"action": "dance"}, {"action": "clear", "reminder_content": "  "}])
def test_an_exit_without_what_it_needs_changes_nothing(script: Script, form: dict[str, str]) -> None:
    dialog, question = suspended_dialog(script)
    staff = browser_of(UserFactory.create(is_staff=True))
    assert staff.post(f"/q4h/{question.pk}/resolve/", form).status_code == 400
    assert Dialog.objects.get(pk=dialog.pk).state == "suspended"


# -- The context, by hand ------------------------------------------------------------------------------------------------


def test_a_fresh_start_stands_in_the_transcript_and_can_be_undone(script: Script) -> None:
    script({"text": "A long answer. " * 60})
    dialog = make_dialog()
    for text in ("one", "two", "three"):
        inbox.post_message(dialog.pk, text)
        drive(dialog.pk)
    client = browser_of(dialog.owner)
    assert client.get(f"/d/{dialog.pk}/context/?preview=fresh_start").status_code == 200
    client.post(f"/d/{dialog.pk}/context/fresh-start/")
    drive(dialog.pk)
    run = RemediationRun.objects.get(dialog=dialog)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert f'id="run-{run.pk}"' in page
    assert "Fresh start from a handover est." in page
    RemediationRun.objects.filter(pk=run.pk).update(policy="breaking")  # whose recovery may lead there too
    again = client.get(f"/d/{dialog.pk}/").content.decode()
    assert again.count("Fresh start from a handover") == page.count("Fresh start from a handover") > 1
    assert client.get(f"/d/{dialog.pk}/archive/{run.pk}/").status_code == 200
    assert "A long answer." in client.get(f"/d/{dialog.pk}/archive/?q=long").content.decode()
    client.post(f"/d/{dialog.pk}/archive/{run.pk}/undo/")
    run.refresh_from_db()
    assert run.undone_by == dialog.owner


def test_reminders_are_edited_on_the_page(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    html = client.post(f"/d/{dialog.pk}/reminders/", {"text": "Mind the gap"}, headers=HTMX).content.decode()
    assert 'id="reminders-panel"' in html
    assert "est. " in html
    row = dialog.reminders.get()
    client.post(f"/d/{dialog.pk}/reminders/{row.pk}/", {"text": "Mind the step"})
    assert dialog.reminders.get().text == "Mind the step"
    assert client.post(f"/d/{dialog.pk}/reminders/", {"text": ""}, headers=HTMX).status_code == 400
    client.post(f"/d/{dialog.pk}/reminders/{row.pk}/delete/")
    assert not dialog.reminders.exists()


# -- People --------------------------------------------------------------------------------------------------------------


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
    client.post("/settings/look/", {"theme": "dark", "notifications": "on"})
    given = {"show_breaking_progress": "on", "progress_detail": "detailed", "auto_hide_seconds": "7"}
    client.post("/settings/context-display/", given)
    own = PersonSettings.objects.get(user=user)
    assert (own.theme, own.notifications, own.auto_hide_seconds, own.highlight_p1) == ("dark", True, 7, False)
    assert 'data-theme="dark"' in client.get("/settings/").content.decode()
    assert client.post("/settings/context-display/", {**given, "auto_hide_seconds": "11"}).status_code == 400
    assert client.post("/settings/look/", {"theme": "pink"}).status_code == 400


def test_an_api_key_is_shown_once_and_can_be_revoked() -> None:
    user = UserFactory.create()
    client = browser_of(user)
    page = client.post("/settings/keys/", {"name": "laptop"})
    assert page["Cache-Control"] == "no-store"
    key = re.search(r'id="new-key">([^<]+)<', page.content.decode())
    assert key is not None
    assert keys.owner_of(key[1]) == user
    assert key[1] not in client.get("/settings/").content.decode()
    row = ApiKey.objects.get(owner=user)
    browser_of(UserFactory.create()).post(f"/settings/keys/{row.pk}/revoke/")
    assert keys.owner_of(key[1]) == user
    client.post(f"/settings/keys/{row.pk}/revoke/")
    assert keys.owner_of(key[1]) is None


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


def test_only_staff_choose_the_pruning_agent() -> None:
    agent: Agent = AgentFactory.create()
    browser_of(UserFactory.create()).post("/settings/site/", {"pruning_agent": agent.pk})
    staff = browser_of(UserFactory.create(is_staff=True))
    assert "Same as current agent" in staff.get("/settings/").content.decode()
    staff.post("/settings/site/", {"pruning_agent": agent.pk})
    assert f'value="{agent.pk}" selected' in staff.get("/settings/").content.decode()


def test_staff_edit_context_limits_under_the_rules_of_the_file(script: Script) -> None:
    agent: Agent = AgentFactory.create(llm_type="local_14b")
    assert browser_of(UserFactory.create()).get("/settings/limits/").status_code == 404
    staff = browser_of(UserFactory.create(is_staff=True))
    given = {
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
    assert "default_limit" in refused.content.decode()
    assert current_config().default_limit == 6000


def test_what_people_and_models_wrote_is_escaped_on_every_page(script: Script) -> None:
    """The same hostile text as title, message, answer, tool result, reminder, question and agent name (S6)."""
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    call = {"name": ASK_HUMAN, "arguments": {"question": hostile}}
    script({"text": hostile, "tool_calls": [call]}, {"text": hostile})
    dialog = make_dialog(name=hostile[:40])
    Dialog.objects.filter(pk=dialog.pk).update(title=hostile)
    reminders.add(dialog.pk, hostile)
    inbox.post_message(dialog.pk, hostile)
    drive(dialog.pk)
    question = Question.objects.get(dialog=dialog)
    staff = browser_of(UserFactory.create(is_staff=True))
    paths = [
        "/",
        f"/d/{dialog.pk}/",
        f"/d/{dialog.pk}/context/",
        f"/q4h/{question.pk}/",
        "/q4h/",
        f"/d/{dialog.pk}/health/",
    ]
    questions.answer(question.pk, dialog.owner, hostile)
    drive(dialog.pk)
    for path in paths:
        html = staff.get(path).content.decode()
        assert "<img" not in html, path
        assert "<script>" not in html, path
    assert settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]["default-src"]
