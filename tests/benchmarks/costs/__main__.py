"""``python -m tests.benchmarks.costs``."""

from tests.benchmarks.costs.tables import main

main()
