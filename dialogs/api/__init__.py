"""``/api``: JSON for programs and scripts. Each call parses, calls one service, answers; one router per subject."""
