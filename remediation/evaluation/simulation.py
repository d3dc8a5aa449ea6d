"""Simulation of a dialog: its turns are fed to a policy one by one, and the requests that would be sent are built."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dominds.llm.messages import Message, Role
from health.levels import Thresholds
from remediation.budget import Budget, answer_room
from remediation.config import ContextConfig
from remediation.context import Toolbox, Unit, UnitRole, Units, longest_of_newest_answers, total_tokens
from remediation.evaluation.dialogs import Dialog, units_of
from remediation.evaluation.policies import Policy
from remediation.policies.policy import RewriteTask
from remediation.recall.index import Index
from remediation.recall.meaning import pack, unpack
from remediation.recall.passages import Passage, passages_of
from remediation.recall.query import Query, query_of
from remediation.recall.recall import Allowance, InSight, Recalled, recall, render
from remediation.similarity.minilm import Array
from remediation.tokens.counting import Counter

Embed = Callable[[Sequence[str]], Array | None]


@dataclass(frozen=True, slots=True)
class Recalling:
    """The settings of recall.

    ``share`` is the part of the budget that recalled text may take; 0 turns recall off. ``embed`` returns one vector
    for each text, or None where no model is installed. Without ``embed``, recall compares words alone.
    """

    share: float = 0.0
    embed: Embed | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of one simulation. ``budget`` is for the whole request, in tokens.

    ``window`` is that of the model, in which an answer has to fit as well; None if it is much larger than the budget.
    """

    policy: Policy
    budget: int
    recalling: Recalling
    counter: Counter
    toolbox: Toolbox
    window: int | None = None
    config: ContextConfig = field(default_factory=ContextConfig)

    def division(self, fixed: int, units: Units, freed: int | None = None) -> Budget:
        """Return the parts of a request with these units, as the runtime divides it."""
        thresholds = Thresholds(self.window)
        return Budget(
            limit=self.budget,
            window=self.window,
            frame=fixed,
            view=total_tokens(units),
            stays=sum(unit.est_tokens for unit in units if unit.pinned or unit is units[-1]),
            answer=answer_room(None, self.window or self.budget),
            answered=longest_of_newest_answers(units),
            counts_answer=self.window is not None and self.policy.reserves_answer,
            trigger_share=self.policy.trigger_share,
            aim_share=self.policy.target_percent / 100,
            optimal=thresholds.effective_optimal_max,
            critical=thresholds.effective_critical_max,
            freed=freed if self.window is not None else None,
        )

    def task(self, division: Budget, units: Units) -> RewriteTask:
        limit = max(1, division.units_room(self.budget))
        return RewriteTask(
            units=units,
            limit=limit,
            target=max(1, min(limit, division.units_room(division.aim))),
            fixed=division.beside,
            standing=division.stays,
            request_limit=self.budget,
            config=self.config,
        )


@dataclass(frozen=True, slots=True)
class View:
    """The units that the model sees, and how often and how long they were rewritten so far."""

    units: Units = ()
    rewrites: int = 0
    millis: float = 0.0  # of the rewrites
    freed: int | None = None  # tokens that a rewrite for the newest unit gained


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it would be sent: instructions, the view, and recalled text."""

    units: Units
    recalled: Recalled
    tokens: int
    recall_millis: float

    def text(self, instructions: str) -> str:
        return "\n".join((instructions, *(unit.text for unit in self.units), render(self.recalled.found)))


@dataclass
class Simulation:
    """One dialog under one policy. ``steps`` can be iterated only once."""

    dialog: Dialog
    setup: Setup
    units: Units = field(init=False)
    fixed: int = field(init=False)
    index: Index = field(init=False)
    view: View = field(init=False)

    def __post_init__(self) -> None:
        self.units = units_of(self.dialog, self.setup.counter.count_messages)
        self.fixed = self.setup.counter.count_messages([Message(Role.USER, self.dialog.instructions)])
        self.index = Index()
        self.view = View()
        self._original = {unit.id: unit.messages for unit in self.units}

    def steps(self) -> Iterator[Unit]:
        """Yield each unit before it enters the view, so that ``view`` is what the generation that wrote it saw."""
        for unit in self.units:
            yield unit
            self.view = self.entered(unit)
            self.index.add(entries_of(unit, self.setup.counter))

    def entered(self, unit: Unit) -> View:
        """Return the view with one more unit, rewritten if it is over the policy's trigger."""
        earlier = tuple(replace(one, pinned=False) if one.pinned else one for one in self.view.units)
        units, setup = (*earlier, replace(unit, pinned=unit.role is UnitRole.USER)), self.setup
        division = setup.division(self.fixed, units)
        # An answer is followed by no generation, so its rewrite waits for the next message.
        if setup.policy.rewrite is None or not division.is_over_trigger or unit.role is UnitRole.ASSISTANT:
            return View(units, self.view.rewrites, self.view.millis)
        started_at = time.perf_counter()
        after = setup.policy.rewrite(setup.task(division, units), setup.toolbox)
        millis = (time.perf_counter() - started_at) * 1000
        freed = max(0, total_tokens(units) - total_tokens(after))
        return View(after, self.view.rewrites + (after != units), self.view.millis + millis, freed)

    def request(self, view: View) -> Request:
        """Build a request of this view. From the first rewrite on, recalled text takes what is free of its share."""
        tokens = total_tokens(view.units) + self.fixed
        started_at = time.perf_counter()
        recalled = self._recall(view) if view.rewrites and self.setup.recalling.share else Recalled()
        millis = (time.perf_counter() - started_at) * 1000
        return Request(view.units, recalled, tokens + recalled.est_tokens, millis)

    def _recall(self, view: View) -> Recalled:
        setup = self.setup
        room = setup.division(self.fixed, view.units, view.freed).recall_room(setup.recalling.share)
        in_sight = {unit.source[0] for unit in view.units if self._original.get(unit.id) == unit.messages}
        shown = InSight(in_sight, "\n".join(unit.text for unit in view.units))
        allowance = Allowance(room, setup.counter.count)
        query = query_of(view.units)
        query = replace(query, meaning=self._meaning_of(query, in_sight))
        return recall(self.index, query, shown, allowance)

    def _meaning_of(self, query: Query, in_sight: Collection[int]) -> Array | None:
        """Return the vector of the query once all units that are out of sight have theirs; None without a model."""
        embed = self.setup.recalling.embed
        rows = embed([query.newest]) if embed else None
        return rows[0] if embed and rows is not None and embed_missing(self.index, embed, in_sight) else None


def embed_missing(index: Index, embed: Embed, left_out: Collection[int] = ()) -> bool:
    """Give the index the vectors that it lacks, except for the turns ``left_out``. Return False if no model embeds."""
    for turn in index.lacking_meaning(left_out):
        vectors = embed([passage.text for passage in index.passages(index.entries_of([turn]).tolist())])
        if vectors is None:
            return False
        if (rows := unpack(pack(vectors), len(vectors))) is not None:
            index.give_meaning(turn, rows)
    return True


def entries_of(unit: Unit, counter: Counter) -> tuple[Passage, ...]:
    """Return the passages by which an archive indexes a unit."""
    return passages_of(unit.source[0], speaker_of(unit), unit.text, counter.count)


def speaker_of(unit: Unit) -> str:
    names = [call.name for message in unit.messages for call in message.tool_calls]
    return ", ".join(names) if unit.role is UnitRole.TOOL and names else unit.role.value
