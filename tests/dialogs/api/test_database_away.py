"""A database that is away for a moment: reads are asked again, and a change says what is known of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import yaml
from django.db import connection
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog, EmbeddingUse, Turn
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, make_dialog
from tests.dialogs.html_tree import in_one_line
from tests.dominds.llm.model_server import ModelServer, plain, running_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def run(*statements: str) -> None:
    """On a connection of its own."""
    settings = connection.get_connection_params()
    known = {name: settings[name] for name in ("dbname", "user", "password", "host", "port") if name in settings}
    with psycopg.connect(**known, autocommit=True) as other:
        for statement in statements:
            other.execute(statement.encode())


def end_connection() -> None:
    """The server ends the connection that the next request would use."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    run(f"SELECT pg_terminate_backend({backend}, 2000)")


@contextmanager
def ending_with_a(table: str, when: str) -> Iterator[None]:
    """The server ends the connection on which a row is stored: at the statement, or in place of the commit's reply."""
    at_commit = "DEFERRABLE INITIALLY DEFERRED" if when == "commit" else ""
    run(
        "CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$",
        f"CREATE CONSTRAINT TRIGGER end_it AFTER INSERT OR UPDATE ON dialogs_{table} {at_commit} "
        "FOR EACH ROW EXECUTE FUNCTION end_it()",
    )
    try:
        yield
    finally:
        connection.close()
        run(f"DROP TRIGGER end_it ON dialogs_{table}", "DROP FUNCTION end_it")


def test_a_full_disk_is_called_so(script: Script) -> None:
    dialog = make_dialog()
    client = Client(raise_request_exception=False)
    client.force_login(dialog.owner)
    run(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END$$",
        "CREATE TRIGGER no_room BEFORE INSERT ON dialogs_turn EXECUTE FUNCTION no_room()",
    )
    try:
        answer = client.post(f"/d/{dialog.pk}/messages/", {"text": "Hi"})
    finally:
        run("DROP TRIGGER no_room ON dialogs_turn", "DROP FUNCTION no_room")
    assert answer.status_code == 503
    page = in_one_line(answer.content.decode())
    assert "<h1> The server's disk is full </h1>" in page
    assert "Nothing was changed. Try again when whoever runs Dominds has made room." in page


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return make_dialog()


@pytest.fixture
def double() -> Iterator[ModelServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def browser(dialog: Dialog) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(dialog.owner)
    return client


def api(dialog: Dialog) -> Client:
    key = create_key(dialog.owner, name="test")
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("address", ["/", "/d/{}/", "/d/{}/context/", "/q4h/", "/import/", "/settings/"])
def test_a_page_is_read_again_when_its_connection_was_cut(dialog: Dialog, browser: Client, address: str) -> None:
    end_connection()
    assert browser.get(address.format(dialog.pk)).status_code == 200


def test_a_call_that_reads_is_answered_when_its_connection_was_cut(dialog: Dialog) -> None:
    client = api(dialog)
    end_connection()
    assert client.get(f"/api/dialogs/{dialog.pk}").status_code == 200


@pytest.mark.parametrize("when", ["statement", "commit"])
def test_nothing_was_changed_is_said_where_it_is_known(dialog: Dialog, browser: Client, when: str) -> None:
    client = api(dialog)
    with ending_with_a("turn", when):
        sent = {"text": "hello", "client_message_id": uuid4().hex}
        answer = client.post(f"/api/dialogs/{dialog.pk}/messages", sent, content_type="application/json")
        page = browser.post(f"/d/{dialog.pk}/messages/", {"text": "hello"})
    assert (answer.status_code, page.status_code) == (503, 503)
    assert int(answer["Retry-After"]) > 0
    assert int(page["Retry-After"]) > 0
    problem, shown = answer.json()["error"], page.content.decode()
    assert problem["code"] == "unavailable"
    if when == "statement":
        assert "stored" not in problem
        assert "Nothing was changed" in problem["message"]
        assert "Nothing was changed" in shown
    else:
        assert problem["stored"] == "unknown"
        assert "same client_message_id" in problem["message"]
        assert "Nothing was changed" not in problem["message"] + shown
        assert "may have been stored" in shown


@pytest.mark.parametrize("when", ["statement", "commit"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "hello"}]}),
        ("messages", {"max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}),
        ("responses", {"input": "hello"}),
    ],
)
def test_clients_of_v1_are_told_in_their_own_words(dialog: Dialog, path: str, body: dict[str, Any], when: str) -> None:
    client = api(dialog)
    with ending_with_a("turn", when):
        answer = client.post(f"/v1/{path}", {"model": dialog.agent_id, **body}, content_type="application/json")
    assert_v1_is_away(answer, when)


