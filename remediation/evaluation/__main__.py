"""``python -m remediation.evaluation PATH...``: what each policy keeps of recorded dialogs."""

import argparse
import json
import sys
from pathlib import Path

from remediation.evaluation.evaluate import DEFAULT_BUDGETS, DEFAULT_MODEL, evaluate
from remediation.evaluation.formats import UnknownFormat
from remediation.evaluation.policies import POLICIES
from remediation.evaluation.report import to_json, to_markdown
from remediation.recall.recall import SHARE


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m remediation.evaluation", description=__doc__)
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a file of dialogs, or a directory of files"
    )
    parser.add_argument("--budget", type=int, action="append", help="tokens of a request; may be given several times")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="only this one; may be given several times")
    parser.add_argument(
        "--recall", type=float, action="append", help=f"share of the budget, 0 for none; by default 0 and {SHARE:g}"
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, help="by whose vocabulary tokens are counted")
    parser.add_argument("--markdown", type=Path, help="write the tables there as well")
    parser.add_argument("--json", type=Path, help="write all figures there")
    asked = parser.parse_args()
    try:
        report = evaluate(
            asked.paths,
            asked.budget or DEFAULT_BUDGETS,
            [POLICIES[name] for name in asked.policy or POLICIES],
            asked.recall or (0.0, SHARE),
            asked.model,
        )
    except (UnknownFormat, OSError) as error:
        sys.exit(str(error))
    text = to_markdown(report)
    if asked.markdown:
        asked.markdown.write_text(text, encoding="utf-8")
    if asked.json:
        asked.json.write_text(json.dumps(to_json(report), indent=1), encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
