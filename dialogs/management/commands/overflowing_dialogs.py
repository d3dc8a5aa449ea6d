from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from random import Random
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from dominds.local.up import whole_number
from remediation.synthetic_dialogs import OverflowingDialog, overflowing_dialog
from remediation.tokens.counting import counter_for


class Command(BaseCommand):
    help = (
        "Write dialogs that overflow a limit, with planted facts, as JSON lines. The same seed gives the same dialogs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--number", type=whole_number(1), default=15)
        parser.add_argument("--limit", type=whole_number(100), default=5_000, help="tokens")
        parser.add_argument("--multiple", type=_multiple, default=2.0, help="size, in limits")

    def handle(
        self, *args: Any, file: Path, seed: int, number: int, limit: int, multiple: float, **options: Any
    ) -> None:
        rng, count = Random(seed), counter_for("gpt-4").count_messages
        with file.open("wb") as lines:
            for _ in range(number):
                lines.write(orjson.dumps(_as_json(overflowing_dialog(rng, limit, multiple, count))) + b"\n")
        self.stdout.write(f"{number} dialogs of about {limit * multiple:,.0f} tokens written to {file} (seed {seed})")


def _multiple(value: str) -> float:
    try:
        if 0.1 <= (multiple := float(value)) <= 1_000:
            return multiple
    except ValueError:
        pass
    raise ArgumentTypeError(f"found {value!r}, expected a number from 0.1 to 1000")


def _as_json(dialog: OverflowingDialog) -> dict[str, Any]:
    return {
        "limit": dialog.limit,
        "est_tokens": dialog.est_tokens,
        "units": [
            {
                "id": unit.id,
                "kind": unit.kind.value,
                "role": unit.role.value,
                "priority": unit.priority,
                "est_tokens": unit.est_tokens,
                "text": unit.text,
            }
            for unit in dialog.units
        ],
        "facts": [{"needle": fact.needle, "kind": fact.kind.value, "unit": fact.unit_id} for fact in dialog.facts],
    }
