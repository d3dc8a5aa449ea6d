"""Measures of how much needed text is in sight, one search away or lost, by its exact words and without a model."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Any

from dominds.llm.messages import Role
from remediation.context import Unit, UnitRole, Units, total_tokens
from remediation.evaluation.dialogs import Dialog, Probe, Turn, question_unit
from remediation.evaluation.simulation import Embed, Request, Setup, Simulation
from remediation.recall.index import Index
from remediation.recall.query import query_of
from remediation.recall.search import search
from remediation.strategies.said import said_in
from remediation.text.coverage import Required, Shown, required_of
from remediation.text.statements import UNTIL_MARK

PUNCTUATION = re.compile(r"[^\w\s]|_")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
SHORTEST_VALUE = 4  # characters; an argument of this length that holds a digit cannot be guessed
NEWEST_UNITS = 5  # a value that one of them holds needs no remembering
POSITIONS = ("first quarter", "second quarter", "third quarter", "last quarter")

MOST_FACTS = 200  # the weightiest of a dialog: each fact that is out of sight takes a search

EVIDENCE, ANSWERS, NEEDED_LATER, SEARCH = "evidence in sight", "answers in sight", "needed later", "search"
FACTS = "facts at the end"
QUOTED = "quoted next"


class State(StrEnum):
    IN_SIGHT = "in sight"
    ONE_SEARCH_AWAY = "one search away"  # among the first hits for the question, with their neighbours
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Fate:
    """Something that was needed. ``position`` is the quarter of the dialog where it was said last.

    ``is_stale`` tells whether a value that it replaced is in sight as if it were valid; None if it replaced none.
    """

    measure: str
    kind: str
    speaker: str
    position: str
    state: State
    is_stale: bool | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One dialog under one policy. The numbers are sums over its requests: one for each turn of the model and each
    question.
    """

    fates: tuple[Fate, ...]
    requests: int
    tokens_sent: int
    tokens_cached: int  # those in the prefix that a request shares with the one before
    tokens_recalled: int  # those of recalled text, which ends a request and is not repeated by the next
    over_budget: int  # requests that exceeded the budget
    rewrites: int
    rewrite_millis: float
    recall_millis: float


def normalise(text: str) -> str:
    """Return the text in lower case, without punctuation, with one blank between words."""
    return " ".join(PUNCTUATION.sub(" ", text.lower()).split())


def run(dialog: Dialog, setup: Setup, *, facts: bool = False) -> Run:
    """Feed the dialog to its policy and judge what stays in sight.

    Tool calls are judged on the way, questions at the end, and with ``facts`` also everything worth keeping.
    """
    simulation = Simulation(dialog, setup)
    fates: list[Fate] = []
    requests: list[Request] = []
    past = _Past(normalise(dialog.instructions), len(simulation.units))
    for unit in simulation.steps():
        if unit.role is not UnitRole.USER:
            requests.append(simulation.request(simulation.view))
            if simulation.view.rewrites:
                fates += _needed_values(simulation, unit, requests[-1], past)
        if (quotes := dialog.turns[unit.source[0] - 1].quotes) and simulation.view.rewrites:
            fates += _fates_of_quotes(simulation, unit, quotes)
        past.add(unit)
    for probe in answerable(dialog):
        question = question_unit(probe.question, len(dialog.turns) + 1, setup.counter.count_messages)
        requests.append(simulation.request(simulation.entered(question)))
        fates.append(_judge_probe(simulation, probe, requests[-1]))
    if facts:
        fates += _facts(simulation)
    return Run(
        fates=tuple(fates),
        requests=len(requests),
        tokens_sent=sum(request.tokens for request in requests),
        tokens_cached=sum(_count_shared(earlier, later, simulation.fixed) for earlier, later in pairwise(requests)),
        tokens_recalled=sum(request.recalled.est_tokens for request in requests),
        over_budget=sum(request.tokens > setup.budget for request in requests),
        rewrites=simulation.view.rewrites,
        rewrite_millis=simulation.view.millis,
        recall_millis=sum(request.recall_millis for request in requests),
    )


