"""Tokens sent over a dialog of 200 turns, with and without document D's policy: ``python -m tests.benchmarks.retention``.

The server counts each prompt by its chat template and reports it. The same 100 messages go to an agent without a policy
and a window that never fills, and to one with the retention policy and a window of 8,000 tokens.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

from tests.benchmarks.pure import prose
from tests.benchmarks.rig import SMALL, Rig, load, progress, report, rig, table


@dataclass(frozen=True)
class Outcome:
    sent: int  # prompt tokens, reported
    largest: int
    rewrites: int
    errors: list[float]  # |estimate - report| / report of each calibrated estimate
    answered: int


def converse(rig: Rig, agent: Any, messages: list[str], advance: Callable[[], None]) -> Outcome:
    from dialogs.driver import drive
    from dialogs.inbox import create_dialog, post_message
    from dialogs.models import Generation
    from remediation.models import RemediationRun

    dialog = create_dialog(rig.people(1)[0], agent.pk)
    for text in messages:
        post_message(dialog.pk, text)
        drive(dialog.pk)
        advance()
    columns = ("est_prompt_tokens", "prompt_tokens")
    found = list(Generation.objects.filter(dialog=dialog, outcome="kept").order_by("id").values_list(*columns))
    prompts = [reported for _, reported in found if reported]
    return Outcome(
        sum(prompts),
        max(prompts),
        RemediationRun.objects.filter(dialog=dialog).count(),
        calibrated_errors([(est, reported) for est, reported in found if est and reported]),
        dialog.turns.filter(role="user", status="answered").count(),
    )


def calibrated_errors(found: list[tuple[int, int]]) -> list[float]:
    """Each estimate times the factor that the reports before it gave."""
    from remediation.tokens.calibration import Calibration, calibrate

    errors, known = [], None
    for (raw, reported), following in pairwise(found):
        known = calibrate(known if isinstance(known, Calibration) else None, raw, reported)
        errors.append(abs(following[0] * known.factor - following[1]) / following[1])
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    asked = parser.parse_args()
    rng = Random(7)
    messages = [prose(rng, 60) for _ in range(asked.turns // 2)]
    with rig(workers=0, answer_chars=1_000) as running, progress() as bar:
        task = bar.add_task("two dialogs", total=asked.turns)
        without = converse(running, running.agent("counted"), messages, lambda: bar.advance(task))
        kept = converse(running, running.agent("counted-small", "retention"), messages, lambda: bar.advance(task))
    rows = [
        ["none", f"{without.sent:,}", f"{without.largest:,}", "0", f"{without.answered}", "–"],
        [
            "retention",
            f"{kept.sent:,}",
            f"{kept.largest:,}",
            f"{kept.rewrites}",
            f"{kept.answered}",
            f"{100 * median(kept.errors):.1f} % / {100 * max(kept.errors):.1f} %",
        ],
    ]
    head = ["policy", "prompt tokens sent", "largest prompt", "rewrites", "answered"]
    report(
        f"## A dialog of {asked.turns} turns ({load()})\n\n"
        + table([*head, "estimate off by, median / most"], rows)
        + f"\n\nSaved: {100 * (1 - kept.sent / without.sent):.0f} % (document D says 30-50 %); window {SMALL:,} tokens."
    )


if __name__ == "__main__":
    main()
