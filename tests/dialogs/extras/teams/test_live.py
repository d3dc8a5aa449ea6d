"""A team of three levels against Daphne and a worker."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dialogs.accounts.api_keys import create_key
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Question
from tests.dialogs.extras.teams.conftest import asking
from tests.dialogs.factories import UserFactory
from tests.harness.live import with_agents
from tests.harness.stack import Api, Stack, eventually

SCRIPT = [
    {"match": "plan the trip", "tool_calls": [asking("Find the hut"), asking("Find the path", "guide")]},
    {"match": r"(?s)Heron.*(North|Hut of)", "text": "We sleep in the Heron, and walk along the north side."},
    {"match": "(?s)^Find the hut", "tool_calls": [asking("Name the hut", "archive")]},
    {"match": "^Name the hut", "text": "Heron"},
    {"match": "^Heron", "text": "The hut is the Heron."},
    {"match": "^Find the path", "tool_calls": [{"name": "ask_human", "arguments": {"question": "North or south?"}}]},
    {"match": "^North", "text": "North"},
    {"text": "I do not know what this is."},
]


@pytest.fixture(scope="module")
def stack(shared_stack: Stack, django_db_blocker: Any) -> Iterator[Stack]:
    model = {"name": "play", "script": "play.yaml", "context_length": 128_000}
    agent = {"provider": "play", "model": "play", "recall": False}
    minds = {
        "llm": {"providers": {"play": {"name": "Play", "apiType": "scripted", "models": {"play": model}}}},
        "team": {
            "members": {
                "lead": {**agent, "colleagues": ["scout", "guide"]},
                "scout": {**agent, "colleagues": ["archive"]},
                "guide": agent,
                "archive": agent,
            }
        },
        "play": {"steps": SCRIPT},
    }
    with with_agents(shared_stack, django_db_blocker, **minds) as stack:
        yield stack


def test_a_team_works_side_by_side_asks_a_person_and_reports(stack: Stack) -> None:
    api = Api(stack.base_url, create_key(UserFactory.create(username="teams-ada")))
    path = f"/api/dialogs/{api.post('/api/dialogs', json={'agent': 'lead'}).json()['id']}"
    root = Dialog.objects.get(pk=path.rpartition("/")[2])
    program = ThreadPoolExecutor(1).submit(
        api.post,
        "/v1/chat/completions",
        json={"model": "lead", "messages": [{"role": "user", "content": "plan the trip"}]},
        headers={"X-Dominds-Dialog": str(root.pk)},
    )

    question = eventually(lambda: Question.objects.filter(dialog__owner=root.owner, state="open").first())
    eventually(lambda: SideDialog.objects.filter(root=root, answered_at__isnull=False).count() == 2)
    root.refresh_from_db()
    assert (root.state, root.lease_owner) == ("queued", "")
    assert [row["id"] for row in api.get("/api/dialogs").json()] == [str(root.pk)]
    assert [row["id"] for row in api.get("/api/questions").json()] == [str(question.pk)]

    api.post(f"/api/questions/{question.pk}/answer", json={"text": "North"})
    eventually(lambda: api.get(path).json()["state"] == "idle")
    results = root.turns.filter(role="tool").order_by("position").values_list("text", flat=True)
    assert sorted(results) == ["North", "The hut is the Heron."]
    told = root.turns.filter(role="assistant").last()
    assert told is not None and told.text.startswith("We sleep in the Heron")
    assert program.result(30).json()["choices"][0]["message"]["content"].split("\n\n") == [
        "Side dialog scout begins: “Find the hut”",
        "Side dialog guide begins: “Find the path”",
        "Side dialog guide waits for a person: “North or south?”",
        told.text,
    ]
    assert sorted(SideDialog.objects.filter(root=root).values_list("name", "level")) == [
        ("archive", 2),
        ("guide", 1),
        ("scout", 1),
    ]
