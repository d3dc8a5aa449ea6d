"""A model that plays autocompaction's pruning agent, well or badly."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.doubles.brains import Call, Prompt, Reply

FENCE = re.compile(r"BEGIN \w+\n(.*)\nEND \w+", re.DOTALL)


def is_asked(body: Mapping[str, Any]) -> bool:
    return "prunedConversation" in str(body["messages"][0]["content"])


def entries_in(prompt: Prompt) -> list[dict[str, Any]]:
    match = FENCE.search(prompt.last.text)
    assert match is not None
    entries: list[dict[str, Any]] = json.loads(match.group(1))
    return entries


def prune(prompt: Prompt, keep: int | None = None) -> Reply:
    """The newest entries stay, as many as it was asked to leave; or ``keep`` of them, and the first one. The others are
    told in a sentence."""
    entries = entries_in(prompt)
    first = entries[:1] if keep is not None else []
    keep = _as_asked(prompt, entries) if keep is None else keep
    kept = [{"id": entry["id"], "role": entry["role"]} for entry in [*first, *entries[len(entries) - keep :]]]
    return Reply(
        json.dumps(
            {
                "prunedConversation": kept,
                "summary": f"Removed {max(0, len(entries) - len(kept))} old entries about files that were read.",
                "originalTokens": 12000,
                "prunedTokens": 5000,
            }
        )
    )


def _as_asked(prompt: Prompt, entries: list[dict[str, Any]]) -> int:
    aim = re.search(r"Aim at about (\d+) tokens", prompt.messages[0].text)
    assert aim is not None
    room, keep = int(aim.group(1)) * 4, 0
    for entry in reversed(entries):
        room -= len(entry["content"])
        if room < 0:
            break
        keep += 1
    return keep


def grow(prompt: Prompt) -> Reply:
    """Longer than what it was given."""
    entries = [{**entry, "content": entry["content"] * 2} for entry in entries_in(prompt)]
    return Reply(json.dumps({"prunedConversation": entries, "summary": "word " * 2_000}))


NONSENSE = {
    "prose": Reply("I have shortened it for you. Everything important is still there."),
    "other JSON": Reply('{"messages": []}'),
    "an empty conversation": Reply('{"prunedConversation": [], "summary": "all gone"}'),
    "nothing": Reply(""),
    "cut off": Reply('{"prunedConversation": [{"id": "turn-1"', finish="length"),
    "a tool call": Reply(calls=(Call("clear_mind", {"reminder_content": "x"}),)),
    "an error": Reply(error=(400, {"error": {"message": "no", "code": "invalid_request_error"}})),
    "a broken stream": Reply("{", error_event="overloaded"),
}
