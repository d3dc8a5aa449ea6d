"""The task document of a team: goal, constraints, plan, decisions and open points, which all of it read and edit.

Each edit names the version that its writer has read. Only one edit of a version counts; whoever comes second is told
what changed.
"""

from collections.abc import Mapping
from difflib import unified_diff
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from dialogs.errors import Conflict, Invalid, TooLarge
from dialogs.extras.teams.models import SideDialog, TaskRevision
from dialogs.models import Dialog
from dialogs.store.text import unstorable_reason

SECTIONS: Mapping[str, str] = {
    "goal": "Goal",
    "constraints": "Constraints",
    "plan": "Plan and progress",
    "decisions": "Decisions",
    "open_points": "Open points",
}
LONGEST = 8_000  # characters of a section: all five together take some 10,000 tokens at most
NOTHING = dict.fromkeys(SECTIONS, "")


def root_of(dialog: Dialog) -> UUID:
    """Return the root of the team that a dialog belongs to: the dialog itself, unless it is a side dialog."""
    if dialog.origin != Dialog.Origin.AGENT:
        return dialog.pk
    return SideDialog.objects.values_list("root_id", flat=True).get(pk=dialog.pk)


def newest(root_id: UUID) -> TaskRevision:
    """Return the document as it is now: version 0 while nobody has written."""
    written = TaskRevision.objects.filter(root=root_id).first()
    return written or TaskRevision(root_id=root_id, version=0, sections=dict(NOTHING))


def edit(dialog: Dialog, section: str, text: str, version: int, by: User | None = None) -> TaskRevision:
    """Write one section anew. Raises ``Conflict`` with what changed if ``version`` is not the newest."""
    if section not in SECTIONS:
        raise Invalid(f"There is no section {section!r}. The sections are: {', '.join(SECTIONS)}.")
    if problem := unstorable_reason(text):
        raise Invalid(f"The text {problem}. Remove it.")
    if len(text) > LONGEST:
        raise TooLarge(f"The section would have {len(text):,} characters; at most {LONGEST:,} are kept. Shorten it.")
    return _write(dialog, version, {section: text.strip()}, section, by)


def restore(dialog: Dialog, old: int, version: int, by: User) -> TaskRevision:
    """Store an older version again as the newest one. Raises ``Conflict`` if ``version`` is not the newest."""
    revision = TaskRevision.objects.filter(root=root_of(dialog), version=old).first()
    if revision is None:
        raise Invalid(f"There is no version {old} of the task document.")
    return _write(dialog, version, revision.sections, "", by)


def _write(dialog: Dialog, version: int, texts: Mapping[str, str], section: str, by: User | None) -> TaskRevision:
    root_id = root_of(dialog)
    before = newest(root_id)
    if before.version == version:
        try:
            with transaction.atomic():
                return TaskRevision.objects.create(
                    root_id=root_id,
                    version=version + 1,
                    sections=before.sections | texts,
                    section=section,
                    by_dialog_id=dialog.pk,
                    author=by,
                )
        except IntegrityError:  # somebody else's edit of this version was committed meanwhile
            before = newest(root_id)
    raise Conflict("stale_version", _explain(root_id, version, before))


def _explain(root_id: UUID, version: int, now: TaskRevision) -> str:
    read = TaskRevision.objects.filter(root=root_id, version=version).first()
    known = f"The task document is at version {now.version}, and you edit version {version}."
    if read is None and version:
        return f"{known} Read it, then edit again."
    return f"{known} What changed since:\n{difference(read.sections if read else NOTHING, now.sections)}"


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the lines that were added and removed, by section."""
    lines: list[str] = []
    for name, title in SECTIONS.items():
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        changed = [line for line in unified_diff(old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")]
        lines += [f"## {title}", *(line for line in changed if not line.startswith("@@"))] if changed else []
    return "\n".join(lines)


def as_text(revision: TaskRevision) -> str:
    """Return the document as agents read it."""
    parts = [f"Task document, version {revision.version}."]
    for name, title in SECTIONS.items():
        parts.append(f"## {title} ({name})\n{revision.sections.get(name, '') or '(empty)'}")
    return "\n\n".join(parts)
