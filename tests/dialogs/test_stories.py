"""Four ways to keep a context healthy, in windows of four sizes, over the page, ``/api`` and ``/v1``.

A talk of twelve messages fills the window. Against Daphne, a worker and the strict doubles of two servers, which count
by the model's own vocabulary. CI plays each way and each window over each door; ``make bench BENCHMARKS=stories`` plays
all 48.
"""

import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog, Generation, Turn
from dialogs.state import State
from remediation.models import RemediationRun
from tests.dialogs.factories import UserFactory
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble, LocalDouble
from tests.harness.browser import session_key
from tests.harness.live import with_agents
from tests.harness.stack import Api, Stack, eventually
from tests.harness.talks import Shape, Talker, messages_of

MODEL = "llama-3.1-8b-instruct"
WINDOWS = (4_096, 8_192, 32_768, 200_000)
POLICIES = ("none", "autocompaction", "breaking", "retention")
BREAKING_LIMIT = 5_000
MESSAGES = 12
MESSAGE_PERCENT = 9  # of what the policy works within
RESTING = {State.IDLE, State.SUSPENDED, State.FAILED}
NOTICES = ("Compacting conversation history...", "Context compacted, continuing...")


def key_of(policy: str, window: int) -> str:
    return f"{'studio' if policy == 'autocompaction' else 'llama'}-{window}"


@pytest.fixture(scope="module")
def servers() -> Iterator[Mapping[str, LocalDouble]]:
    kinds: dict[str, type[LocalDouble]] = {"studio": LMStudioDouble, "llama": LlamaCppDouble}
    with ExitStack() as opened:
        yield {
            f"{name}-{window}": opened.enter_context(kind(model=MODEL, window=window, by_template=True))
            for name, kind in kinds.items()
            for window in WINDOWS
        }


@pytest.fixture(scope="module")
def stack(servers: Mapping[str, LocalDouble], shared_stack: Stack, django_db_blocker: Any) -> Iterator[Stack]:
    providers = {
        key: {
            "name": key,
            "apiType": "lmstudio" if key.startswith("studio") else "llamacpp",
            "baseUrl": f"{server.url}/v1",
            "models": {MODEL: {"name": MODEL}},
        }
        for key, server in servers.items()
    }
    members = {
        f"{policy}-{window}": {"provider": key_of(policy, window), "model": MODEL, "context_policy": policy}
        for policy in POLICIES
        for window in WINDOWS
    }
    minds = {"llm": {"providers": providers}, "team": {"members": members}}
    with with_agents(shared_stack, django_db_blocker, **minds) as stack:
        yield stack


class Door(ABC):
    """A way into one dialog."""

    def __init__(self, stack: Stack, person: User, agent: str) -> None:
        self.stack, self.agent, self.person = stack, agent, person

    @abstractmethod
    def say(self, text: str) -> tuple[str, int]:
        """Return the text of the answer, and the prompt that was reported for it."""

    @property
    def dialog(self) -> Dialog:
        return Dialog.objects.get(owner=self.person)

    def rested(self) -> Dialog:
        eventually(lambda: self.dialog.state in RESTING, 60, every=0.02)
        return self.dialog


class ApiDoor(Door):
    def __init__(self, stack: Stack, person: User, agent: str) -> None:
        super().__init__(stack, person, agent)
        self.api = Api(stack.base_url, create_key(person))
        self.path = f"/api/dialogs/{self.api.post('/api/dialogs', json={'agent': agent}).json()['id']}"

    def say(self, text: str) -> tuple[str, int]:
        answer = self.api.post(f"{self.path}/messages", json={"text": text})
        assert answer.status_code == 202, answer.text
        self.rested()
        turns = self.api.get(f"{self.path}/turns?after={answer.json()['seq']}").json()
        said = [turn["text"] for turn in turns if turn["role"] == "assistant"]
        return said[-1], self.api.get(self.path).json()["health"]["prompt_tokens"]


