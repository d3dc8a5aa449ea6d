"""Tokens and time of a dialog of 200 turns, with and without a policy: ``python -m tests.benchmarks.retention``.

The server counts each prompt by its chat template and reports it. The same 100 messages (prose, logs, code, JSON) go to
an agent without a policy and a window that never fills, and to two with the retention policy and a window of 8,000
tokens: one whose server counts by the vocabulary of the estimates, and one whose server counts by another. A fourth has
the breaking chain. Times are of the post and the drive in this process, the first three messages left out.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import mean, median, quantiles
from typing import Any

from tests.benchmarks.pure import prose
from tests.benchmarks.rig import SMALL, Rig, load, progress, report, rig, table


@dataclass(frozen=True)
class Outcome:
    sent: int  # prompt tokens, reported
    largest: int
    rewrites: int
    side_calls: int  # for summaries and pruning
    raw: list[float]  # |estimate - report| / report, as counted
    calibrated: list[float]  # as the reports before it corrected the estimate
    answered: int
    wall: list[float]  # milliseconds a message, the model server's included
    processor: list[float]  # the same of this process


def converse(rig: Rig, agent: Any, messages: list[str], advance: Callable[[], None]) -> Outcome:
    from dialogs.actions.messages import create_dialog, post_message
    from dialogs.models import Generation
    from dialogs.runtime.driver import drive
    from remediation.models import RemediationRun

    dialog = create_dialog(rig.people(1)[0], agent.pk)
    wall, processor = [], []
    for text in messages:
        at, spent = time.perf_counter(), time.process_time()
        post_message(dialog.pk, text)
        drive(dialog.pk)
        wall.append((time.perf_counter() - at) * 1000)
        processor.append((time.process_time() - spent) * 1000)
        advance()
    columns = ("est_prompt_tokens", "est_tools_tokens", "prompt_tokens")
    results = list(Generation.objects.filter(dialog=dialog, outcome="kept").order_by("id").values_list(*columns))
    prompts = [reported for *_, reported in results if reported]
    counted = [(est, tools, reported) for est, tools, reported in results if est and reported]
    return Outcome(
        sum(prompts),
        max(prompts),
        RemediationRun.objects.filter(dialog=dialog).count(),
        Generation.objects.filter(dialog=dialog, purpose__in=["prune", "summary"]).count(),
        [abs(est - reported) / reported for est, _, reported in counted],
        calibrated_errors(counted),
        dialog.turns.filter(role="user", status="answered").count(),
        wall[3:],
        processor[3:],
    )


def calibrated_errors(results: list[tuple[int, int, int]]) -> list[float]:
    """Each estimate as the reports before it corrected it."""
    from remediation.tokens.calibration import Counted, calibrate

    errors, known = [], None
    for (raw, tools, reported), (total, part, counted) in pairwise(results):
        known = calibrate(known, Counted(raw - tools, tools), reported)
        errors.append(abs(known.expected(Counted(total - part, part)) - counted) / counted)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    asked = parser.parse_args()
    rng = Random(7)
    messages = [message(rng, number) for number in range(asked.turns // 2)]
    agents = {
        "none": ("counted", "none"),
        "retention": ("counted-small", "retention"),
        "retention, counted otherwise": ("counted-otherwise", "retention"),
        "breaking": ("counted-small", "breaking"),
    }
    result = {}
    with rig(workers=0, answer_chars=1_000) as running, progress() as bar:
        task = bar.add_task("four dialogs", total=len(messages) * len(agents))
        for name, (model, policy) in agents.items():
            result[name] = converse(running, running.agent(model, policy), messages, lambda: bar.advance(task))
    without = result["none"]
    head = ["policy", "prompt tokens sent", "saved", "largest prompt", "rewrites", "answered"]
    report(
        f"## A dialog of {asked.turns} turns ({load()})\n\n"
        + table(
            [*head, "estimate off as counted, median / most", "calibrated", "ms, median / mean / p99", "CPU, mean"],
            [row(name, outcome, without) for name, outcome in result.items()],
        )
        + f"\n\nThe aim is 30-50 % saved; window {SMALL:,} tokens."
    )


def message(rng: Random, number: int) -> str:
    """Four kinds of text in turn, since vocabularies differ most in what is no prose."""
    match number % 4:
        case 1:
            lines = (f"2026-11-22 10:{k:02}:07 INFO worker {k} took 0x{rng.randrange(1 << 32):08x}" for k in range(6))
            return "What does this log say?\n" + "\n".join(lines)
        case 2:
            return "Check this.\n" + "\n\n".join(
                f"def step_{rng.randrange(999)}(value: int) -> int:\n    return value * {k} + 1" for k in range(6)
            )
        case 3:
            rows = [{"id": rng.randrange(9999), "name": f"Grüße {k}", "price": k * 1.25} for k in range(6)]
            return f"Sum this up: {json.dumps(rows, ensure_ascii=False)}"
        case _:
            return prose(rng, 60)


def row(name: str, outcome: Outcome, without: Outcome) -> list[str]:
    saved = f"{100 * (1 - outcome.sent / without.sent):.0f} %" if outcome is not without else "–"
    numbers = [f"{outcome.sent:,}", saved, f"{outcome.largest:,}", f"{outcome.rewrites}", f"{outcome.answered}"]
    times = f"{median(outcome.wall):.0f} / {mean(outcome.wall):.0f} / {quantiles(outcome.wall, n=100)[98]:.0f}"
    return [name, *numbers, off(outcome.raw), off(outcome.calibrated), times, f"{mean(outcome.processor):.1f}"]


def off(errors: list[float]) -> str:
    return f"{100 * median(errors):.1f} % / {100 * max(errors):.1f} %" if errors else "–"


if __name__ == "__main__":
    main()
