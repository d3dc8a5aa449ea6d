"""The outcome of a change after a database error: undone, or unknown if the reply to a commit was lost.

Both database engines inherit from this. Code that serves a request compares ``changes_so_far`` before and after.
"""

from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

LOCKED_OUT = ("55P03", "40P01")  # PostgreSQL's codes for a lock that was not free in time, and for a deadlock
SHUTDOWNS = "57P"  # PostgreSQL's codes for a server that shuts down: one may replace the reply to a commit


class OutcomeUnknown(OperationalError):
    """Raised if no reply came to a commit, or to a statement outside a transaction: the change may be stored."""


class CountsChanges:
    """A ``DatabaseWrapper`` that counts its commits, and distinguishes a lost reply from a refusal."""

    changes = 0

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # the other base has it
        self.changes += 1

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _TellsLostReplies(self)


class _TellsLostReplies(DatabaseErrorWrapper):
    """Translates a driver's errors as Django does, and raises ``OutcomeUnknown`` for a lost reply.

    Inside a transaction the outcome is known: whatever happened to a statement, it is undone.
    """

    wrapper: Any

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            super().__exit__(kind, error, traceback)
        except (OperationalError, InterfaceError) as translated:
            connected = self.wrapper.connection is not None
            if connected and not self.wrapper.in_atomic_block and not _is_refusal(error):
                raise OutcomeUnknown(*translated.args) from error
            raise


def _is_refusal(error: Any) -> bool:
    """Check whether the database refused the change with an error code. If it fell silent, it may have committed."""
    code = getattr(error, "sqlstate", None)
    return bool(code and not code.startswith(SHUTDOWNS)) or getattr(error, "sqlite_errorcode", None) is not None


def is_locked_out(error: BaseException) -> bool:
    """Check whether a change failed because of a lock that another transaction holds."""
    return isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", "") in LOCKED_OUT


def changes_so_far() -> int:
    """Count the changes that this thread has committed on its present connection."""
    return int(getattr(connection, "changes", 0))
