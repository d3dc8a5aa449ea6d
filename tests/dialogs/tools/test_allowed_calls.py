"""What an answer allows: the call that was shown, once, or the tool of the server that was shown; and nothing else."""

import sys
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Permission, User
from django.utils import translation

from dialogs.actions import forks, messages, questions, rewrite_requests
from dialogs.actions.question_rows import approval_in, ask_for_approval
from dialogs.context.package_draft import draft_package
from dialogs.context.view import Call
from dialogs.errors import Conflict, Forbidden, NotFound
from dialogs.extras.notices.question_mail import text_of
from dialogs.models import Agent, Dialog
from dialogs.pages.entries import _approvals_of, _arguments, turn_entries
from dialogs.queries.export import as_markdown
from dialogs.runtime.driver import drive
from dialogs.store.change import open_change
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_operator, send
from tests.dialogs.tools.approving import BOOK, ECHO, REMEMBER, answer, open_question, results
from tests.dialogs.tools.conftest import Minds
from tests.dialogs.tools.mcp_http import SERVER

pytestmark = pytest.mark.django_db(transaction=True)

ASK = {"name": "ask_human", "arguments": {"question": "Which?", "choices": ["Allow"]}}
OTHER_COMMAND = {"command": sys.executable, "args": ["-u", str(SERVER), "stdio"]}


def noting(text: str, **more: Any) -> dict[str, Any]:
    return {"name": "desk_remember", "arguments": {"text": text}, **more}


SAME_ID_TWICE = (
    {"match": "noted", "text": "Done."},
    {"match": "second", "tool_calls": [noting("b", id="call_0")]},
    {"match": "first", "tool_calls": [noting("a", id="call_0")]},
    {"text": "Done."},
)


def test_an_id_that_a_server_uses_again_is_another_call(asking: Dialog, script: Script) -> None:
    """Some count from 0 in each request, and after a clear the model sees the calls before it no more."""
    script(*SAME_ID_TWICE)
    send(asking, "first")
    answer(asking, "Allow")
    rewrite_requests.clear(asking.pk, "Goal: test", asking.owner)
    drive(asking.pk)
    send(asking, "second")
    assert '"text": "b"' in open_question(asking).text
    answer(asking, "Allow")
    assert (asking.state, results(asking)) == ("idle", [("ok", "noted a"), ("ok", "noted b")])


def test_a_call_whose_id_was_used_before_runs_once(asking: Dialog, script: Script) -> None:
    Agent.objects.update(tool_approval="never")
    script(*SAME_ID_TWICE)
    send(asking, "first")
    rewrite_requests.clear(asking.pk, "Goal: test", asking.owner)
    drive(asking.pk)
    send(asking, "second")
    assert (asking.state, results(asking)) == ("idle", [("ok", "noted a"), ("ok", "noted b")])


@pytest.mark.parametrize("words", ["Allow", "Always allow in this dialog"])
def test_another_servers_tool_of_the_same_name_is_asked_for(
    asking: Dialog, script: Script, minds: Minds, words: str
) -> None:
    """Here the same id with another command; the same holds for another id whose tools are renamed."""
    script({"match": "one|two", "tool_calls": [noting("x")]}, {"text": "Done."})
    send(asking, "one")
    questions.answer(open_question(asking).pk, asking.owner, words)
    minds(desk=OTHER_COMMAND)
    drive(asking.pk)
    question = open_question(asking)
    assert (question.tool, results(asking)) == ("desk_remember", [])
    answer(asking, "Always allow in this dialog")
    send(asking, "two")
    assert (asking.state, results(asking)) == ("idle", [("ok", "noted x")] * 2)


def test_a_tool_gone_when_allowed_does_not_run(asking: Dialog, script: Script, minds: Minds) -> None:
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "Then not."})
    send(asking, "go")
    minds()
    answer(asking, "Allow")
    ((status, text),) = results(asking)
    assert (asking.state, status) == ("idle", "error") and "There is no tool" in text


@pytest.mark.parametrize("name", ["read file", "x" * 300, "查询" * 100, "nul\x00"])
def test_a_name_that_no_tool_has_is_answered_and_stored(asking: Dialog, script: Script, name: str) -> None:
    script({"match": "go", "tool_calls": [{"name": name, "arguments": {}}]}, {"text": "Then not."})
    send(asking, "go")
    ((status, text),) = results(asking)
    assert (asking.state, status) == ("idle", "error") and "There is no tool" in text


