from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from dialogs.queries import coherence
from remediation.models import RemediationRun


class Command(BaseCommand):
    help = (
        "Write the reward of every rewrite as JSON lines: stateBefore, action, reward, stateAfter. No text of a dialog."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        records = RemediationRun.attempts.filter(reward_record__isnull=False).order_by("id")
        # A rejected rewrite changed nothing, so its coherence is not measured.
        for run_id in records.filter(coherence=None, rejected="").values_list("pk", flat=True):
            coherence.measure(run_id)
        with file.open("wb") as lines:
            for record in records.values_list("reward_record", flat=True).iterator(chunk_size=500):
                lines.write(orjson.dumps(record) + b"\n")
        self.stdout.write(f"{records.count()} rewrites written to {file}")
