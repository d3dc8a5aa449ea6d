"""``python -m dominds.worker`` does what ``celery -q -A dominds.celery worker --pool threads --without-gossip
--without-mingle`` does.

Celery's command line would first load its other commands and a library for prompts, which takes a third of the CPU of a
worker's start.
"""

import sys
from argparse import ArgumentParser

from celery.app.utils import find_app
from celery.utils.nodenames import default_nodename, host_format


def main() -> None:
    parser = ArgumentParser(prog="python -m dominds.worker", description="Run one worker.")
    parser.add_argument(
        "--concurrency", type=int, required=True, help="answers that it may wait for at once; see seats"
    )
    parser.add_argument("-n", "--hostname", help="its name among Celery's workers; %%h stands for the host")
    given = parser.parse_args()
    worker = find_app("dominds.celery").Worker(
        hostname=host_format(default_nodename(given.hostname)),
        pool_cls="threads",
        concurrency=given.concurrency,
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
