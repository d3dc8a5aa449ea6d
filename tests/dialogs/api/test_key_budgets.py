"""What a key has set to work counts against its budget, by whatever call;
and each call that would is refused once that is spent."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from dialogs.accounts.api_keys import create_key, key_of
from dialogs.actions import reminders, rounds
from dialogs.actions.messages import create_dialog
from dialogs.api.application import api
from dialogs.extras.teams import side_dialogs
from dialogs.extras.teams.models import SideDialog
from dialogs.extras.v1.mcp.tools import ACTING
from dialogs.extras.v1.urls import urlpatterns
from dialogs.models import Agent, ApiKey, Dialog, EmbeddingUse, Generation, Question, Round
from dialogs.permissions import RESOLVE
from dialogs.runtime.driver import drive
from dialogs.state import State
from dialogs.store.change import open_change
from dialogs.store.charging import costs_of_keys
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.calls import generation
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import PLAIN, Zoo
from tests.dialogs.factories import AgentFactory, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.extras]

UNDER_WAY = (State.QUEUED, State.GENERATING)
Call = tuple[str, Any]  # a path below /api, and the body
Make = Callable[[Zoo], Call]


def on(make: Callable[[Zoo], Dialog], path: str, body: Any = None) -> Make:
    return lambda zoo: (f"/dialogs/{make(zoo).pk}{path}", body)


def of_question(make: Callable[[Zoo], Dialog], path: str, body: Any = None) -> Make:
    return lambda zoo: (f"/questions/{Question.objects.get(dialog=make(zoo)).pk}{path}", body)


def talked(zoo: Zoo) -> Dialog:
    return zoo.talk("one", "two")


def with_reminder(zoo: Zoo) -> Dialog:
    dialog = talked(zoo)
    reminders.add(dialog.pk, "Mind the gap")
    return dialog


def of_reminder(body: Any) -> Make:
    def make(zoo: Zoo) -> Call:
        row = with_reminder(zoo).reminders.get()
        return f"/dialogs/{row.dialog_id}/reminders/{row.pk}", body

    return make


def of_rewrite(zoo: Zoo) -> Call:
    run = RemediationRun.objects.filter(dialog=zoo.rewritten()).latest("pk")
    return f"/dialogs/{run.dialog_id}/remediations/{run.pk}/undo", None


def of_clear(zoo: Zoo) -> Call:
    dialog = talked(zoo)
    with open_change(dialog.pk) as change:
        rounds.clear_within(change, "Go on with step 3.", cause=Round.Cause.PERSON)
    return f"/dialogs/{dialog.pk}/clear/undo", None


def of_side_dialog(zoo: Zoo) -> Call:
    dialog, other = talked(zoo), AgentFactory.create()
    Agent.objects.filter(pk=dialog.agent_id).update(extras={"colleagues": [other.pk]})
    with open_change(dialog.pk) as change:
        side_dialogs.ask(change, side_dialogs.Ask("call_1_1", other.pk, "Find the hut"))
    return f"/dialogs/{dialog.pk}/team/{SideDialog.objects.get(root=dialog).pk}", None


DIALOG, TURN, QUESTION = "/dialogs/{dialog_id}", "/dialogs/{dialog_id}/turns/{seq}", "/questions/{question_id}"
REWRITES = ("prune", "auto-manage", "summarize", "break", "compact", "fresh-start")
ASKS: dict[str, Make] = {  # a model, now or soon
    f"POST {DIALOG}/messages": on(talked, "/messages", {"text": "three"}),
    f"POST {DIALOG}/retry": on(Zoo.failed, "/retry"),
    f"POST {TURN}/regenerate": on(talked, "/turns/4/regenerate", {}),
    f"POST {TURN}/edit": on(talked, "/turns/3/edit", {"text": "two and a half"}),
    f"POST {QUESTION}/answer": of_question(Zoo.waiting, "/answer", {"text": "EUR"}),
    f"POST {QUESTION}/cancel": of_question(Zoo.waiting, "/cancel"),
    f"POST {QUESTION}/resolve": of_question(Zoo.suspended, "/resolve", {"action": "retry"}),
    **{f"POST {DIALOG}/{verb}": on(talked, f"/{verb}") for verb in REWRITES},
}
ASKS_NONE: dict[str, Make] = {
    "POST /dialogs": lambda zoo: ("/dialogs", {"agent": zoo.agent.pk}),
    f"PATCH {DIALOG}": on(talked, "", {"group": "Harbour"}),
    f"DELETE {DIALOG}": on(talked, ""),
    f"PUT {DIALOG}/model": on(talked, "/model", {"model": ""}),
    f"DELETE {DIALOG}/messages/{{seq}}": on(Zoo.queued, "/messages/2"),
    f"POST {DIALOG}/stop": on(Zoo.queued, "/stop"),
    f"POST {DIALOG}/close": on(talked, "/close"),
    f"POST {DIALOG}/clear": on(talked, "/clear", {"reminder_content": "Go on with step 3."}),
    f"POST {DIALOG}/clear/undo": of_clear,
    f"POST {DIALOG}/recall": on(talked, "/recall", {"text": "Which harbour?"}),
    f"POST {DIALOG}/remediations/{{run_id}}/undo": of_rewrite,
    f"POST {TURN}/fork": on(talked, "/turns/2/fork", {}),
    f"PUT {TURN}/feedback": on(talked, "/turns/2/feedback", {"feedback": "up"}),
    f"PUT {TURN}/pin": on(talked, "/turns/2/pin", {"pinned": True}),
    "POST /questions": lambda zoo: ("/questions", {"text": "Ship it?", "dialog": str(talked(zoo).pk)}),
    f"POST {DIALOG}/reminders": on(talked, "/reminders", {"text": "Mind the gap"}),
    f"PATCH {DIALOG}/reminders/{{reminder_id}}": of_reminder({"text": "Mind it"}),
    f"DELETE {DIALOG}/reminders/{{reminder_id}}": of_reminder(None),
    f"PUT {DIALOG}/team/task": on(talked, "/team/task", {"section": "goal", "text": "A hut", "version": 0}),
    f"DELETE {DIALOG}/team/{{side_id}}": of_side_dialog,
    "PATCH /settings": lambda zoo: ("/settings", {"theme": "dark"}),
}


class Program:
    """With a key whose budget is a dollar."""

    def __init__(self, zoo: Zoo) -> None:
        self.secret = create_key(zoo.owner, budget_usd=Decimal(1))
        key = key_of(self.secret)
        assert key is not None
        self.key: ApiKey = key

    def spend(self) -> None:
        EmbeddingUse.objects.create(
            person=self.key.owner, key=self.key, began_at=timezone.now(), agent="a", provider="p", model="m", cost_usd=1
        )

    def __call__(self, method: str, path: str, body: Any = None) -> HttpResponse:
        headers = {"Authorization": f"Bearer {self.secret}", "Accept": "application/json, text/event-stream"}
        client: Any = Client(headers=headers)
        data = b"" if body is None else orjson.dumps(body)
        answer: HttpResponse = client.generic(method, path, data, content_type="application/json")
        return answer


@pytest.fixture
def zoo(script: Script) -> Zoo:
    made = Zoo(script)
    made.owner.user_permissions.add(Permission.objects.get(codename=RESOLVE))
    return made


def under_way() -> dict[Any, Any]:
    return dict(Dialog.objects.filter(state__in=UNDER_WAY).values_list("pk", "key"))


def test_of_every_call_it_is_known_whether_it_asks_a_model() -> None:
    calls = {
        f"{method.upper()} {path.removeprefix('/api')}"
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
        if method not in ("get", "head")
    }
    assert calls == {*ASKS, *ASKS_NONE, "POST /import"}, "a form, which stores what others answered"
    assert {function.__name__ for function in ACTING} - {"answer_question", "resolve_question"} == {
        "ask_human",
        "add_reminder",
        "remove_reminder",
    }
    asking = {"v1-chat-completions", "v1-messages", "v1-responses", "v1-compact", "v1-embeddings", "v1-use"}
    known = {pattern.name for pattern in urlpatterns if pattern.name}
    assert known - asking == {"v1-models", "v1-model", "v1-count-tokens", "v1-input-tokens", "v1-response", "v1-cancel"}


@pytest.mark.parametrize("call", ASKS)
def test_a_call_that_asks_a_model_is_the_keys_to_pay(zoo: Zoo, call: str) -> None:
    program = Program(zoo)
    path, body = ASKS[call](zoo)
    program.spend()
    before = under_way()
    refused = program("POST", f"/api{path}", body)
    assert (refused.status_code, orjson.loads(refused.content)["error"]["code"]) == (429, "budget_exceeded")
    assert 0 < int(refused["Retry-After"]) <= 31 * 24 * 3600
    assert under_way() == before, "nothing was changed"
    EmbeddingUse.objects.all().delete()
    assert program("POST", f"/api{path}", body).status_code < 300
    ((dialog_id, key),) = under_way().items()
    assert key == program.key.pk
    zoo.script(PLAIN)
    drive(dialog_id)
    made = Generation.objects.filter(dialog=dialog_id, key=program.key)
    assert made.exists() or call.rpartition("/")[2] in (*REWRITES, "resolve")


@pytest.mark.parametrize("call", ASKS_NONE)
def test_a_call_that_asks_none_is_free(zoo: Zoo, call: str) -> None:
    program = Program(zoo)
    zoo.owner.groups.add(Group.objects.create(name="Harbour"))
    path, body = ASKS_NONE[call](zoo)
    program.spend()
    method = call.partition(" ")[0]
    assert program(method, f"/api{path}", body).status_code < 300
    assert program.key.pk not in under_way().values()
    if call.endswith("/clear"):
        (dialog_id,) = under_way()
        drive(dialog_id)
    assert not Generation.objects.filter(key=program.key).exists()


def test_agents_elsewhere_and_as_models_are_refused_alike(zoo: Zoo) -> None:
    program = Program(zoo)
    question = Question.objects.get(dialog=zoo.waiting())
    program.spend()
    arguments = {"name": "answer_question", "arguments": {"question": str(question.pk), "text": "EUR"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    result = orjson.loads(program("POST", "/mcp", body).content)["result"]
    assert result["isError"]
    assert (
        f"The calls of the key {program.key} have cost $1.00 this month, and its budget is $1.00."
        in result["content"][0]["text"]
    )
    assert Question.objects.get(pk=question.pk).state == Question.State.OPEN
    for path in ("chat/completions", "messages", "responses", "responses/compact", "embeddings"):
        refused = program("POST", f"/v1/{path}", {})
        assert (refused.status_code, refused["x-should-retry"]) == (429, "false")
        assert int(refused["Retry-After"]) > 0


def test_a_person_works_at_no_keys_cost(zoo: Zoo) -> None:
    """Nor does what was before the key, or another key, count; and what a month has cost ends with it."""
    program, dialog = Program(zoo), talked(zoo)
    generation(dialog, cost_usd=Decimal(9))
    generation(dialog, cost_usd=Decimal("0.25"), key=program.key)
    generation(dialog, cost_usd=Decimal(9), key=program.key, ago=timedelta(days=32))
    generation(dialog, cost_usd=Decimal(9), key=key_of(create_key(zoo.owner)))
    assert costs_of_keys([program.key.pk])[program.key.pk].usd == Decimal("0.25")
    assert program("POST", f"/api/dialogs/{dialog.pk}/messages", {"text": "three"}).status_code == 202
    drive(dialog.pk)
    browser_of(zoo.owner).post(f"/d/{dialog.pk}/messages/", {"text": "four"})
    drive(dialog.pk)
    replies = Generation.objects.filter(dialog=dialog, purpose="reply", cost_usd=None).order_by("pk")
    assert list(replies.values_list("key", flat=True))[-2:] == [program.key.pk, None]


def test_a_key_that_only_reads_has_no_budget() -> None:
    browser = browser_of(UserFactory.create())
    page = browser.post("/settings/keys/", {"scope": "read", "budget_usd": "5"})
    assert page.status_code == 400
    assert "it has no budget" in page.content.decode()
    for scope in ("all", "v1"):
        assert browser.post("/settings/keys/", {"scope": scope, "budget_usd": "5"}).status_code == 200
    assert set(ApiKey.objects.values_list("scope", "budget_usd")) == {("all", Decimal(5)), ("v1", Decimal(5))}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--days", "0"),
        ("--days", "-1"),
        ("--days", "99999999999"),
        ("--keep-days", "0"),
        ("--budget-usd", "-1"),
        ("--budget-usd", "nan"),
        ("--budget-usd", "1e30"),
    ],
)
@pytest.mark.django_db
def test_the_command_holds_a_key_to_the_bounds_of_the_page(option: str, value: str) -> None:
    """``--days 0`` made a key that holds for ever."""
    owner = UserFactory.create()
    with pytest.raises(CommandError, match=option):
        call_command("apikey", owner.username, f"{option}={value}")
    assert not ApiKey.objects.exists()


def test_thirty_messages_at_once_do_not_pass_a_cent(script: Script) -> None:
    """What a key has set to work and has not ended counts as a cent."""
    script({"text": "Hello."})
    owner, agent = UserFactory.create(), AgentFactory.create()
    key = create_key(owner, budget_usd=Decimal("0.01"))
    dialogs = [create_dialog(owner, agent.pk) for _ in range(30)]

    def post(dialog: Dialog) -> int:
        headers, path = {"Authorization": f"Bearer {key}"}, f"/api/dialogs/{dialog.pk}/messages"
        try:
            answer = Client().post(path, {"text": "Hi"}, content_type="application/json", headers=headers)
        finally:
            connection.close()  # else each thread keeps one of the pool's until it is collected
        return int(answer.status_code)

    with ThreadPoolExecutor(10) as threads:
        answers = Counter(threads.map(post, dialogs))
    assert answers == {202: 1, 429: 29}
    drive(Dialog.objects.get(owner=owner, state="queued").pk)
    assert post(dialogs[0]) == 202
