"""``/api``: JSON for programs and scripts, with one router for each subject. Each call parses, calls one service, and
answers."""
