"""An LM Studio as its SDK sees it: greeting and model list over HTTP, the calls of the ``llm`` namespace over a socket."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve


@dataclass
class StudioServer:
    """``tokenize`` is its model's tokenizer; ``counted`` are the texts that it was asked about."""

    model: str
    loaded_context_length: int
    tokenize: Callable[[str], int]
    counted: list[str] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def running(self) -> Iterator["StudioServer"]:
        with serve(self._converse, "127.0.0.1", 0, process_request=self._answer) as server:
            self.url = f"http://127.0.0.1:{_port(server)}/v1"
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield self
            server.shutdown()
        thread.join()

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/lmstudio-greeting":
            return _json({"lmstudio": True})
        if request.path == "/api/v0/models":
            length = self.loaded_context_length
            entry = {"id": self.model, "type": "llm", "state": "loaded", "loaded_context_length": length}
            return _json({"object": "list", "data": [entry]})
        return None

    def _converse(self, connection: ServerConnection) -> None:
        connection.recv()  # who the client says it is
        connection.send(json.dumps({"success": True}))
        for message in connection:
            call = json.loads(message)
            if call.get("type") == "rpcCall":
                result = self._result(call["endpoint"], call.get("parameter"))
                connection.send(json.dumps({"type": "rpcResult", "callId": call["callId"], "result": result}))

    def _result(self, endpoint: str, parameter: Any) -> Any:
        if endpoint == "listLoaded":
            return [{"identifier": self.model, "path": "a/file.gguf"}]
        if endpoint == "countTokens":
            self.counted.append(parameter["inputString"])
            return {"tokenCount": self.tokenize(parameter["inputString"])}
        raise AssertionError(f"The SDK called {endpoint}, which this server does not know.")


def _port(server: Server) -> int:
    return int(server.socket.getsockname()[1])


def _json(value: Any) -> Response:
    body = json.dumps(value).encode()
    headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
    return Response(200, "OK", headers, body)
