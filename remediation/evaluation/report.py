"""The results as values, and as Markdown."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from remediation.evaluation.measures import POSITIONS, Fate, Run, State


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of texts that were needed: how many were in sight, one search away, or lost."""

    needed: int = 0
    in_sight: int = 0
    one_search_away: int = 0

    @property
    def lost(self) -> int:
        return self.needed - self.in_sight - self.one_search_away

    @property
    def share(self) -> float | None:
        """Return the share in sight, 0 to 1; ``None`` where nothing was needed."""
        return self.in_sight / self.needed if self.needed else None


@dataclass(frozen=True, slots=True)
class Updates:
    """Counts of values that replaced others, by what a model sees of them: the new one alone, both as if both were
    valid, the old one alone, or neither. An old value that is marked as such does not count as seen.
    """

    asked: int = 0
    new_alone: int = 0
    both: int = 0
    old_alone: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """One policy over all dialogs of one format. ``groups`` maps a criterion of GROUPS to its groups' tallies."""

    format: str
    policy: str
    budget: int
    recall_share: float
    dialogs: int
    tallies: Mapping[str, Tally]  # by measure
    groups: Mapping[str, Mapping[str, Tally]]
    updates: Updates
    requests: int
    tokens_sent: int
    cached_share: float
    recalled_share: float
    over_budget: int
    rewrites: int
    rewrite_millis: float
    recall_millis: float  # the mean of a request


@dataclass(frozen=True, slots=True)
class Searched:
    """The number of raw questions whose evidence or answer the first hits show."""

    format: str
    asked: int
    answered: int
    unanswerable: int  # left out: their answer never stood in the dialog


@dataclass(frozen=True, slots=True)
class Report:
    results: tuple[Result, ...]
    searches: tuple[Searched, ...]


GROUPS: Mapping[str, Callable[[Fate], str]] = {
    "kind": lambda fate: fate.kind,
    "position": lambda fate: fate.position,
    "speaker": lambda fate: fate.speaker,
}


def tally(fates: Iterable[Fate]) -> Tally:
    states = [fate.state for fate in fates]
    return Tally(len(states), states.count(State.IN_SIGHT), states.count(State.ONE_SEARCH_AWAY))


def tallies_by(fates: Sequence[Fate], key: Callable[[Fate], str]) -> dict[str, Tally]:
    return {name: tally(fate for fate in fates if key(fate) == name) for name in sorted({key(fate) for fate in fates})}


def updates_of(fates: Iterable[Fate]) -> Updates:
    seen = Counter((fate.state is State.IN_SIGHT, fate.is_stale) for fate in fates if fate.is_stale is not None)
    return Updates(seen.total(), seen[True, False], seen[True, True], seen[False, True])


def result_of(form: str, policy: str, budget: int, recall_share: float, runs: Sequence[Run]) -> Result:
    fates = [fate for run in runs for fate in run.fates]
    sent, requests = sum(run.tokens_sent for run in runs), sum(run.requests for run in runs)
    return Result(
        format=form,
        policy=policy,
        budget=budget,
        recall_share=recall_share,
        dialogs=len(runs),
        tallies=tallies_by(fates, lambda fate: fate.measure),
        groups={name: tallies_by(fates, key) for name, key in GROUPS.items()},
        updates=updates_of(fates),
        requests=requests,
        tokens_sent=sent,
        cached_share=sum(run.tokens_cached for run in runs) / sent if sent else 0.0,
        recalled_share=sum(run.tokens_recalled for run in runs) / sent if sent else 0.0,
        over_budget=sum(run.over_budget for run in runs),
        rewrites=sum(run.rewrites for run in runs),
        rewrite_millis=sum(run.rewrite_millis for run in runs),
        recall_millis=sum(run.recall_millis for run in runs) / requests if requests else 0.0,
    )


def to_markdown(report: Report) -> str:
    parts = [_fates_table(report.results)]
    if report.searches:
        parts.append(_searches_table(report.searches))
    parts.append(_updates_table([result for result in report.results if result.updates.asked]))
    parts += [_groups_table(name, report.results) for name in GROUPS]
    parts.append(_costs_table(report.results))
    return "\n\n".join(part for part in parts if part) + "\n"


def _fates_table(results: Sequence[Result]) -> str:
    rows = [
        [
            *_names(result),
            measure,
            f"{counts.needed:,}",
            _percent(counts.in_sight, counts.needed),
            _percent(counts.one_search_away, counts.needed),
            _percent(counts.lost, counts.needed),
        ]
        for result in results
        for measure, counts in result.tallies.items()
    ]
    return "## What is needed\n\n" + _table([*NAMES, "measure", "needed", "in sight", "one search away", "lost"], rows)


def _searches_table(searches: Sequence[Searched]) -> str:
    rows = [
        [result.format, f"{result.asked:,}", _percent(result.answered, result.asked), f"{result.unanswerable:,}"]
        for result in searches
    ]
    return "## Search by the raw question\n\n" + _table(["dialogs", "questions", "found", "without an answer"], rows)


def _updates_table(results: Sequence[Result]) -> str:
    """Write what a model sees of values that were replaced; nothing if no dialog has any."""
    rows = [
        [
            *_names(result),
            f"{result.updates.asked:,}",
            f"{result.updates.new_alone:,}",
            f"{result.updates.both:,}",
            f"{result.updates.old_alone:,}",
        ]
        for result in results
    ]
    head = [*NAMES, "updates", "new alone", "both as valid", "old alone"]
    return "## Values that were replaced\n\n" + _table(head, rows) if rows else ""


def _groups_table(name: str, results: Sequence[Result]) -> str:
    """Write the share in sight by group, in one table for each format, since their groups differ."""
    parts = []
    for form in dict.fromkeys(result.format for result in results):
        chosen = [result for result in results if result.format == form]
        groups = sorted({group for result in chosen for group in result.groups[name] if group}, key=_order)
        rows = [[*_names(result)[1:], *(_share_of(result.groups[name].get(g)) for g in groups)] for result in chosen]
        if groups:
            parts.append(f"## In sight by {name}: {form}\n\n" + _table([*NAMES[1:], *groups], rows))
    return "\n\n".join(parts)


def _order(group: str) -> tuple[int, str]:
    return (POSITIONS.index(group) if group in POSITIONS else -1), group


def _costs_table(results: Sequence[Result]) -> str:
    head = [
        *NAMES,
        "dialogs",
        "requests",
        "tokens a request",
        "cache-readable",
        "recalled",
        "over budget",
        "rewrites",
        "ms a rewrite",
        "ms a recall",
    ]
    rows = [
        [
            *_names(r),
            f"{r.dialogs:,}",
            f"{r.requests:,}",
            f"{r.tokens_sent / max(1, r.requests):,.0f}",
            f"{100 * r.cached_share:.0f} %",
            f"{100 * r.recalled_share:.0f} %",
            f"{r.over_budget:,}",
            f"{r.rewrites:,}",
            f"{r.rewrite_millis / max(1, r.rewrites):.1f}",
            f"{r.recall_millis:.1f}",
        ]
        for r in results
    ]
    return "## What it costs\n\n" + _table(head, rows)


NAMES = ("dialogs of", "budget", "policy", "recall")


def _names(result: Result) -> list[str]:
    recall = f"{100 * result.recall_share:.0f} %" if result.recall_share else "–"
    return [result.format, f"{result.budget:,}", result.policy, recall]


def _share_of(value: Tally | None) -> str:
    return _percent(value.in_sight, value.needed) if value else "–"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
