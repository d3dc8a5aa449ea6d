"""Dominds."""

import gc

# What a process loads at its start stays: garbage collections in between took a fifth of that time.
gc.set_threshold(50_000, 20, 50)