def _count_shared(earlier: Request, later: Request, fixed: int) -> int:
    """Count the tokens of the prefix that both requests share."""
    shared = 0
    for before, after in zip(earlier.units, later.units, strict=False):
        if before != after:
            break
        shared += 1
    return fixed + total_tokens(later.units[:shared])


def answerable(dialog: Dialog) -> tuple[Probe, ...]:
    """Return the questions that name evidence, or whose answer stood in the dialog word for word.

    No policy could bring any other answer back into sight.
    """
    everything = normalise("\n".join(turn.words for turn in dialog.turns))
    return tuple(probe for probe in dialog.probes if probe.evidence or _holds_answer(everything, probe))


def _holds_answer(text: str, probe: Probe) -> bool:
    return any(normalise(answer) in text for answer in probe.answers)


def _judge_probe(simulation: Simulation, probe: Probe, request: Request) -> Fate:
    dialog = simulation.dialog
    text = normalise(request.text(dialog.instructions))

    def is_held(given: str) -> bool:
        both = f"{text}\n{given}"
        return _holds_answer(both, probe) if not evidence else all(normalise(one) in both for one in needed)

    evidence = _evidence(dialog, probe)
    needed = probe.sentences or [turn.words for turn in evidence]
    last = (
        evidence[-1]
        if evidence
        else next(turn for turn in reversed(dialog.turns) if _holds_answer(normalise(turn.words), probe))
    )
    place = dialog.turns.index(last)
    return Fate(
        EVIDENCE if evidence else ANSWERS,
        probe.kind,
        last.message.role.value,
        _position(place, len(dialog.turns)),
        _state(is_held, simulation.index, probe.question),
        _holds_unmarked(request.text(dialog.instructions), probe.superseded) if probe.superseded else None,
    )


def _holds_unmarked(text: str, values: Sequence[str]) -> bool:
    """Check whether a sentence without the mark of what no longer holds says one of the values."""
    sentences = (sentence for line in text.splitlines() for sentence in SENTENCE_END.split(line))
    valid = [f" {normalise(sentence)} " for sentence in sentences if not UNTIL_MARK.search(sentence)]
    return any(f" {normalise(value)} " in sentence for value in values for sentence in valid)


def _evidence(dialog: Dialog, probe: Probe) -> list[Turn]:
    """Return the turns that are evidence, in the order of the dialog."""
    return [turn for turn in dialog.turns if turn.id in probe.evidence]


def _state(is_held: Callable[[str], bool], archive: Index, question: str) -> State:
    """Return whether a needed text is in sight, one search away or lost.

    ``is_held`` checks whether the request, together with a further text, holds it. The search is for ``question``.
    """
    if is_held(""):
        return State.IN_SIGHT
    found = "\n".join(
        normalise(hit.passage.text) for result in search(archive, question) for hit in (result.hit, *result.neighbours)
    )
    return State.ONE_SEARCH_AWAY if is_held(found) else State.LOST


def _fates_of_quotes(simulation: Simulation, unit: Unit, quotes: Sequence[str]) -> Iterator[Fate]:
    """Yield the fate of each sentence that a message quotes, if it was said at least two messages before."""
    earlier = [normalise(turn.words) for turn in simulation.dialog.turns[: unit.source[0] - 1]]
    places = {quote: _place_of(quote, earlier) for quote in map(normalise, quotes)}
    text = (
        normalise(simulation.request(simulation.view).text("")) if any(place >= 0 for place in places.values()) else ""
    )
    for quote, place in places.items():
        if place >= 0:
            state = _state(partial(_is_in_either, quote, text), simulation.index, quote)
            yield Fate(QUOTED, "sentence", "", _position(place, len(earlier)), state)


def _is_in_either(value: str, text: str, further: str) -> bool:
    return value in text or value in further


def _place_of(quote: str, earlier: Sequence[str]) -> int:
    """Return the place of the first message that says a sentence; -1 if none does, or if the newest does."""
    if not earlier or quote in earlier[-1]:
        return -1
    return next((place for place, words in enumerate(earlier) if quote in words), -1)


