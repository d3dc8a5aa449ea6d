"""The threads on which sockets and event streams ask the database."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import close_old_connections, connection

DATABASE_SECONDS = 5

_database_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sockets")
Answer = TypeVar("Answer")


async def in_db_thread(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Run database work on the sockets' own threads: one slow query must not freeze every page of the process."""

    def work() -> Answer:
        close_old_connections()
        try:
            return function(*arguments)
        finally:
            connection.close()

    loop = asyncio.get_running_loop()
    return await asyncio.wait_for(loop.run_in_executor(_database_threads, work), DATABASE_SECONDS)
