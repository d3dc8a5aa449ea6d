"""Dominds."""

import gc

# What a process loads stays: to look for garbage in it again and again took a fifth of its start.
gc.set_threshold(50_000, 20, 50)
