"""Dialogs in the forms of others, and files of them."""

import json
from pathlib import Path
from typing import Any

CALL = {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": '{"order": "A-1001"}'}}


MESSAGES = [
    {"role": "system", "content": "You sell tea."},
    {"role": "user", "content": [{"type": "text", "text": "Where is A-1001?"}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
    {"role": "assistant", "content": "It is on its way.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "delivered"},
]


FRIENDS: dict[str, Any] = {
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_1_date_time": "9:00 am on 1 March, 2024",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a kayak!", "blip_caption": "a red kayak"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely."},
        ],
        "session_10": [{"speaker": "Ana", "dia_id": "D10:1", "text": "I sold it again."}],
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "I am in Porto."}],
    },
    "qa": [
        {"question": "What happened to the boat?", "answer": "sold", "evidence": ["D1:1; D10:1"], "category": 1},
        {"question": "Where is Ben?", "answer": "Porto", "evidence": ["D2:1"], "category": 4},
        {"question": "What did Ben buy?", "evidence": ["D1:1"], "category": 5},
        {"question": "Nobody knows", "evidence": ["D99:1"], "category": 2},
    ],
}


def written(path: Path, *contents: object) -> Path:
    """One value is a JSON file, several are JSON lines."""
    path.write_text("\n".join(json.dumps(content) for content in contents), encoding="utf-8")
    return path
