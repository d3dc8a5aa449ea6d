"""An export that a person or a program uploads."""

from contextlib import closing
from typing import IO

from django.contrib.auth.models import User

from dialogs.extras.imports.reading_process import conversations_apart
from dialogs.extras.imports.store import Imported, import_conversations
from dialogs.models import Agent

MOST_BYTES = 64_000_000  # unpacked JSON; the command imports larger exports
MOST_AT_ONCE = 500  # new dialogs of one upload; uploading the same file again brings the next ones


def import_upload(file: IO[bytes], owner: User, agent: Agent, *, dry_run: bool) -> list[Imported]:
    """Import up to ``MOST_AT_ONCE`` conversations. Raises ``UnknownExport`` or ``Refusal``."""
    results: list[Imported] = []
    conversations = conversations_apart(file, "The file", MOST_BYTES)
    with closing(conversations):  # closing the generator ends its process
        for imported in import_conversations(conversations, owner, agent.pk, dry_run=dry_run):
            results.append(imported)
            if sum(not result.reason for result in results) == MOST_AT_ONCE:
                break
    return results
