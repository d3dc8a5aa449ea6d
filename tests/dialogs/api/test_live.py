"""``/api`` against Daphne and a worker: a dialog's events as they happen."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from dialogs.accounts.api_keys import create_key
from dialogs.models import ApiKey, Dialog, SiteSettings
from tests.dialogs.factories import UserFactory
from tests.harness.live import with_agents
from tests.harness.stack import Api, Stack, eventually

TEXT = "one two three four five six seven eight nine ten " * 8
REASONING = "They say hi; I think of what to say to that."


@pytest.fixture(scope="module")
def stack(shared_stack: Stack, django_db_blocker: Any) -> Iterator[Stack]:
    usage = {"prompt_tokens": 50, "completion_tokens": 5}
    step = {"reasoning": REASONING, "text": TEXT, "chunk_delay_ms": 100, "usage": usage}
    model = {"name": "slow", "script": "slow.yaml", "context_length": 128_000}
    minds = {
        "llm": {"providers": {"play": {"name": "Play", "apiType": "scripted", "models": {"slow": model}}}},
        "team": {"members": {"slow": {"provider": "play", "model": "slow"}}},
        "slow": {"steps": [step]},
    }
    with with_agents(shared_stack, django_db_blocker, **minds) as stack:
        yield stack


@pytest.fixture
def person(stack: Stack) -> User:
    return UserFactory.create(username=f"api-{time.time_ns()}")


@pytest.fixture
def api(stack: Stack, person: User) -> Api:
    return Api(stack.base_url, create_key(person))


@pytest.fixture
def dialog_id(api: Api) -> str:
    return str(api.post("/api/dialogs", json={"agent": "slow"}).json()["id"])


def read(answer: Any) -> Iterator[dict[str, Any]]:
    """Server-sent events as {event, id, data}; comments as {comment}."""
    result: dict[str, Any] = {}
    for line in answer.iter_lines():
        if line.startswith(":"):
            yield {"comment": line}
        elif not line:
            if "data" in result:
                yield result
            result = {}
        else:
            name, _, value = line.partition(": ")
            result[name] = json.loads(value) if name == "data" else value


def stream(api: Api, dialog_id: str, **headers: str) -> Any:
    address = f"/api/dialogs/{dialog_id}/events"
    return api.stream("GET", address, headers={"Accept": "text/event-stream", **headers}, timeout=30)


def until_idle(events: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    result = []
    for event in events:
        result.append(event)
        if event.get("event") == "state" and event["data"]["data"]["state"] == "idle":
            return result
    raise AssertionError("the stream ended")


def test_events_come_as_they_happen_with_live_text_between(api: Api, dialog_id: str) -> None:
    with stream(api, dialog_id) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        events = read(answer)
        api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
        result = until_idle(events)
    durable = [event for event in result if "id" in event]
    assert [int(event["id"]) for event in durable] == list(range(1, len(durable) + 1))
    listed = api.get(f"/api/dialogs/{dialog_id}/events").json()
    assert [(event["event"], int(event["id"])) for event in durable] == [(row["type"], row["seq"]) for row in listed]
    assert durable[-1]["data"] == listed[-1]
    live = {"draft": "", "reasoning": ""}
    for event in result:
        if (name := event.get("event")) in live:
            live[name] = live[name][: event["data"]["pos"]] + event["data"]["text"]
    assert len([event for event in result if event.get("event") == "draft"]) > 3
    assert live == {"draft": TEXT, "reasoning": REASONING}
    turn = api.get(f"/api/dialogs/{dialog_id}/turns").json()[-1]
    assert (turn["text"], turn["reasoning"]["text"]) == (TEXT, REASONING)
    assert turn["reasoning"]["ms"] > 0


def test_a_reader_that_comes_late_gets_the_text_from_its_beginning(api: Api, dialog_id: str) -> None:
    api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
    with stream(api, dialog_id) as first:
        texts = (event for event in read(first) if event.get("event") == "draft")
        next(texts), next(texts)
    with stream(api, dialog_id) as answer:
        result = until_idle(read(answer))
    drafts = [event["data"] for event in result if event.get("event") == "draft"]
    assert drafts[0]["pos"] == 0
    assert len(drafts[0]["text"]) > 12


def test_last_event_id_goes_on_where_the_reader_was(api: Api, dialog_id: str) -> None:
    api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
    eventually(lambda: api.get(f"/api/dialogs/{dialog_id}").json()["state"] == "idle")
    whole = api.get(f"/api/dialogs/{dialog_id}/events").json()
    with stream(api, dialog_id, **{"Last-Event-ID": str(whole[2]["seq"])}) as answer:
        events = read(answer)
        assert [next(events)["data"] for _ in whole[3:]] == whole[3:]


@pytest.mark.parametrize("query", ["after=99", "after=2&of=another"])
def test_a_cursor_of_another_database_starts_over(api: Api, dialog_id: str, query: str) -> None:
    api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
    eventually(lambda: api.get(f"/api/dialogs/{dialog_id}").json()["state"] == "idle")
    whole = api.get(f"/api/dialogs/{dialog_id}/events").json()
    address = f"/api/dialogs/{dialog_id}/events?{query}"
    with api.stream("GET", address, headers={"Accept": "text/event-stream"}, timeout=30) as answer:
        events = read(answer)
        first = next(events)
        assert (first["event"], first["id"]) == ("resync", "0")
        assert [next(events)["data"] for _ in whole] == whole


def test_an_open_stream_notices_a_restored_database(api: Api, dialog_id: str) -> None:
    api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
    with stream(api, dialog_id) as answer:
        events = read(answer)
        until_idle(events)
        SiteSettings.objects.update_or_create(singleton=True, defaults={"generation": "restored"})
        api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Again"})
        rest = [event for event in until_idle(events) if "id" in event]
        assert (rest[0]["event"], rest[0]["data"]["data"]) == ("resync", {"generation": "restored"})
        assert [int(event["id"]) for event in rest[1:5]] == [1, 2, 3, 4]
    SiteSettings.objects.update(generation="")


def test_a_stream_ends_when_its_key_is_revoked(api: Api, person: User, dialog_id: str) -> None:
    with stream(api, dialog_id) as answer:
        ApiKey.objects.filter(owner=person).update(revoked_at="2026-01-01T00:00Z")
        began = time.monotonic()
        assert all("comment" in event for event in read(answer))
        assert time.monotonic() - began < 25


def test_quiet_streams_are_kept_alive_and_hold_no_database_connection(api: Api, person: User, dialog_id: str) -> None:
    """More streams than the pool has connections (16), and the next call is answered all the same."""
    clients = [
        httpx2.Client(headers=api.headers, base_url=api.base_url, timeout=30, trust_env=False) for _ in range(24)
    ]
    answers = [stream(client, dialog_id) for client in clients]  # type: ignore[arg-type]
    opened = [answer.__enter__() for answer in answers]
    try:
        assert all(answer.status_code == 200 for answer in opened)
        began = time.monotonic()
        assert api.get("/api/agents").status_code == 200
        assert time.monotonic() - began < 3
        assert next(read(opened[0]))["comment"] == ": keep-alive"
    finally:
        for answer in answers:
            answer.__exit__(None, None, None)


def test_bodies_have_a_limit_that_is_told_in_json(api: Api, dialog_id: str) -> None:
    answer = api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "a" * 33_600_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "message_too_large")
    answer = api.post("/v1/chat/completions", content=b"a" * 33_600_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_the_export_comes_whole(api: Api, dialog_id: str) -> None:
    api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hi"})
    eventually(lambda: api.get(f"/api/dialogs/{dialog_id}").json()["state"] == "idle")
    result = api.get(f"/api/dialogs/{dialog_id}/export").json()
    assert [turn["text"] for turn in result["turns"]] == ["Hi", TEXT]
    assert TEXT in api.get(f"/api/dialogs/{dialog_id}/export?format=md").text
    assert Dialog.objects.get(pk=dialog_id).title == "Hi"