class PageDoor(Door):
    """A browser without scripts."""

    def __init__(self, stack: Stack, person: User, agent: str) -> None:
        super().__init__(stack, person, agent)
        self.browser = httpx2.Client(base_url=stack.base_url, follow_redirects=True, timeout=30, trust_env=False)
        self.browser.cookies.set("sessionid", session_key(person))
        self.browser.get("/")  # which gives the form its token
        self.path = "/d/new/"

    def post(self, path: str, **fields: str) -> Any:
        data = {**fields, "csrfmiddlewaretoken": self.browser.cookies["csrftoken"]}
        answer = self.browser.post(path, data=data, headers={"Referer": self.stack.base_url})
        assert answer.status_code == 200, answer.text[-2_000:]
        return answer

    def say(self, text: str) -> tuple[str, int]:
        if self.path == "/d/new/":
            self.post(self.path, agent=self.agent, text=text)
            self.path = f"/d/{self.dialog.pk}/"
        else:
            self.post(f"{self.path}messages/", text=text)
        self.rested()
        page = self.browser.get(self.path).text
        told = re.findall(r"([\d,]+) tok · ", page)
        return page, int(told[0].replace(",", "")) if told else 0


class ProgramDoor(Door):
    """A client of ``/v1`` that streams, and sends back all that was said, notices too."""

    def __init__(self, stack: Stack, person: User, agent: str) -> None:
        super().__init__(stack, person, agent)
        self.api, self.said = Api(stack.base_url, create_key(person)), list[dict[str, str]]()

    def say(self, text: str) -> tuple[str, int]:
        self.said.append({"role": "user", "content": text})
        body = {"model": self.agent, "stream": True, "messages": self.said, "stream_options": {"include_usage": True}}
        parts, usage = list[str](), 0
        with self.api.stream("POST", "/v1/chat/completions", json=body, timeout=60) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                assert "error" not in chunk, chunk
                parts += [choice["delta"].get("content") or "" for choice in chunk["choices"]]
                usage = (chunk.get("usage") or {}).get("prompt_tokens") or usage
        self.said.append({"role": "assistant", "content": "".join(parts)})
        return self.said[-1]["content"], usage


DOORS: dict[str, Callable[[Stack, User, str], Door]] = {"api": ApiDoor, "page": PageDoor, "v1": ProgramDoor}
WHOLE = bool(os.environ.get("DOMINDS_STORIES"))
PLAYED = [
    pytest.param(policy, window, door, id=f"{policy}-{window}-{door}")
    for row, policy in enumerate(POLICIES)
    for column, door in enumerate(DOORS)
    for place, window in enumerate(WINDOWS)
    if WHOLE or place == (row + column) % len(WINDOWS)
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("policy", "window", "door"), PLAYED)
def test_what_fits_is_answered_over_every_door(
    stack: Stack, servers: Mapping[str, LocalDouble], tmp_path: Path, policy: str, window: int, door: str
) -> None:
    limit = min(window, BREAKING_LIMIT) if policy == "breaking" else window
    shape = Shape("story", limit * MESSAGE_PERCENT // 100, 60)
    server = servers[key_of(policy, window)]
    server.brain = talker = Talker(shape, limit, tmp_path, heeds=policy == "none")
    refused = len(server.refusals)
    person = UserFactory.create(username=f"{policy}-{window}-{door}-{time.time_ns()}")
    opened = DOORS[door](stack, person, f"{policy}-{window}")
    seen = list[str]()
    for text in messages_of(shape, limit, MESSAGES):
        answer, prompt = opened.say(text)
        seen.append(answer)
        told = opened.dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq")
        assert told.text in answer and told.generation is not None
        assert prompt == told.generation.prompt_tokens
    dialog = opened.rested()
    statuses = dialog.turns.filter(role=Turn.Role.USER).values_list("status", flat=True)
    assert (list(statuses), dialog.state) == (["answered"] * MESSAGES, "idle")
    assert talker.answers >= MESSAGES
    failed = dialog.generations.filter(outcome=Generation.Outcome.FAILED).count()
    too_long = [refusal for refusal in server.refusals[refused:] if refusal.rule == "too long"]
    if policy == "none":  # a clear is its way to make room, on guidance or forced
        assert dialog.round_number > 1
        return
    assert (too_long, failed, dialog.round_number) == ([], 0, 1)
    assert RemediationRun.objects.filter(dialog=dialog).exists()
    if policy == "autocompaction" and door == "v1":
        assert all(any(notice in answer for answer in seen) for notice in NOTICES)
