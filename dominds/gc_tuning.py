"""Tuning of the cyclic garbage collector in long-lived processes."""

import gc


def settle() -> None:
    """Call once all is loaded. What was loaded stays, so no collection needs to look through it again: a full one takes
    70 ms of CPU with a product of this size, and views of thousands of turns would bring it about."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
