"""``dominds evaluate PATH...``: measure what each policy keeps of recorded dialogs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from remediation.budget import RECALL_SHARE
from remediation.evaluation.evaluate import DEFAULT_BUDGETS, DEFAULT_MODEL, evaluate
from remediation.evaluation.formats import UnknownFormat
from remediation.evaluation.policies import POLICIES
from remediation.evaluation.report import to_markdown


class Command(BaseCommand):
    help = "Measures what each policy keeps of recorded dialogs, without a model."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "paths", nargs="+", type=Path, metavar="PATH", help="a file of dialogs, or a directory of files"
        )
        parser.add_argument(
            "--budget", type=int, action="append", help="tokens of a request; may be given several times"
        )
        parser.add_argument(
            "--policy", choices=POLICIES, action="append", help="only this one; may be given several times"
        )
        parser.add_argument(
            "--recall",
            type=float,
            action="append",
            help=f"share of the budget, 0 for none; by default 0 and {RECALL_SHARE:g}",
        )
        parser.add_argument(
            "--words", action="store_true", help="recall by words alone, as where MiniLM is not installed"
        )
        parser.add_argument(
            "--window",
            action="store_true",
            help="take each budget as the window of a model, in which the answer has to fit as well",
        )
        parser.add_argument("--model", default=DEFAULT_MODEL, help="by whose vocabulary tokens are counted")
        parser.add_argument("--markdown", type=Path, help="write the tables there as well")
        parser.add_argument("--json", type=Path, help="write all figures there")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = evaluate(
                options["paths"],
                options["budget"] or DEFAULT_BUDGETS,
                [POLICIES[name] for name in options["policy"] or POLICIES],
                options["recall"] or (0.0, RECALL_SHARE),
                options["model"],
                by_meaning=not options["words"],
                in_window=options["window"],
            )
            text = to_markdown(report)
            if options["markdown"]:
                options["markdown"].write_text(text, encoding="utf-8")
            if options["json"]:
                options["json"].write_text(json.dumps(asdict(report), indent=1), encoding="utf-8")
        except (UnknownFormat, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(text, ending="")