def _position(place: int, length: int) -> str:
    return POSITIONS[min(3, 4 * place // max(1, length))]


def search_probes(dialog: Dialog, archive: Index, units: Units, embed: Embed | None = None) -> Iterator[Fate]:
    """Search with each question as it is, and yield whether the first hits show its evidence or its answer.

    A hit shows evidence if it includes a unit with one of the turns that the question names.
    """
    places = {turn: place for place, unit in enumerate(units) for turn in unit.source}
    numbers = {turn.id: number for number, turn in enumerate(dialog.turns, 1)}
    for probe in answerable(dialog):
        rows = embed([probe.question]) if embed else None
        results = search(archive, probe.question, meaning=None if rows is None else rows[0])
        if probe.evidence:
            shown = {places[turn] for result in results for turn in result.turns}
            is_found = any(places.get(numbers[turn]) in shown for turn in probe.evidence)
        else:
            is_found = any(
                _holds_answer(normalise(hit.passage.text), probe)
                for result in results
                for hit in (result.hit, *result.neighbours)
            )
        yield Fate(SEARCH, probe.kind, "", "", State.ONE_SEARCH_AWAY if is_found else State.LOST)


def _facts(simulation: Simulation) -> Iterator[Fate]:
    """Yield the fates of the weightiest facts: what people and the agent said that a shorter text must still say."""
    required = {fact.statement.text: fact for fact in required_of(said_in(simulation.units))}.values()
    shown = Shown(simulation.request(simulation.view).text(simulation.dialog.instructions))
    for fact in sorted(required, key=lambda fact: -fact.statement.worth)[:MOST_FACTS]:
        if not shown.lacks(fact):
            state = State.IN_SIGHT
        else:
            state = State.ONE_SEARCH_AWAY if is_found(simulation.index, fact) else State.LOST
        yield Fate(FACTS, "fact", fact.statement.role, "", state)


def is_found(archive: Index, fact: Required) -> bool:
    """Check whether a search finds a fact by the other words of its sentence, as somebody searches who forgot it."""
    question = fact.statement.text
    for value in fact.values:
        question = question.replace(value, " ")
    results = search(archive, question) or search(archive, fact.statement.text)
    found = "\n".join(hit.passage.text for result in results for hit in (result.hit, *result.neighbours))
    return not Shown(found).lacks(fact)


class _Past:
    """The normalised texts of a dialog so far."""

    def __init__(self, instructions: str, length: int) -> None:
        self.instructions = instructions
        self.length = length
        self.texts: list[str] = []
        self.speakers: list[str] = []

    def add(self, unit: Unit) -> None:
        self.texts.append(normalise(unit.text))
        self.speakers.append(unit.role.value)

    def last(self, value: str) -> int | None:
        """Return the place of the unit that said ``value`` last.

        The result is None if no unit said it, if one of the newest units did, or if the instructions hold it.
        """
        if value in self.instructions:
            return None
        place = next((i for i in range(len(self.texts) - 1, -1, -1) if value in self.texts[i]), None)
        return place if place is not None and place < len(self.texts) - NEWEST_UNITS else None


def _needed_values(simulation: Simulation, unit: Unit, request: Request, past: _Past) -> Iterator[Fate]:
    """Yield the fate of each value in a call's arguments that had to be remembered from before the newest units."""
    values = {value for value in map(normalise, _values_in(unit)) if value}
    text = normalise(request.text(simulation.dialog.instructions)) if values else ""
    for value in sorted(values):
        if (place := past.last(value)) is None:
            continue

        question = query_of(request.units).newest
        yield Fate(
            NEEDED_LATER,
            "number" if value.replace(" ", "").isdigit() else "identifier",
            past.speakers[place],
            _position(place, past.length),
            _state(partial(_is_in_either, value, text), simulation.index, question),
        )


def _values_in(unit: Unit) -> Iterator[str]:
    for message in unit.messages:
        for call in message.tool_calls if message.role is Role.ASSISTANT else ():
            try:
                yield from values_of(json.loads(call.arguments or "null"))
            except json.JSONDecodeError:
                yield from values_of(call.arguments)


def values_of(arguments: Any) -> Iterator[str]:
    """Yield the texts and numbers inside that cannot be guessed: four characters or more, with a digit."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, list):
        for value in arguments:
            yield from values_of(value)
    elif isinstance(arguments, str | int | float) and not isinstance(arguments, bool):
        text = str(arguments)
        if len(text) >= SHORTEST_VALUE and any(character.isdigit() for character in text):
            yield text
