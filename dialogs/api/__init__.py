"""``/api``: JSON for programs and scripts, with one router per subject. Each call parses, calls one service,
answers.
"""
