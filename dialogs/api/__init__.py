"""``/api``: JSON for programs and scripts, one router per subject. Each call parses, calls one service, answers."""
