"""A model that plays autocompaction's pruning agent, well or badly."""

import json
import re
from typing import Any

from tests.flows.chat_server import Answer, Body

FENCE = re.compile(r"BEGIN \w+\n(.*)\nEND \w+", re.DOTALL)


def is_asked(body: Body) -> bool:
    return "prunedConversation" in str(body["messages"][0]["content"])


def entries_in(body: Body) -> list[dict[str, Any]]:
    found = FENCE.search(body["messages"][-1]["content"])
    assert found is not None
    entries: list[dict[str, Any]] = json.loads(found.group(1))
    return entries


def prune(body: Body, keep: int | None = None) -> Answer:
    """The first entry stays and the newest do, ``keep`` of them or as many as it was asked to
    leave; the others are told in a sentence."""
    entries = entries_in(body)
    keep = _as_asked(body, entries) if keep is None else keep
    kept = [{"id": entry["id"], "role": entry["role"]} for entry in [*entries[:1], *entries[len(entries) - keep :]]]
    return Answer(
        json.dumps(
            {
                "prunedConversation": kept,
                "summary": f"Removed {max(0, len(entries) - keep - 1)} old entries about files that were read.",
                "originalTokens": 12000,
                "prunedTokens": 5000,
            }
        )
    )


def _as_asked(body: Body, entries: list[dict[str, Any]]) -> int:
    aim = re.search(r"Aim at about (\d+) tokens", body["messages"][0]["content"])
    assert aim is not None
    room, keep = int(aim.group(1)) * 4 - len(entries[0]["content"]), 0
    for entry in reversed(entries[1:]):
        room -= len(entry["content"])
        if room < 0:
            break
        keep += 1
    return keep


def grow(body: Body) -> Answer:
    """Longer than what it was given."""
    entries = [{**entry, "content": entry["content"] * 2} for entry in entries_in(body)]
    return Answer(json.dumps({"prunedConversation": entries, "summary": "word " * 2_000}))


NONSENSE = {
    "prose": Answer("I have shortened it for you. Everything important is still there."),
    "other JSON": Answer('{"messages": []}'),
    "an empty conversation": Answer('{"prunedConversation": [], "summary": "all gone"}'),
    "nothing": Answer(""),
    "cut off": Answer('{"prunedConversation": [{"id": "turn-1"', finish="length"),
    "a tool call": Answer(calls=(("clear_mind", {"reminder_content": "x"}),)),
    "an error": Answer(refused=(400, '{"error": {"message": "no", "code": "invalid_request_error"}}')),
    "a broken stream": Answer("{", error_event="overloaded"),
}
