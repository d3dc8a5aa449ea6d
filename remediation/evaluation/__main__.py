"""``python -m remediation.evaluation PATH...``: what each policy keeps of recorded dialogs."""

import argparse
import sys

from remediation.evaluation.command import DESCRIPTION, add_options, run
from remediation.evaluation.formats import UnknownFormat


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m remediation.evaluation", description=DESCRIPTION)
    add_options(parser)
    try:
        sys.stdout.write(run(vars(parser.parse_args())))
    except (UnknownFormat, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
