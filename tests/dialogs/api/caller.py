"""A program that calls ``/api``."""

from typing import Any

import orjson
from django.contrib.auth.models import User
from django.test import Client

from dialogs.accounts.api_keys import create_key

HEALTH = {  # its fields
    "level",
    "reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "model_context_limit",
    "limit_source",
    "optimal_max_tokens",
    "critical_max_tokens",
    "hard_util",
    "optimal_util",
}


class Caller:
    """A program with a key. Answers are (status, JSON); ``headers`` keeps those of the last one."""

    def __init__(self, owner: User) -> None:
        self.owner = owner
        self._client = Client(headers={"Authorization": f"Bearer {create_key(owner)}"})
        self.headers: Any = {}

    def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        answer = self._client.generic(
            method, f"/api{path}", b"" if body is None else orjson.dumps(body), "application/json", **options
        )
        self.headers = answer.headers
        assert answer["Content-Type"].startswith("application/json") or answer.status_code == 204, answer.content[:200]
        return answer.status_code, orjson.loads(answer.content) if answer.content else None

    def get(self, path: str, **options: Any) -> Any:
        status, result = self("GET", path, **options)
        assert status == 200, result
        return result


def code_of(answer: tuple[int, Any]) -> tuple[int, str]:
    status, body = answer
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["message"]
    return status, body["error"]["code"]
