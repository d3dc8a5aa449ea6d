"""``python -m tests.benchmarks.growth``."""

from tests.benchmarks.growth.tables import main

main()
