"""Gain and headroom of a rewrite."""

LEAST_GAIN = 0.1  # of the size before; a rewrite below it is refused
LEAST_FREE = 0.25  # of the limit, which a rewrite that the runtime starts is to leave free


def most_of(limit: int) -> int:
    """Return the tokens that a rewrite may fill where its aim is too small for what must be said."""
    return int(limit * (1 - LEAST_FREE))


def gain_of(est_before: int, est_after: int) -> float:
    return 1 - est_after / est_before if est_before else 0.0


def leaves_headroom(est_after: int, limit: int) -> bool:
    return est_after <= most_of(limit)
