"""Tuning of the cyclic garbage collector in long-lived processes."""

import gc


def settle() -> None:
    """Exempt all loaded objects from garbage collection. Call it once everything is loaded.

    A full collection takes 70 ms of CPU in a product of this size, and views of thousands of turns would trigger it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
