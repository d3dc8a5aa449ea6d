"""Agent dialogs with the facts that their work needs, and the measure of which facts a request still shows.

How to measure a policy with them::

    for dialog in load_dialogs():
        for summary in dialog.good_summaries:             # what a good model would hand over, at three cuts
            history = dialog.messages[: summary.upto]     # OpenAI style; ends where no tool call is open
            request = policy(history, offered=summary.text)
            due = dialog.facts_before(summary.upto)
            kept = [fact for fact in due if in_sight(fact, text_of(request))]

A fact counts once it has been said: only those of ``facts_before(upto)`` are due in a request made at ``upto``. A fact
that was revised stands in the data in its last form only, with the turn of that form; before that turn it is not due in
any form. ``in_sight`` judges a request as the model reads it, so hand it all of the request: summary, ledger, recalled
units, whatever remains verbatim. A request to a model without a summariser is measured the same way, with no summary.

The dialogs are read from ``dialogs/*.yaml``. Nearly all of their tool results are output of real programs (PostgreSQL,
SQLite, Redis, nginx, OpenSSL, strace, pytest, Celery) and excerpts of real source files (Python's standard library,
Django, psycopg_pool, kombu, Celery, urllib3, all of permissive licences), with paths, hosts and dates renamed. Short
acknowledgements, and what invented systems answer, are written. People, firms and agents are invented.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self

import yaml

DIALOGS = Path(__file__).parent / "dialogs"
FACTS_PER_DIALOG = 10
REACH = 400  # folded characters, some 70 words: what a fact's strings may be apart
CUTS = (50, 70, 85)  # per cent of a dialog's messages that a good summary covers

Message = Mapping[str, Any]  # OpenAI style: role, content, tool_calls, tool_call_id


class FactKind(StrEnum):
    IDENTIFIER = "identifier"
    NUMBER = "number"
    PROHIBITION = "prohibition"
    PLAIN = "plain"  # a sentence without a number or a name that a pattern would find
    DECISION = "decision"
    FAILURE = "failure"  # what went wrong, and so need not be tried again
    OPEN_REQUEST = "open_request"  # asked for, not yet done


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class InvalidDialog(ValueError):
    """A file under ``dialogs/`` breaks the format."""


@dataclass(frozen=True)
class Fact:
    """Something a person who is handed the work would need.

    ``turn`` is the index of the message that first says it in the form that counts. ``revises`` is the turn of an
    older form that it replaces. ``any_of``: the fact is in sight when all strings of one alternative are.
    """

    id: str
    kind: FactKind
    speaker: Speaker
    turn: int
    text: str
    any_of: tuple[tuple[str, ...], ...]
    revises: int | None = None

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        return cls(
            id=given["id"],
            kind=FactKind(given["kind"]),
            speaker=Speaker(given["speaker"]),
            turn=given["turn"],
            text=given["text"],
            any_of=tuple(tuple(alternative) for alternative in given["any_of"]),
            revises=given.get("revises"),
        )


@dataclass(frozen=True)
class GoodSummary:
    """A faithful hand-off summary of the first ``upto`` messages, about ``cut`` per cent of the dialog."""

    cut: int
    upto: int
    text: str


@dataclass(frozen=True, eq=False)  # by identity, so that what is drawn from one can be kept
class Dialog:
    name: str
    title: str
    domain: str
    languages: tuple[str, ...]
    messages: tuple[Message, ...]
    facts: tuple[Fact, ...]
    good_summaries: tuple[GoodSummary, ...]

    def facts_before(self, upto: int) -> tuple[Fact, ...]:
        """The facts said in the first ``upto`` messages."""
        return tuple(fact for fact in self.facts if fact.turn < upto)


@cache
def load_dialogs() -> tuple[Dialog, ...]:
    """All dialogs, by name; read once. Raises InvalidDialog."""
    return tuple(load_dialog(path) for path in sorted(DIALOGS.glob("*.yaml")))


def load_dialog(path: Path) -> Dialog:
    """Raises InvalidDialog, which names the file and what is wrong."""
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        dialog = Dialog(
            name=path.stem,
            title=given["title"],
            domain=given["domain"],
            languages=tuple(given["languages"]),
            messages=tuple(given["messages"]),
            facts=tuple(Fact.from_mapping(fact) for fact in given["facts"]),
            good_summaries=tuple(GoodSummary(**summary) for summary in given["good_summaries"]),
        )
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise InvalidDialog(f"{path.name}: {type(error).__name__}: {error}") from error
    wrong = list(faults(dialog))
    if wrong:
        raise InvalidDialog(f"{path.name}: {'; '.join(wrong)}")
    return dialog


def faults(dialog: Dialog) -> Iterable[str]:
    """What breaks the format, one sentence each. Whether the content is good is for test_data.py."""
    yield from _faults_of_messages(dialog.messages)
    if len(dialog.facts) != FACTS_PER_DIALOG:
        yield f"{len(dialog.facts)} facts, not {FACTS_PER_DIALOG}"
    if len({fact.id for fact in dialog.facts}) != len(dialog.facts):
        yield "two facts share an id"
    for fact in dialog.facts:
        if not 0 <= fact.turn < len(dialog.messages):
            yield f"fact {fact.id} names turn {fact.turn} of {len(dialog.messages)}"
        elif dialog.messages[fact.turn]["role"] != fact.speaker:
            yield f"fact {fact.id} is said by {dialog.messages[fact.turn]['role']}, not {fact.speaker}"
        if fact.revises is not None and not 0 <= fact.revises < fact.turn:
            yield f"fact {fact.id} revises turn {fact.revises}, which is not before it"
        if not fact.any_of or not all(alternative and all(map(fold, alternative)) for alternative in fact.any_of):
            yield f"fact {fact.id} has an alternative that any text would meet"
    if tuple(summary.cut for summary in dialog.good_summaries) != CUTS:
        yield f"summaries at other cuts than {CUTS}"
    for summary in dialog.good_summaries:
        if not 0 < summary.upto < len(dialog.messages) or dialog.messages[summary.upto]["role"] == "tool":
            yield f"the summary at {summary.cut} per cent ends between a call and its result"


def _faults_of_messages(messages: Sequence[Message]) -> Iterable[str]:
    """Roles in an order that every provider takes, and each call answered before the next message."""
    waiting: list[str] = []
    before = ""
    for turn, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"turn {turn} answers no open call"
            else:
                waiting.remove(message["tool_call_id"])
        else:
            if waiting:
                yield f"turn {turn} comes before the results of {waiting}"
            allowed: dict[str, tuple[str, ...]] = {
                "": ("system",),
                "system": ("user",),
                "user": ("assistant",),
                "assistant": ("user",),
            }
            allowed["tool"] = ("assistant", "user")  # a person may cut in
            if role not in allowed[before]:
                yield f"turn {turn}: {role} after {before or 'nothing'}"
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            if not message.get("content") and not waiting:
                yield f"turn {turn} is empty"
        before = role
    if waiting or before != "assistant":
        yield "the dialog does not end with the agent's own words"


def text_of(messages: Iterable[Message]) -> str:
    """What a model reads of messages: contents, and the names and arguments of calls."""
    lines: list[str] = []
    for message in messages:
        if message.get("content"):
            lines.append(message["content"])
        for call in message.get("tool_calls") or ():
            lines.append(f"{call['function']['name']} {call['function']['arguments']}")
    return "\n".join(lines)


def in_sight(fact: Fact, request_text: str) -> bool:
    """Whether all strings of one alternative stand in the text, near each other.

    Near means within REACH: words of it that survive in far parts of a request by chance do not tell the fact. Letter
    case, punctuation and width of blanks do not count, so "5,000 rows" is "5000 rows". A string begins where a word
    begins, and a number ends where it ends: "40" is not in "140" nor "400", while "refus" is in "refused".
    """
    folded = fold(request_text)
    return any(_stand_near(alternative, folded) for alternative in fact.any_of)


def _stand_near(parts: Sequence[str], folded: str) -> bool:
    results = sorted(
        (place.start(), place.end(), which) for which, part in enumerate(parts) for place in _places(part, folded)
    )
    for first, (start, _, _) in enumerate(results):
        inside = {which for _, end, which in results[first:] if end - start <= REACH}
        if len(inside) == len(parts):
            return True
    return False


@lru_cache(maxsize=128)  # a request is asked for ten facts
def fold(text: str) -> str:
    """Lower case, without punctuation and symbols, blanks single. Dashes that part clauses become blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_FOLDED).split())


_PARTING = "–—…、。;:!?·=/|→"  # dashes between clauses, and the CJK marks that stand without a blank


class _Folded(dict[int, str]):
    """What ``fold`` puts for a sign, found out when it is met first."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        blank = sign in _PARTING or sign.isspace()
        self[code] = " " if blank else "" if unicodedata.category(sign)[0] in "PSC" else sign
        return self[code]


_FOLDED = _Folded()


def _places(part: str, folded: str) -> Iterable[re.Match[str]]:
    words, pattern = _pattern(part)
    return pattern.finditer(folded) if words in folded else ()  # which is far quicker than the pattern


@cache
def _pattern(part: str) -> tuple[str, re.Pattern[str]]:
    words = fold(part)
    begin = r"(?<![^\W_\u3040-\u9fff])" if _spaced(words[0]) else ""
    end = r"(?!\d)" if words[-1].isdigit() else ""
    return words, re.compile(begin + re.escape(words) + end)


def _spaced(sign: str) -> bool:
    """Whether the sign's script sets blanks between words. Chinese and Japanese do not."""
    return sign.isalnum() and not "\u3040" <= sign <= "\u9fff"
