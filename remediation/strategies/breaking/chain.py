"""The breaking chain: one strategy after the other, each going on where the last one stopped, then recovery."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from remediation.config import STRATEGY_NAMES, BreakingStrategy, ContextConfig
from remediation.context import Rewritten, StrategyStep, Toolbox, Units, step_of, total_tokens, write_nothing
from remediation.strategies.breaking.chunk_by_type import content_type_chunking
from remediation.strategies.breaking.discard_low_relevance import discard_low_rel
from remediation.strategies.breaking.prioritize_recent import prioritize_recent
from remediation.strategies.breaking.summarize_old import summarize_old
from remediation.strategies.carrying import ledger_budget, ledger_reserve, most_of_account
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.fresh_results import lighten
from remediation.strategies.fresh_start import recover
from remediation.strategies.outcome import StrategyOutcome, is_ledger, standing, task_of, those, tokens_at, with_newest

Strategy = Callable[[Units, Any, Toolbox, int], StrategyOutcome]  # units, its options, toolbox, aim


@dataclass
class _Chain:
    """A chain under way. ``limit`` is where it counts as done, ``aim`` what it goes on for while it can: in tokens,
    ledger apart.

    Each unit's relevance is judged once, by its full text and against the ``task`` as it stood: embedding is the
    costliest step of a rewrite, and a shorter text is no better witness of what a unit is about.
    """

    units: Units
    options: BreakingStrategy
    toolbox: Toolbox
    limit: int
    aim: int
    task: str
    steps: tuple[StrategyStep, ...] = ()
    fresh_start: bool = False  # everything is relevant: no strategy is to choose

    def __post_init__(self) -> None:
        self._relevance: dict[str, float] = {}
        self._judge = self.toolbox.relevance
        self.toolbox = replace(self.toolbox, relevance=self._lasting_relevance)
        recent = self.options.prioritize_recent.recent_bias
        self._strategies: Mapping[str, Strategy] = {
            "summarize_old": partial(summarize_old, most_tokens=most_of_account(self.limit), recent_share=recent),
            "prioritize_recent": prioritize_recent,
            "content_type_chunking": content_type_chunking,
            "discard_low_rel": discard_low_rel,
        }

    @property
    def tokens(self) -> int:
        return total_tokens(self.units)

    @property
    def is_done(self) -> bool:
        return self.fresh_start or self.tokens <= self.aim

    def mask(self) -> None:
        """Mask old tool output, before any strategy takes words away."""
        masked = lighten(self.units, self.aim, self.toolbox)
        if masked != self.units:
            self._go_on_with("mask", masked, "masked old tool output")

    def run(self, order: Sequence[str]) -> None:
        for name in order:
            if self.is_done:
                break
            if name == "hybrid":
                self._run_hybrid()
            else:
                self._run_strategy(name)

    def _run_hybrid(self) -> None:
        """Run the other strategies again, pass after pass, while that makes the context smaller. For headroom below
        the limit one pass is enough, since each costs facts and time. A model that has written a summary is not asked
        for another one.
        """
        self.toolbox.report("hybrid", self.tokens, self.limit)
        others = tuple(name for name in self.options.chain_order if name != "hybrid") or STRATEGY_NAMES[:-1]
        passes = self.options.hybrid.max_iterations if self.tokens > self.limit else 1
        for _ in range(passes):
            earlier = self.tokens
            if any(step.strategy == "summarize_old" for step in self.steps):
                self.toolbox = replace(self.toolbox, summarise=write_nothing)
            self.run(others)
            if self.is_done or self.tokens >= earlier:
                break

    def _run_strategy(self, name: str) -> None:
        before = self.tokens
        self.toolbox.report(name, before, self.limit)
        if name not in self._strategies:
            self._go_on_with(name, self.units, f"unknown strategy {name!r}; skipped")
            return
        outcome = self._strategies[name](self.units, getattr(self.options, name), self.toolbox, self.aim)
        self._go_on_with(name, outcome.units, outcome.note)
        self.fresh_start = outcome.fresh_start and before > self.limit
        self.aim += outcome.excess

    def _go_on_with(self, name: str, units: Units, note: str) -> None:
        """Record a step. A unit that it shortened keeps the relevance of its longer text."""
        former = {unit.id: unit.text for unit in self.units}
        for unit in units:
            if (text := former.get(unit.id)) in self._relevance:
                self._relevance.setdefault(unit.text, self._relevance[text])
        self.steps += (step_of(name, self.units, units, note),)
        self.units = units

    def _lasting_relevance(self, texts: Sequence[str], query: str) -> Sequence[float]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._relevance))
        if missing:
            self._relevance |= dict(zip(missing, self._judge(missing, self.task or query), strict=True))
        return [self._relevance[text] for text in texts]


def break_context(units: Units, config: ContextConfig, toolbox: Toolbox, limit: int, target: int) -> Rewritten:
    """Make the context smaller by the configured chain, and recover as configured if it ends above ``limit``.

    1. Run the strategies in their order until ``target`` is reached, room for the ledger included.
    2. At or below ``limit`` the chain has succeeded, whether or not it came as far as ``target``.
    3. Above it: fresh start, truncation, or an error, by ``recovery_mode``.
    """
    attempt = Attempt(units, limit, toolbox.clock(), target=target)
    toolbox.report("detection", total_tokens(units), limit)
    aim = max(1, min(target, limit) - ledger_reserve(limit, units))
    talk = tuple(unit for unit in units if not is_ledger(unit))
    chain = _Chain(talk, config.breaking_strategy, toolbox, limit, aim, task_of(units))
    chain.mask()
    chain.run(config.breaking_strategy.chain_order)
    attempt = replace(attempt, steps=chain.steps)
    if chain.tokens <= limit and not chain.fresh_start:
        rewritten = conclude(attempt, chain.units, toolbox)
        if not rewritten.failure:
            toolbox.report("success", rewritten.est_after, limit)
        return rewritten
    match config.recovery_mode:
        case "truncate":
            return _truncate(attempt, target, toolbox)
        case "error":
            smallest = min((step.est_after for step in attempt.steps), default=total_tokens(units))
            says = f"Every strategy was tried and est. {smallest:,} tokens remain above the limit of {limit:,}. "
            way_out = "Raise the limit, change the chain, or set recovery_mode to fresh_start."
            return fail(attempt, says + way_out, toolbox)
        case _:
            return recover(attempt, toolbox)


def _truncate(attempt: Attempt, target_tokens: int, toolbox: Toolbox) -> Rewritten:
    """Keep system prompts, pinned units and the newest user message; then priority 1, up to the limit; then the newest
    others.

    Others are kept without a gap, newest first, while they fit into ``target_tokens``.
    """
    attempt = replace(attempt, recovered=True)
    units, limit = attempt.before, attempt.limit
    toolbox.report("recovery", total_tokens(units), limit)
    kept = standing(units)
    if tokens_at(units, kept) > limit:
        return fail(attempt, irreducible(units, limit), toolbox)
    important = [index for index, unit in enumerate(units) if unit.priority == 1]
    kept = with_newest(units, kept, important, limit, skip=True)
    kept = with_newest(units, kept, range(len(units)), target_tokens - ledger_budget(limit))
    rewritten = conclude(attempt, those(units, kept), toolbox)
    if not rewritten.failure:
        toolbox.report("success", rewritten.est_after, limit)
    return rewritten
