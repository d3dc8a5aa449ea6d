"""``python -m tests.benchmarks.frameworks``."""

from tests.benchmarks.frameworks.course import main

main()
