"""LoCoMo: two people over months, in sessions, with questions that name the turns which answer them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dominds.llm.messages import Message, Role
from remediation.evaluation.dialogs import Dialog, Probe, Turn

SESSION = re.compile(r"session_(\d+)")
TURN_ID = re.compile(r"D\d+:\d+")  # some entries of a question's evidence hold two ids
# Category 5, adversarial, is left out: it asks for things that were never said.
KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


def recognises(content: Any) -> bool:
    first = content[0] if isinstance(content, list) and content else content
    return isinstance(first, dict) and isinstance(first.get("conversation"), dict) and "qa" in first


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    samples = content if isinstance(content, list) else [content]
    return tuple(_dialog(sample, f"{name}-{number}") for number, sample in enumerate(samples, 1))


def _dialog(sample: Mapping[str, Any], name: str) -> Dialog:
    turns = tuple(_turns(sample["conversation"]))
    known = {turn.id for turn in turns}
    return Dialog(name, "locomo", turns, tuple(_probes(sample["qa"], known)))


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(match[1]) for key in conversation if (match := SESSION.fullmatch(key)))
    for number in numbers:
        date = conversation.get(f"session_{number}_date_time", "")
        for place, line in enumerate(conversation[f"session_{number}"]):
            role = Role.USER if line["speaker"] == conversation.get("speaker_a") else Role.ASSISTANT
            caption = f" [shares {line['blip_caption']}]" if line.get("blip_caption") else ""
            opening = f"[{date}]\n" if date and not place else ""
            text = f"{opening}{line['speaker']}: {line['text']}{caption}"
            yield Turn(line["dia_id"], line["speaker"], Message(role, text), line["text"])


def _probes(questions: Any, known: set[str]) -> Iterator[Probe]:
    for asked in questions:
        evidence = tuple(
            dict.fromkeys(turn for text in asked.get("evidence", ()) for turn in TURN_ID.findall(text) if turn in known)
        )
        if evidence and (kind := KINDS.get(asked["category"])):
            yield Probe(asked["question"], kind, evidence)
