"""What a request still holds of what is needed: by the words as they stand, without a model's opinion."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from remediation.context import Unit, total_tokens
from remediation.evaluation.dialogs import Dialog, Probe, question_unit
from remediation.evaluation.simulation import Request, Setup, Simulation, View

PUNCTUATION = re.compile(r"[^\w\s]|_")
SHORTEST_VALUE = 4  # characters of an argument that counts as a value one has to know
NEWEST_UNITS = 5  # where a value that stands there needs no remembering
FIRST_HITS = 10


@dataclass(frozen=True, slots=True)
class Fate:
    """One thing that was needed, and whether it stood in the request. ``position`` is its place in the dialog, 0 to 1;
    ``hops`` how many turns it takes."""

    measure: str
    dialog: str
    kind: str
    speaker: str
    position: float
    in_sight: bool


@dataclass(frozen=True, slots=True)
class Run:
    """One dialog under one policy."""

    fates: tuple[Fate, ...]
    requests: int
    tokens_sent: int
    tokens_cached: int  # of them, in the same words at the same place as in the request before
    over_budget: int  # requests
    rewrites: int
    rewrite_millis: float
    recall_millis: float


def normalised(text: str) -> str:
    """Lower case, without punctuation, one blank between words."""
    return " ".join(PUNCTUATION.sub(" ", text.lower()).split())


def run(dialog: Dialog, setup: Setup) -> Run:
    """Feed the dialog, judge each tool call on the way and each question at the end."""
    simulation = Simulation(dialog, setup)
    fates: list[Fate] = []
    requests: list[Request] = []
    seen = _Seen(dialog.instructions)
    for unit in simulation.steps():
        if unit.role.value in ("assistant", "tool"):
            requests.append(simulation.request(simulation.view))
            if simulation.view.rewrites:
                fates += _needed(dialog, simulation, unit, requests[-1], seen)
        seen.add(unit)
    final = simulation.view
    for probe in dialog.probes:
        view = simulation.entered(question_unit(probe.question, len(dialog.turns) + 1, setup.counter.count_messages))
        request = simulation.request(view)
        requests.append(request)
        fates.append(_answered(dialog, probe, request))
    return _run(fates, requests, simulation, final)


def _run(fates: list[Fate], requests: list[Request], simulation: Simulation, final: View) -> Run:
    return Run(
        fates=tuple(fates),
        requests=len(requests),
        tokens_sent=sum(request.tokens for request in requests),
        tokens_cached=sum(_shared(a, b, simulation.fixed) for a, b in zip(requests, requests[1:], strict=False)),
        over_budget=sum(request.tokens > simulation.setup.budget for request in requests),
        rewrites=final.rewrites,
        rewrite_millis=final.millis,
        recall_millis=sum(request.recall_millis for request in requests),
    )


def _shared(earlier: Request, later: Request, fixed: int) -> int:
    """Tokens of the beginning that both requests share."""
    same = 0
    for one, other in zip(earlier.units, later.units, strict=False):
        if one != other:
            break
        same += 1
    return fixed + total_tokens(later.units[:same])


def _answered(dialog: Dialog, probe: Probe, request: Request) -> Fate:
    text = normalised(request.text(dialog.instructions))
    if not probe.evidence:
        found = any(normalised(answer) in text for answer in probe.answers)
        return Fate("answers in sight", dialog.name, probe.kind, "", 0.0, found)
    turns = [turn for turn_id in probe.evidence if (turn := dialog.turn(turn_id))]
    place = max(index for index, turn in enumerate(dialog.turns) if turn.id in probe.evidence)
    found = all(normalised(turn.said) in text for turn in turns)
    return Fate(
        "evidence in sight", dialog.name, probe.kind, turns[-1].speaker, place / max(1, len(dialog.turns) - 1), found
    )


class _Seen:
    """The text of the units so far, each normalised once."""

    def __init__(self, instructions: str) -> None:
        self.instructions = normalised(instructions)
        self.texts: list[str] = []
        self.speakers: list[str] = []

    def add(self, unit: Unit) -> None:
        self.texts.append(normalised(unit.text))
        self.speakers.append(unit.role.value)


def _needed(dialog: Dialog, simulation: Simulation, unit: Unit, request: Request, seen: _Seen) -> Iterator[Fate]:
    """Each value of a call's arguments that occurred before, and neither just now nor in the instructions."""
    values = {normalised(value) for call in _calls(unit) for value in values_of(call)}
    if not values:
        return
    text = normalised(request.text(dialog.instructions))
    for value in sorted(values):
        where = [index for index, earlier in enumerate(seen.texts) if value in earlier]
        if where and where[-1] < len(seen.texts) - NEWEST_UNITS and value not in seen.instructions:
            kind = "number" if value.replace(" ", "").isdigit() else "identifier"
            position = where[-1] / max(1, len(simulation.units) - 1)
            yield Fate("needed later", dialog.name, kind, seen.speakers[where[-1]], position, value in text)


def _calls(unit: Unit) -> Iterator[Any]:
    for message in unit.messages:
        for call in message.tool_calls:
            try:
                yield json.loads(call.arguments or "null")
            except json.JSONDecodeError:
                yield call.arguments


def values_of(arguments: Any) -> Iterator[str]:
    """The texts and numbers inside that nobody guesses: of four characters and more, with a digit."""
    if isinstance(arguments, dict):
        for value in arguments.values():
            yield from values_of(value)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from values_of(value)
    elif isinstance(arguments, (str, int, float)) and not isinstance(arguments, bool):
        text = str(arguments)
        if len(text) >= SHORTEST_VALUE and any(character.isdigit() for character in text):
            yield text
