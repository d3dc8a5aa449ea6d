"""The breaking chain: strategies in the configured order until the target is reached, then recovery if none helps."""

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
    """A chain under way. It has succeeded at ``limit`` tokens, but goes on to ``aim`` while it can, ledger not counted.

    The relevance of each unit to the ``task`` is judged once, by the unit's full text. Embedding takes more time than
    all else in a rewrite, and a shortened text says less of what the unit is about.
    """

    units: Units
    options: BreakingStrategy
    toolbox: Toolbox
    limit: int
    aim: int
    task: str
    steps: tuple[StrategyStep, ...] = ()
    fresh_start: bool = False  # everything is relevant, so no strategy can choose what goes

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
        """Mask old tool output, which goes before any words do."""
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
        """Run the other strategies again and again while that makes the context smaller.

        Below the limit it is done once, since each pass costs facts and time. A model that has written a summary is not
        asked for another one.
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
        """Record a step. Units that it shortened keep the relevance of their longer text."""
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
    """Make the context smaller by the configured chain.

    1. Mask old tool output, and run the strategies in their order until ``target`` is reached, ledger included.
    2. If the context is within ``limit``, the chain has succeeded, even if it missed ``target``.
    3. Otherwise start afresh, truncate or fail, by ``recovery_mode``.
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
    """Keep what must stay, units of priority 1 that fit the limit, and the newest others.

    The others are kept without a gap, newest first, while all fit into ``target_tokens``.
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