def test_a_setting_that_changes_holds_for_the_next_call(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [BOOK, REMEMBER]}, {"text": "Done."})
    send(asking, "go")
    Agent.objects.update(tool_approval="never")
    answer(asking, "Refuse")
    assert [status for status, _ in results(asking)] == ["error", "ok"]
    Agent.objects.update(tool_approval="always")
    script({"match": "say", "tool_calls": [ECHO]}, {"text": "Done."})
    send(asking, "say")
    assert open_question(asking).tool == "desk_echo"


def test_a_call_of_unknown_outcome_is_not_run_by_allowing_it(asking: Dialog, script: Script) -> None:
    """Its worker died in it when nobody had to be asked; now somebody would have to be."""
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "I see."})
    send(asking, "go")
    call_id = open_question(asking).tool_call_id
    asking.questions.all().delete()
    Dialog.objects.filter(pk=asking.pk).update(state="queued", running_call=call_id)
    drive(asking.pk)
    assert [status for status, _ in results(asking)] == ["unknown"]


def test_a_person_is_asked_once_for_all_tries(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [{"name": "desk_fail", "arguments": {}}]}, {"text": "It failed."})
    send(asking, "go")
    answer(asking, "Allow")
    assert (asking.state, asking.questions.count()) == ("idle", 1)
    assert [status for status, _ in results(asking)] == ["error"]


def test_an_answer_to_the_agent_allows_nothing(asking: Dialog, script: Script) -> None:
    """Not even where the agent asks in the same words, beside the call and before it."""
    script({"match": "go", "tool_calls": [ASK, REMEMBER]}, {"text": "Done."})
    send(asking, "go")
    assert open_question(asking).tool == ""
    answer(asking, "Allow")
    assert open_question(asking).tool == "desk_remember"
    assert results(asking) == [("ok", "Allow")]
    answer(asking, "Allow")
    assert results(asking)[1] == ("ok", "noted the boat leaves at nine")


@pytest.mark.parametrize("at", ["asked", "allowed"])
@pytest.mark.parametrize("way", ["close", "stop", "clear", "rewrite"])
def test_what_people_do_meanwhile(asking: Dialog, script: Script, at: str, way: str) -> None:
    """No call runs that was not allowed; one that was allowed, and not stopped, runs before the context changes."""
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "Done."})
    send(asking, "go")
    if at == "allowed":
        questions.answer(open_question(asking).pk, asking.owner, "Allow")
    doings = {
        "close": lambda: messages.close(asking.pk, asking.owner),
        "stop": lambda: messages.stop(asking.pk, asking.owner),
        "clear": lambda: rewrite_requests.clear(asking.pk, "Goal: test", asking.owner),
        "rewrite": lambda: rewrite_requests.request(asking.pk, "summarize", asking.owner),
    }
    refused = at == "asked" and way in ("clear", "rewrite")
    try:
        doings[way]()
        assert not refused
    except Conflict as conflict:
        assert refused and conflict.code == "dialog_waiting"
    drive(asking.pk)
    asking.refresh_from_db()
    ran = [text for _, text in results(asking)] == ["booked"]
    assert ran == (at == "allowed" and way in ("clear", "rewrite"))


@pytest.mark.parametrize("words", ["Allow", "Always allow in this dialog"])
def test_a_branch_of_the_dialog_asks_for_itself(asking: Dialog, script: Script, words: str) -> None:
    script({"match": "go|on", "tool_calls": [BOOK]}, {"text": "Done."})
    send(asking, "go")
    reply = asking.turns.get(role="assistant")
    branch = forks.Branch(asking.pk, reply.seq, asking.owner)
    with pytest.raises(Conflict, match="waits for its result"):
        forks.fork(branch)
    answer(asking, words)
    made = forks.fork(branch)
    send(made, "on")
    assert open_question(made).tool == "desk_book_trip_now"
    assert [result[0] for result in results(made)] == ["ok"]  # the copy


def test_a_button_that_refuses_needs_no_reason(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "Then not."})
    send(asking, "go")
    browser_of(asking.owner).post(f"/q4h/{open_question(asking).pk}/answer/", {"text": " ", "refuse": "yes"})
    assert [status for status, _ in results(asking)] == ["error"]


def test_of_two_answers_the_first_holds(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "Then not."})
    send(asking, "go")
    question: UUID = open_question(asking).pk
    questions.answer(question, asking.owner, "Refuse")
    with pytest.raises(Conflict, match="answered by"):
        questions.answer(question, asking.owner, "Allow")
    drive(asking.pk)
    assert [status for status, _ in results(asking)] == ["error"]


