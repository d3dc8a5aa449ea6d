"""The lineage of a branch: the dialogs whose beginning it shares."""

from dialogs.models import Dialog

FORK = " (fork)"  # the end of a branch's title
MOST_ANCESTORS = 200  # bounds the walk, which takes one query for each


def lineage(dialog: Dialog) -> list[Dialog]:
    """Return the dialog, then the dialog from which it branched off, and so on.

    Each owns the turns from its ``own_from`` on, up to the ``own_from`` of the dialog before it in this list.
    """
    line = [dialog]
    while len(line) < MOST_ANCESTORS and (origin := line[-1].forked_from) is not None:
        line.append(origin)
    return line


def owner_of(dialog: Dialog, position: int) -> Dialog:
    """Return the dialog that owns the turn before ``position``, so that all branches at one place have one origin."""
    return next((kin for kin in lineage(dialog) if kin.own_from < position), lineage(dialog)[-1])
