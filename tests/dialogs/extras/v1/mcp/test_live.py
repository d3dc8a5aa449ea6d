"""A client of the protocol's own SDK against Daphne and a worker."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages
from remediation.models import RemovedUnit
from tests.dialogs.factories import RewriteFactory, UserFactory
from tests.harness.live import Stack, eventually

Call = Callable[..., Awaitable[Any]]


def as_client(stack: Stack, key: str, mode: Any, act: Callable[[Call], Awaitable[Any]]) -> Any:
    """What ``act`` returns; it is given ``call(tool, **arguments)``, which answers the tool's JSON."""

    async def run() -> Any:
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {key}"}) as http,
            Client(streamable_http_client(f"{stack.base_url}/mcp", http_client=http), mode=mode) as client,
        ):

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                text = result.content[0].text  # type: ignore[union-attr]
                assert not result.is_error, text
                return json.loads(text)

            return await act(call)

    return asyncio.run(run())


def test_a_client_answers_a_question_and_reads_an_archived_unit(live_stack: Stack) -> None:
    """Once as clients of today speak, once as those of before, who begin by saying hello."""
    person = UserFactory.create(username="mcp-ada")
    dialog = messages.create_dialog(person, "demo-asks")
    messages.post_message(dialog.pk, "Ask me")
    unit = RemovedUnit.objects.create(
        dialog=dialog,
        run=RewriteFactory.create(dialog=dialog),
        unit_id="turn-1",
        kind="message",
        role="user",
        est_tokens=9,
        text="The ship is called Aurora.",
    )
    eventually(lambda: dialog.questions.filter(state="open").exists())

    async def answer(call: Call) -> None:
        (question,) = await call("list_questions")
        answered = await call("answer_question", question=question["id"], text="Heron")
        assert (answered["state"], answered["answer"]) == ("answered", "Heron")

    async def read(call: Call) -> None:
        (result,) = await call("search_archive", dialog=str(dialog.pk), query="ship")
        whole = await call("read_archived_unit", dialog=str(dialog.pk), unit=result["id"])
        assert (whole["id"], whole["text"]) == (unit.pk, "The ship is called Aurora.")

    key = create_key(person)
    as_client(live_stack, key, "auto", answer)
    as_client(live_stack, key, "legacy", read)
    eventually(lambda: dialog.turns.filter(role="tool", text="Heron").exists() and dialog.generations.count() == 2)