def test_who_may_not_act_allows_nothing(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [BOOK]}, {"text": "Done."})
    send(asking, "go")
    stranger = UserFactory.create()
    with pytest.raises(NotFound):
        questions.answer(open_question(asking).pk, stranger, "Allow")
    reader = make_operator()
    reader.user_permissions.remove(Permission.objects.get(codename="act_in_all_dialogs"))
    reader = User.objects.get(pk=reader.pk)
    with pytest.raises(Forbidden):
        questions.answer(open_question(asking).pk, reader, "Allow")


def test_arguments_are_shown_as_they_are(asking: Dialog, script: Script) -> None:
    """Characters that turn the text round, hide, or break lines; a quotation mark; and 200 kB."""
    tricky = 'ann\u202e\u2066moc\u2069\u200b\u2028",\n  "sum": "1 é 元 ' + "x" * 200_000
    script({"match": "go", "tool_calls": [noting(tricky)]}, {"text": "Done."})
    send(asking, "go")
    first, shown, last = open_question(asking).arguments.split("\n")
    assert (first, last, shown.isprintable()) == ("{", "}", True)
    assert r"ann\u202e\u2066moc\u2069\u200b\u2028\",\n  \"sum\": \"1 é 元 xxx" in shown
    answer(asking, "Allow")
    assert [status for status, _ in results(asking)] == ["ok"]


def test_deeply_nested_arguments_are_shown_as_they_came(asking: Dialog) -> None:
    text = '{"a": ' + "[" * 1_000 + '"end"' + "]" * 1_000 + "}"
    with open_change(asking.pk) as change:
        ask_for_approval(change, "desk", Call("id", "desk_book", text, ()), orjson.loads(text))
    assert asking.questions.get().arguments == text
    assert _arguments(text)[0] == text


@pytest.mark.parametrize(
    ("written", "choice"),
    [
        (" allow! ", "Allow"),
        ("ALWAYS allow in this dialog.", "Always allow in this dialog"),
        ("允许", "Allow"),
        ("拒绝。", "Refuse"),
        ("允许吗？", "允许吗？"),
        ("Do not allow", "Do not allow"),
        ("Allow it", "Allow it"),
        ("", ""),
    ],
)
def test_what_people_write(written: str, choice: str) -> None:
    assert approval_in(written) == choice


def test_who_allowed_or_refused_a_call_is_shown_at_it(asking: Dialog, script: Script) -> None:
    script(
        {"match": "go", "tool_calls": [BOOK, REMEMBER, ECHO]},
        {"match": "again", "tool_calls": [BOOK]},
        {"text": "Done."},
    )
    send(asking, "go")
    answer(asking, "Always allow in this dialog")
    answer(asking, "Refuse")
    send(asking, "again")
    results = list(asking.turns.filter(role="tool").select_related("author").order_by("position"))
    assert [turn.author for turn in results] == [asking.owner, asking.owner, None, asking.owner]
    approvals = [entry.calls[0].approval for entry in turn_entries(asking, results)]
    always, refused = asking.questions.order_by("created_at")
    assert approvals == [always, refused, None, always]
    page = browser_of(asking.owner).get(f"/d/{asking.pk}/").content.decode()
    for words in (f"Allowed by {asking.owner}, with all later calls of this tool", f"Refused by {asking.owner}"):
        assert words in page
    exported = "".join(as_markdown(asking))
    assert f"Result of desk_remember, decided by {asking.owner}" in exported and "Result of desk_echo\n" in exported


def test_only_calls_that_were_asked_for_cost_the_page_a_statement(
    asking: Dialog, script: Script, django_assert_num_queries: Any
) -> None:
    script({"match": "go", "tool_calls": [ECHO]}, {"text": "Done."})
    send(asking, "go")
    turns = list(asking.turns.filter(role="tool").select_related("author"))
    with django_assert_num_queries(0):
        assert _approvals_of(asking, turns) == {}


def test_a_notice_asks_in_its_readers_language(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [REMEMBER]}, {"text": "Done."})
    send(asking, "go")
    question = open_question(asking)
    assert text_of(question) == question.text
    with translation.override("zh-hans"):
        assert text_of(question) == f"允许 desk_remember 以这些参数运行吗？其他回答均视为拒绝。\n\n{question.arguments}"


def test_a_drafted_package_leaves_out_what_was_allowed(asking: Dialog, script: Script) -> None:
    script({"match": "go", "tool_calls": [REMEMBER]}, {"text": "Done."})
    send(asking, "go")
    answer(asking, "Allow")
    assert "Allow desk_remember" not in draft_package(asking)
