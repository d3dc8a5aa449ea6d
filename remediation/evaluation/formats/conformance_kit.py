"""Sessions of the compaction conformance kit: its list of turns beside its list of canaries, the statements that must
outlast every rewrite.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from remediation.evaluation.dialogs import Dialog, Probe
from remediation.evaluation.formats.openai_messages import dialog_of

TOKENS = ("required_tokens", "behavior_required_tokens", "exact_use_required_tokens")


def recognises(content: Any) -> bool:
    """Check for one session, or a list of them."""
    first = content[0] if isinstance(content, list) and content else content
    return isinstance(first, dict) and {"turns", "canaries"} <= first.keys()


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    sessions = content if isinstance(content, list) else [content]
    return tuple(_dialog(session, f"{name}-{number}") for number, session in enumerate(sessions, 1))


def _dialog(session: Mapping[str, Any], name: str) -> Dialog:
    turns = [{"role": turn["role"], "content": turn.get("content", turn.get("text"))} for turn in session["turns"]]
    probes = tuple(_probe(canary, turns) for canary in session["canaries"])
    made = dialog_of(turns, name, "conformance kit")
    return Dialog(made.name, made.format, made.turns, probes, made.instructions)


def _probe(canary: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> Probe:
    """Make a question of a canary: all its tokens have to be in sight when its direct question is asked."""
    place = max(number for number, turn in enumerate(turns, 1) if turn["content"] == canary["content"])
    return Probe(
        question=canary.get("direct_question") or canary["content"],
        kind=canary["type"],
        evidence=(str(place),),
        sentences=tuple(dict.fromkeys(token for field in TOKENS for token in canary.get(field, ()))),
        superseded=tuple(canary.get("superseded_tokens", ())),
    )