def assert_v1_is_away(answer: Any, when: str) -> None:
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    message = "may have been stored" if when == "commit" else "database is busy or away"
    assert message in answer.json()["error"]["message"]


def test_embeddings_whose_cost_cannot_be_noted_are_no_answer(
    dialog: Dialog, settings: Any, double: ModelServer
) -> None:
    models = {"name": "E", "apiType": "openai-compatible", "baseUrl": double.url, "models": {"m": {"name": "M"}}}
    (Path(settings.MINDS_DIR) / "llm.yaml").write_text(yaml.safe_dump({"providers": {"e": models}}))
    client, sent = api(dialog), {"model": AgentFactory.create(provider="e", model="m").pk, "input": "hello"}
    answer = plain(200, json.dumps({"object": "list", "data": [], "usage": {"prompt_tokens": 1, "total_tokens": 1}}))
    for when in ("statement", "commit"):
        double.will(answer)
        with ending_with_a("embeddinguse", when):
            assert_v1_is_away(client.post("/v1/embeddings", sent, content_type="application/json"), when)
    double.will(answer)
    assert client.post("/v1/embeddings", sent, content_type="application/json").status_code == 200
    assert EmbeddingUse.objects.get().calls == 1


@pytest.mark.parametrize("when", ["statement", "commit"])
@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("feedback", {"feedback": "up"}),
        ("fork", {"request_id": "one"}),
        ("regenerate", {"request_id": "one"}),
        ("edit", {"request_id": "one", "text": "hello again"}),
    ],
)
def test_ratings_and_branches_are_said_to_be_stored_or_not(
    dialog: Dialog, browser: Client, path: str, given: dict[str, str], when: str
) -> None:
    for seq, (role, status) in enumerate([("user", "answered"), ("assistant", "complete")] * 2, 1):
        place = {"seq": seq, "position": seq, "round_number": 1}
        Turn.objects.create(dialog=dialog, **place, role=role, status=status, text=f"text {seq}")
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=4, last_position=4)
    address, sent = f"/d/{dialog.pk}/{path}/", {"seq": 3 if path == "edit" else 4, **given}
    with ending_with_a("turn", when):
        page = browser.post(address, sent)
    assert page.status_code == 503
    assert int(page["Retry-After"]) > 0
    shown = page.content.decode()
    assert ("Nothing was changed" in shown, "may have been stored" in shown) == (when == "statement", when == "commit")
    assert {browser.post(address, sent).status_code for _ in range(2)} <= {204, 302}
    made, liked = Dialog.objects.exclude(pk=dialog.pk).count(), dialog.turns.filter(liked=True).count()
    assert (made, liked) == ((0, 1) if path == "feedback" else (1, 0))


def test_a_repeated_message_is_stored_once_after_an_unknown_outcome(dialog: Dialog) -> None:
    client, sent = api(dialog), {"text": "hello", "client_message_id": uuid4().hex}
    address = f"/api/dialogs/{dialog.pk}/messages"
    with ending_with_a("turn", "commit"):
        assert client.post(address, sent, content_type="application/json").status_code == 503
    seqs = {client.post(address, sent, content_type="application/json").json()["seq"] for _ in range(2)}
    assert len(seqs) == 1
    assert dialog.turns.count() == 1


def test_a_fault_of_ours_is_not_blamed_on_the_database(browser: Client) -> None:
    run("ALTER TABLE django_session RENAME TO away")
    try:
        assert browser.get("/").status_code == 500
    finally:
        run("ALTER TABLE away RENAME TO django_session")
