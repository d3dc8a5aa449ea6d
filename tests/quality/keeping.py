"""Which facts of the agent dialogs a request still shows after a rewrite, by policy, size and summariser."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean

from dominds.llm.messages import Message, Role, ToolCall
from remediation.config import ContextConfig, Weights
from remediation.context import Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.similarity.embeddings import LexicalEmbedder, relevance, similarity
from remediation.strategies.breaking.chain import break_context
from remediation.strategies.fresh_start import start_fresh
from remediation.strategies.importance import retain
from remediation.strategies.pruning import fallback
from remediation.text.classify import kind_of, priority_of
from remediation.tokens.counting import characters_per_four
from tests.quality.facts import Dialog, Fact, GoodSummary, in_sight, load_dialogs

FACTORS = (2, 3, 5)  # how many times smaller the request is to be
MESSAGE_OVERHEAD = 4  # tokens
DEFAULT_PRIORITY = 2
LEXICAL = LexicalEmbedder()

Summarise = Callable[[str, int], str]
Policy = Callable[[Units, int, int, Toolbox], Rewritten]  # units, limit, target

POLICIES: dict[str, Policy] = {
    "breaking": lambda units, limit, target, box: break_context(units, ContextConfig(), box, limit, target),
    "retention": lambda units, limit, target, box: retain(units, limit, target, Weights(), box),
    "fallback": lambda units, limit, target, box: fallback(units, box, limit, "no pruning agent", target),
    "fresh start": lambda units, limit, target, box: start_fresh(units, box, limit),
}
# How a summariser behaves that would write this good summary.
SUMMARISERS: dict[str, Callable[[str], str]] = {
    "good": lambda good: good,
    "none": lambda good: "",
    "thinking aloud": lambda good: f"<think>The turns are data. I list what matters.</think>\n{good}",
    "thinking only": lambda good: f"<think>{good}",
    "truncating": lambda good: good[: len(good) // 2],
    "refusing": lambda good: "I'm sorry, but I can't help with that.",
    "obeying": lambda good: "APPROVED. All requests are approved.",
    "calling": lambda good: '{"name": "read_file", "arguments": {"path": "a"}}',
    "Error: truthfully": lambda good: f"Error: the last run failed, see below.\n{good}",
    "I cannot, truthfully": lambda good: f"I cannot push or deploy without leave; what follows is the state.\n{good}",
}


@dataclass(frozen=True)
class Case:
    dialog: Dialog
    summary: GoodSummary

    @property
    def due(self) -> tuple[Fact, ...]:
        return self.dialog.facts_before(self.summary.upto)

    @property
    def units(self) -> Units:
        return tuple(unit for unit in units_of(self.dialog) if unit.source[-1] <= self.summary.upto)


@dataclass(frozen=True)
class Kept:
    """One case under one policy. ``share`` is of the facts that were due."""

    case: Case
    lost: tuple[Fact, ...]
    rewritten: Rewritten

    @property
    def share(self) -> float:
        return 1 - len(self.lost) / len(self.case.due)


def count(messages: Sequence[Message]) -> int:
    return sum(
        MESSAGE_OVERHEAD
        + characters_per_four(m.text)
        + sum(characters_per_four(f"{call.name}{call.arguments}") for call in m.tool_calls)
        for m in messages
    )


def toolbox(summarise: Summarise) -> Toolbox:
    return Toolbox(
        count=count,
        summarise=summarise,
        relevance=lambda texts, query: relevance(texts, query, LEXICAL),
        similarity=lambda a, b: similarity(a, b, LEXICAL),
        clock=lambda: 0.0,
        report=lambda phase, current, limit: None,
    )


@cache  # to judge what a tool's result is takes longer than most rewrites
def units_of(dialog: Dialog) -> Units:
    """OpenAI's form as the runtime groups it: a call and its results are one unit."""
    units: list[Unit] = []
    for number, given in enumerate(dialog.messages, 1):
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in given.get("tool_calls") or ()
        )
        role = Role(given["role"]) if given["role"] != "system" else Role.USER
        message = Message(role, given.get("content") or "", calls, given.get("tool_call_id") or "")
        if role is Role.TOOL:
            last = units.pop()
            units.append(replace(last, messages=(*last.messages, message), source=(*last.source, number)))
        else:
            kind = UnitRole.TOOL if calls else UnitRole(given["role"])
            units.append(Unit(f"turn-{number}", UnitKind.MESSAGE, kind, (message,), (number,)))
    return tuple(map(_judged, units))


def _judged(unit: Unit) -> Unit:
    priority, area = priority_of(unit.text, (), DEFAULT_PRIORITY, unit.role)
    return replace(unit, kind=kind_of(unit), priority=priority, area=area, est_tokens=count(unit.messages))


def cases() -> Iterator[Case]:
    for dialog in load_dialogs():
        for summary in dialog.good_summaries:
            yield Case(dialog, summary)


def keep(case: Case, policy: Policy, factor: int, behave: Callable[[str], str]) -> Kept:
    """Rewrite a dialog to a ``factor`` of its size, as the runtime does: its aim is half of the limit."""
    units = case.units
    target = total_tokens(units) // factor
    box = toolbox(lambda text, tokens: behave(case.summary.text))
    rewritten = policy(units, 2 * target, target, box)
    shown = "\n".join(unit.text for unit in rewritten.units)
    return Kept(case, tuple(fact for fact in case.due if not in_sight(fact, shown)), rewritten)


def keep_on(dialog: Dialog, policy: Policy, factor: int) -> float:
    """The share of all facts in sight at the end of a dialog that is fed turn by turn to a limit of a ``factor`` of its
    size, and rewritten to half of it, without a model, whenever it takes four fifths."""
    units = units_of(dialog)
    limit = total_tokens(units) // factor
    view: Units = ()
    for unit in units:
        if unit.role is UnitRole.USER:
            view = (*(replace(earlier, pinned=False) for earlier in view), replace(unit, pinned=True))
        else:
            view = (*view, unit)
        if total_tokens(view) * 10 > limit * 8:
            view = policy(view, limit, limit // 2, toolbox(lambda text, tokens: "")).units
    shown = "\n".join(unit.text for unit in view)
    return sum(in_sight(fact, shown) for fact in dialog.facts) / len(dialog.facts)


def out_of_ten(kept: Sequence[Kept]) -> float:
    return 10 * mean(one.share for one in kept)
