"""The threads on which sockets and event streams ask the database."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, close_old_connections, connection, connections

DATABASE_SECONDS = 5
CANCEL_SECONDS = 2

_database_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sockets")
Result = TypeVar("Result")


class Work(Generic[Result]):
    """A function that asks the database in a thread, and that another thread may cancel."""

    def __init__(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._database: Any = None  # the thread's connection, while it runs
        self._lock = threading.Lock()  # once back in the pool, the connection may run another's statement

    def run(self) -> Result:
        close_old_connections()
        self._database = connections[DEFAULT_DB_ALIAS]
        try:
            return self._function(*self._arguments)
        finally:
            with self._lock:
                self._database = None
            connection.close()

    def cancel(self) -> None:
        """Cancel the statement that is running, if any."""
        with self._lock:
            driver: Any = getattr(self._database, "connection", None)
            if hasattr(driver, "cancel_safe"):
                driver.cancel_safe(timeout=CANCEL_SECONDS)
            elif hasattr(driver, "interrupt"):
                driver.interrupt()


async def in_db_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Run database work in the sockets' own threads, so that a slow query does not freeze every page of the process."""
    loop = asyncio.get_running_loop()
    result = loop.run_in_executor(_database_threads, Work(function, arguments).run)
    return await asyncio.wait_for(result, DATABASE_SECONDS)
