"""BEAM: a long dialog of a person and an assistant, and questions by ability that name the messages to answer from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dominds.llm.messages import Message, Role
from remediation.evaluation.dialogs import Dialog, Probe, Turn
from remediation.text.coverage import stems_of
from remediation.text.reading import sentences_of

ANSWERS = ("answer", "ideal_answer", "ideal_summary", "instruction_being_tested", "preference_being_tested")


def recognises(content: Any) -> bool:
    """Check for the batches of turns that a chat consists of."""
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and "batch_number" in first and isinstance(first.get("turns"), list)


def has_questions(content: Any) -> bool:
    return isinstance(content, dict) and "knowledge_update" in content and "event_ordering" in content


def read(content: Any, name: str, questions: Mapping[str, Any] | None = None) -> tuple[Dialog, ...]:
    turns = tuple(_turns(content))
    return (Dialog(name, "beam", turns, tuple(_probes(questions or {}, {turn.id: turn for turn in turns}))),)


def _turns(batches: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    for batch in batches:
        for given in (given for group in batch["turns"] for given in group):
            text = given["content"].partition(" ->-> ")[0]  # the arrow is followed by the place in the dialog's plan
            yield Turn(str(given["id"]), given["role"], Message(Role(given["role"]), text), text)


def _probes(questions: Mapping[str, Any], turns: Mapping[str, Turn]) -> Iterator[Probe]:
    for kind, asked in questions.items():
        for question in asked:
            told = f"{next((question[key] for key in ANSWERS if key in question), '')} {question['question']}"
            evidence = [turn for turn in dict.fromkeys(_ids(question.get("source_chat_ids"))) if turn in turns]
            sentences = tuple(_nearest(turns[turn].words, told) for turn in evidence)
            if evidence:
                yield Probe(question["question"], kind, tuple(evidence), sentences=sentences)


def _ids(given: Any) -> Iterator[str]:
    """Yield the ids of messages, which are one list, or one list for each of several statements."""
    for one in given.values() if isinstance(given, dict) else [given or []]:
        yield from map(str, one)


def _nearest(text: str, told: str) -> str:
    """Return the sentence that shares most word stems with ``told``, the question with its answer."""
    wanted = set(stems_of(told))
    return max((one.text for one in sentences_of(text)), key=lambda one: len(wanted & {*stems_of(one)}), default=text)
