"""An LM Studio as its SDK sees it: greeting and model list over HTTP, the calls of the ``llm``
namespace over a socket."""

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
    """``tokenize`` is its model's tokenizer; ``counted`` are the texts that it was asked about, ``heard`` all that a
    client sent. One that ``refuses`` answers a count with ``refusal``, or hangs up for None."""

    model: str
    loaded_context_length: int
    tokenize: Callable[[str], int]
    counted: list[str] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    refuses: bool = False
    refusal: dict[str, Any] | None = None
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
        self.received.append(json.loads(connection.recv()))  # who the client says it is
        connection.send(json.dumps({"success": True}))
        for message in connection:
            call = json.loads(message)
            self.received.append(call)
            if call.get("type") != "rpcCall":
                continue
            connection.send(json.dumps({"type": "communicationWarning", "warning": "A server of a newer version"}))
            if not (self.refuses and call["endpoint"] == "countTokens"):
                answer = {"type": "rpcResult", "result": self._result(call["endpoint"], call.get("parameter"))}
            elif self.refusal is not None:
                answer = {"type": "rpcError" if "error" in self.refusal else "rpcResult", **self.refusal}
            else:
                return
            connection.send(json.dumps({**answer, "callId": call["callId"]}))

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
