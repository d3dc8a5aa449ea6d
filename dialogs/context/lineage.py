"""The lineage of a branch: the dialogs whose beginning it shares."""

from dialogs.models import Dialog

FORK = " (fork)"  # ends the title of one
MOST_ANCESTORS = 200  # bounds a walk; each is a statement


def lineage(dialog: Dialog) -> list[Dialog]:
    """Return the dialog, then what it branched off, and so on.

    Each stands for the positions from its ``own_from`` on, up to the ``own_from`` of the one before it.
    """
    line = [dialog]
    while len(line) < MOST_ANCESTORS and (origin := line[-1].forked_from) is not None:
        line.append(origin)
    return line


def owner_of(dialog: Dialog, position: int) -> Dialog:
    """Return the dialog that owns the turn before this position: branches at one place have one origin."""
    return next((kin for kin in lineage(dialog) if kin.own_from < position), lineage(dialog)[-1])
