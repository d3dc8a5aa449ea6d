"""The receiving end of a webhook."""

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.dominds.llm.model_server import Connection, ModelServer, plain

WAIT_SECONDS = 10


class Hook(ModelServer):
    def __init__(self) -> None:
        super().__init__()
        self._bodies: queue.Queue[Any] = queue.Queue()
        self.headers: dict[str, str] = {}  # of the last call
        self.fails: list[int] = []  # statuses of the next answers, before it takes what comes

    def talk(self, connection: Connection) -> None:
        if (asked := connection.read_request()) is not None:
            self.headers = asked.headers
            if self.fails:
                plain(self.fails.pop(0), "")(connection)
                return
            self._bodies.put(asked.body)
            plain(204, "")(connection)

    def wait(self) -> Any:
        return self._bodies.get(timeout=WAIT_SECONDS)


@contextmanager
def listening() -> Iterator[Hook]:
    hook = Hook()
    server = hook.serve()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
