"""Short ways to write units and toolboxes. The toolbox's parts are real: word counts, extraction, lexical vectors."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Toolbox, Unit, UnitKind, UnitRole, Units
from remediation.similarity.embeddings import LexicalEmbedder, relevance, similarity
from remediation.text.summaries import extractive_summary

LEXICAL = LexicalEmbedder()
LETTERS = str.maketrans("0123456789abcdef", "bdfghklmnprstvwz")
Report = tuple[str, int, int]


def count(messages: Sequence[Message]) -> int:
    """One token a word, and one for each message: easy to do in one's head."""
    return sum(1 + len(m.text.split()) + sum(len(c.arguments.split()) + 1 for c in m.tool_calls) for m in messages)


def words(text: str) -> int:
    return len(text.split())


def unit(
    text: str,
    role: UnitRole = UnitRole.USER,
    *,
    id: str = "",  # noqa: A002 - the field's name
    kind: UnitKind = UnitKind.MESSAGE,
    priority: int = 3,
    pinned: bool = False,
    source: tuple[int, ...] = (),
) -> Unit:
    message = Message(Role.ASSISTANT if role is UnitRole.ASSISTANT else Role.USER, text)
    return Unit(id or f"u-{text[:24]}", kind, role, (message,), source, priority, "", count((message,)), pinned)


def system(text: str = "You are an agent.") -> Unit:
    return unit(text, UnitRole.SYSTEM, id="system", priority=1)


def user(text: str, **fields: object) -> Unit:
    return unit(text, UnitRole.USER, **fields)  # type: ignore[arg-type]


def model(text: str, **fields: object) -> Unit:
    return unit(text, UnitRole.ASSISTANT, **fields)  # type: ignore[arg-type]


def tool(output: str, *, id: str = "tool", name: str = "run_check", **fields: object) -> Unit:  # noqa: A002
    call = ToolCall(f"call-{id}", name, "{}")
    messages = (Message(Role.ASSISTANT, tool_calls=(call,)), Message(Role.TOOL, output, tool_call_id=call.id))
    base = Unit(id, UnitKind.LOG, UnitRole.TOOL, messages, est_tokens=count(messages))
    return replace(base, **fields)  # type: ignore[arg-type]


def numbered(*units: Unit) -> Units:
    """The units with ids and turn numbers that tell their place."""
    return tuple(replace(u, id=f"{u.id}#{i}", source=u.source or (i + 1,)) for i, u in enumerate(units))


def prose(subject: str, length: int = 30) -> str:
    """``length`` words about ``subject``, in sentences of six, unlike those about another subject."""
    digits = blake2b(subject.encode(), digest_size=10).hexdigest()
    filler = itertools.cycle(digits[i : i + 4].translate(LETTERS) for i in range(0, 20, 4))
    said = [subject if i % 6 == 0 else next(filler) for i in range(length)]
    return " ".join(f"{word}." if i % 6 == 5 else word for i, word in enumerate(said))


def toolbox(
    *,
    summarise: Callable[[str, int], str] | None = None,
    relevant: Callable[[str], float] | None = None,
    alike: Callable[[str, str], float] | None = None,
    reports: list[Report] | None = None,
) -> Toolbox:
    """``relevant`` scores a text, ``alike`` two; left out, lexical vectors do. ``reports`` collects the phases."""
    ticks = itertools.count()
    return Toolbox(
        count=count,
        summarise=summarise or (lambda text, tokens: extractive_summary(text, tokens, words)),
        relevance=lambda texts, query: (
            [relevant(text) for text in texts] if relevant else relevance(texts, query, LEXICAL)
        ),
        similarity=alike or (lambda a, b: similarity(a, b, LEXICAL)),
        clock=lambda: float(next(ticks)),
        report=lambda *report: reports.append(report) if reports is not None else None,
    )


def texts(units: Sequence[Unit]) -> list[str]:
    return [u.text for u in units]


def ids(units: Sequence[Unit]) -> list[str]:
    return [u.id for u in units]
