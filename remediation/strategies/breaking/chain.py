"""The breaking chain: one strategy after the other, each going on where the last one stopped, then recovery."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from remediation.config import STRATEGY_NAMES, BreakingStrategy, ContextConfig
from remediation.context import Rewritten, StrategyStep, Toolbox, Units, step_of, total_tokens, write_nothing
from remediation.strategies.breaking.chunk_by_type import content_type_chunking
from remediation.strategies.breaking.discard_low_relevance import discard_low_rel
from remediation.strategies.breaking.prioritize_recent import prioritize_recent
from remediation.strategies.breaking.summarize_old import summarize_old
from remediation.strategies.carrying import ledger_reserve, most_of_account
from remediation.strategies.conclusion import Attempt, conclude, fail
from remediation.strategies.fresh_results import cut_fresh_results
from remediation.strategies.fresh_start import recover
from remediation.strategies.masking import mask_old_output
from remediation.strategies.outcome import StrategyOutcome, is_ledger, task_of
from remediation.strategies.truncate import truncate


class LastingRelevance:
    """Stands in for a toolbox's ``relevance`` during a chain: each unit is judged once, by its full text and against
    the task as it stood. Later strategies see shortened texts.

    Embedding is the costliest step of a rewrite, and a shorter text is no better witness of what a unit is about.
    """

    def __init__(self, relevance: Callable[[Sequence[str], str], Sequence[float]], task: str) -> None:
        self._relevance, self._task = relevance, task
        self._known: dict[str, float] = {}

    def __call__(self, texts: Sequence[str], query: str) -> Sequence[float]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        if missing:
            self._known |= dict(zip(missing, self._relevance(missing, self._task or query), strict=True))
        return [self._known[text] for text in texts]

    def inherit(self, before: Units, after: Units) -> None:
        """A unit that was shortened keeps the score of its longer text."""
        former = {unit.id: unit.text for unit in before}
        for unit in after:
            text = former.get(unit.id)
            if text is not None and text in self._known:
                self._known.setdefault(unit.text, self._known[text])


@dataclass(frozen=True, slots=True)
class _Run:
    """``limit`` is where the chain counts as done, ``aim`` what it goes on for while it can. Tokens, ledger apart."""

    limit: int
    aim: int
    toolbox: Toolbox
    relevance: LastingRelevance  # also the toolbox's


@dataclass(frozen=True, slots=True)
class _Progress:
    units: Units
    steps: tuple[StrategyStep, ...] = ()
    fresh_start: bool = False  # everything is relevant: no strategy is to choose
    excess: int = 0  # tokens that a model's summary takes beyond the aim

    @property
    def tokens(self) -> int:
        return total_tokens(self.units)


def break_context(units: Units, config: ContextConfig, toolbox: Toolbox, limit: int, target: int) -> Rewritten:
    """Make the context smaller by the configured chain, and recover as configured if it ends above ``limit``.

    1. Run the strategies in their order until ``target`` is reached, room for the ledger included.
    2. At or below ``limit`` the chain has succeeded, whether or not it came as far as ``target``.
    3. Above it: fresh start, truncation, or an error, by ``recovery_mode``.
    """
    attempt = Attempt(units, limit, toolbox.clock(), target=target)
    toolbox.report("detection", total_tokens(units), limit)
    run = _run_of(units, toolbox, limit, target)
    start = _mask_output(_Progress(tuple(unit for unit in units if not is_ledger(unit))), run)
    broken = _run_chain(start, config.breaking_strategy, run)
    attempt = replace(attempt, steps=broken.steps)
    if broken.tokens <= limit and not broken.fresh_start:
        rewritten = conclude(attempt, broken.units, toolbox)
        if not rewritten.failure:
            toolbox.report("success", rewritten.est_after, limit)
        return rewritten
    return _recover(attempt, config.recovery_mode, toolbox, target)


def _run_of(units: Units, toolbox: Toolbox, limit: int, target: int) -> _Run:
    relevance = LastingRelevance(toolbox.relevance, task_of(units))
    aim = max(1, min(target, limit) - ledger_reserve(limit, units))
    return _Run(limit, aim, replace(toolbox, relevance=relevance), relevance)


def _mask_output(progress: _Progress, run: _Run) -> _Progress:
    """Mask old tool output, before any strategy takes words away."""
    masked = mask_old_output(cut_fresh_results(progress.units, run.aim, run.toolbox), run.aim, run.toolbox)
    if masked == progress.units:
        return progress
    run.relevance.inherit(progress.units, masked)
    step = step_of("mask", progress.units, masked, "masked old tool output")
    return _Progress(masked, (*progress.steps, step))


def _run_chain(progress: _Progress, strategy: BreakingStrategy, run: _Run) -> _Progress:
    for name in strategy.chain_order:
        if progress.fresh_start or progress.tokens <= run.aim + progress.excess:
            break
        if name == "hybrid":
            progress = _run_hybrid(progress, strategy, run)
        else:
            progress = _run_step(progress, name, strategy, run)
    return progress


def _run_hybrid(progress: _Progress, strategy: BreakingStrategy, run: _Run) -> _Progress:
    """Run the other strategies again, pass after pass, while that makes the context smaller. For headroom below
    the limit one pass is enough, since each costs facts and time. A model that has written a summary is not asked for
    another one.
    """
    run.toolbox.report("hybrid", progress.tokens, run.limit)
    others = tuple(name for name in strategy.chain_order if name != "hybrid") or STRATEGY_NAMES[:-1]
    passes = strategy.hybrid.max_iterations if progress.tokens > run.limit else 1
    for _ in range(passes):
        earlier = progress.tokens
        if any(step.strategy == "summarize_old" for step in progress.steps):
            run = replace(run, toolbox=replace(run.toolbox, summarise=write_nothing))
        progress = _run_chain(progress, replace(strategy, chain_order=others), run)
        if progress.fresh_start or progress.tokens <= run.aim + progress.excess or progress.tokens >= earlier:
            break
    return progress


def _run_step(progress: _Progress, name: str, strategy: BreakingStrategy, run: _Run) -> _Progress:
    before = progress.tokens
    run.toolbox.report(name, before, run.limit)
    outcome = _apply(progress.units, name, strategy, run, run.aim + progress.excess)
    run.relevance.inherit(progress.units, outcome.units)
    step = step_of(name, progress.units, outcome.units, outcome.note)
    is_full = outcome.fresh_start and before > run.limit
    return _Progress(outcome.units, (*progress.steps, step), is_full, max(progress.excess, outcome.excess))


def _apply(units: Units, name: str, strategy: BreakingStrategy, run: _Run, aim: int) -> StrategyOutcome:
    toolbox = run.toolbox
    match name:
        case "summarize_old":
            most = most_of_account(run.limit)
            recent = strategy.prioritize_recent.recent_bias
            return summarize_old(units, strategy.summarize_old, toolbox, aim, most, recent)
        case "prioritize_recent":
            return prioritize_recent(units, strategy.prioritize_recent, toolbox, aim)
        case "content_type_chunking":
            return content_type_chunking(units, strategy.content_type_chunking, toolbox, aim)
        case "discard_low_rel":
            return discard_low_rel(units, strategy.discard_low_rel, toolbox, aim)
        case _:
            return StrategyOutcome(units, f"unknown strategy {name!r}; skipped")


def _recover(attempt: Attempt, mode: str, toolbox: Toolbox, target: int) -> Rewritten:
    match mode:
        case "truncate":
            return truncate(attempt, target, toolbox)
        case "error":
            return fail(attempt, _exhausted_note(attempt), toolbox)
        case _:
            return recover(attempt, toolbox)


def _exhausted_note(attempt: Attempt) -> str:
    smallest = min((step.est_after for step in attempt.steps), default=total_tokens(attempt.before))
    return (
        f"Every strategy was tried and est. {smallest:,} tokens remain above the limit of {attempt.limit:,}. "
        "Raise the limit, change the chain, or set recovery_mode to fresh_start."
    )
