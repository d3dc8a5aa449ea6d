"""Agents behind ``/v1`` for the official clients, on Daphne, a worker, PostgreSQL and Redis."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.images import images_in
from tests.doubles.local_servers import VLLMDouble
from tests.doubles.rules import Refusal, RequestRefused
from tests.doubles.serving import Answer, Double, Exchange
from tests.harness.live import with_agents
from tests.harness.stack import Stack
from tests.pixels import coded, picture

FIXED = {"prompt_tokens": 50, "completion_tokens": 5}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [{"name": "get_weather", "arguments": {"city": "Rome"}}]
PICTURES = [coded(picture("PNG", (40 + number, 30))) for number in range(3)]
CARGO = "barrels of oil from Genua, to be counted at noon by the mate and once more by the captain. "
LONG: Any = [  # a conversation with more messages than a summary leaves
    {"role": role, "content": f"Cargo {number}, says the {role}: {CARGO * 8}"}
    for number in range(8)
    for role in ("user", "assistant")
]
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "plain": [
        {"match": "hand-off summary", "text": "## Goal\nCount the cargo of all ships.", "usage": FIXED},
        {"text": "You said: {{last_user}}", "usage": FIXED},
    ],
    "quiet": [{"text": "Hello.", "usage": "none"}],
    "weather": [
        {"match": "weather", "reasoning": "I must look.", "text": "Let me look.", "tool_calls": CALLS, "usage": FIXED},
        {"match": "degrees", "text": "It is warm.", "usage": FIXED},
        {"text": "Nice.", "usage": FIXED},
    ],
    "patches": [
        {
            "match": "patch",
            "tool_calls": [
                {"name": "apply_patch", "arguments": {"input": "*** Begin Patch"}},
                {"name": "mcp__files__read", "arguments": {"path": "a.txt"}},
            ],
            "usage": FIXED,
        },
        {"text": "Done.", "usage": FIXED},
    ],
    "failing": [{"error": "auth"}],
    "breaks": [
        {
            "match": "Hi",
            "text": "Let me see.",
            "tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}],
            "usage": FIXED,
        },
        {"error": "auth"},
    ],
    "slow": [{"text": "one two three four five six seven eight nine ten " * 20, "chunk_delay_ms": 100, "usage": FIXED}],
}


class Embedder(Double):
    """A server of embeddings that refuses an empty input."""

    def __init__(self, *, model: str) -> None:
        super().__init__(model=model)
        self.routes = {("POST", "/v1/embeddings"): self.embed}

    def embed(self, record: Exchange) -> Answer:
        if not record.body["input"]:
            raise RequestRefused(Refusal("input", 400, "The input is empty."))
        assert record.body["model"] == self.model
        data = [{"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}]
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        return Answer({"object": "list", "model": self.model, "data": data, "usage": usage})


def seer_brain(prompt: Prompt) -> Reply:
    return Reply("", (Call("get_weather", {"city": "Rome"}),)) if "weather" in prompt.last.text else Reply("I see.")


@pytest.fixture(scope="package")
def seer() -> Iterator[Double]:
    """A model that sees, on a server that refuses damaged and misplaced images."""
    with VLLMDouble(seer_brain, model="seer") as double:
        yield double


@pytest.fixture(scope="package")
def stack(shared_stack: Stack, django_db_blocker: Any, seer: Double) -> Iterator[Stack]:
    with Embedder(model="embedder") as embedder:
        models = {name: {"name": name, "script": f"{name}.yaml", "context_length": 128_000} for name in SCRIPTS}
        members = {
            name: {"name": name, "provider": "play", "model": name, "instructions": "Be brief."} for name in SCRIPTS
        }
        members["embedder"] = {"name": "embedder", "provider": "vectors", "model": "embedder"}
        members |= {name: {"name": name, "provider": "eyes", "model": name} for name in ("seer", "blind")}
        sight: Any = {
            "seer": {"modalities": ["text", "image"], "output_length": 1_000},
            "blind": {"modalities": ["text"]},
        }
        prices = [{"in": 1_000, "out": 0}]
        vectors = {"embedder": {"name": "embedder", "context_length": 8_000, "prices": prices}}
        providers = {
            "eyes": {"name": "Eyes", "apiType": "vllm", "baseUrl": f"{seer.url}/v1", "models": sight},
            "play": {"name": "Play", "apiType": "scripted", "models": models},
            "vectors": {
                "name": "Vectors",
                "apiType": "openai-compatible",
                "baseUrl": f"{embedder.url}/v1",
                "models": vectors,
            },
        }
        minds = {"llm": {"providers": providers}, "team": {"members": members}}
        scripts = {name: {"steps": steps} for name, steps in SCRIPTS.items()}
        with with_agents(shared_stack, django_db_blocker, **minds, **scripts) as stack:
            yield stack


@pytest.fixture
def person(stack: Stack) -> User:
    return UserFactory.create(username=f"protocols-{time.time_ns()}")


@pytest.fixture
def key(person: User) -> str:
    return create_key(person)


@pytest.fixture
def gpt(stack: Stack, key: str) -> OpenAI:
    return OpenAI(base_url=f"{stack.base_url}/v1", api_key=key)


def dialog_of(answer_id: str) -> Dialog:
    return Dialog.objects.get(pk=answer_id.split("_")[1])


def seen(seer: Double) -> list[str]:
    """The images of the newest request, in order."""
    return [PICTURES[PICTURES.index(image.data)] for image in images_in(seer.bodies[-1])]
