"""The versions of a turn, which are the branches that part at its place (``docs/spec.md#branches``)."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from dialogs.context.lineage import lineage
from dialogs.models import Dialog
from dialogs.permissions import may_see


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a turn, one in each of ``dialogs``, oldest first. ``number``, from 1, is the version shown."""

    dialogs: tuple[UUID, ...]
    number: int

    @property
    def total(self) -> int:
        return len(self.dialogs)

    @property
    def previous(self) -> UUID | None:
        return self.dialogs[self.number - 2] if self.number > 1 else None

    @property
    def following(self) -> UUID | None:
        return self.dialogs[self.number] if self.number < self.total else None


def versions_of(dialog: Dialog, viewer: User) -> Mapping[int, Versions]:
    """Map positions to versions, where this person may see several."""
    if dialog.forked_from_id is None and not dialog.fork_count:
        return {}
    line = lineage(dialog)
    branches: dict[UUID, dict[int, list[UUID]]] = defaultdict(lambda: defaultdict(list))  # by origin and position
    forks = Dialog.objects.for_user(viewer).filter(forked_from__in=line).order_by("created_at", "pk")
    for fork_id, origin_id, position in forks.values_list("pk", "forked_from_id", "own_from"):
        branches[origin_id][position].append(fork_id)
    result: dict[int, Versions] = {}
    for origin, younger in zip(line, [None, *line], strict=False):
        for position, others in branches[origin.pk].items():
            if younger is None or position < younger.own_from:  # the dialog shown has the same turn as ``origin``
                result[position] = Versions((dialog.pk, *others), 1)
            elif position == younger.own_from and younger.pk in others:
                first = [origin.pk] if _may_see(viewer, origin) else []
                ids = (*first, *others)
                result[position] = Versions(ids, ids.index(younger.pk) + 1)
    return {position: versions for position, versions in result.items() if versions.total > 1}


def _may_see(viewer: User, dialog: Dialog) -> bool:
    return dialog.removed_at is None and may_see(viewer, dialog)
