"""A host of images, as answers name them: what it serves by path, and which requests came.
It refuses who asks too often, as hosts of images do."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class PictureHost:
    files: Mapping[str, bytes]
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # paths with headers
    url: str = ""
    most_requests: int = 1_000  # after so many it answers 429
    redirects_to: str = ""


@contextmanager
def picture_host(files: Mapping[str, bytes]) -> Iterator[PictureHost]:
    """What has no file is answered by 404."""
    host = PictureHost(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.asked.append((self.path, dict(self.headers)))
            content = host.files.get(self.path)
            if len(host.asked) > host.most_requests:
                self.send_response(429)
                self.send_header("Retry-After", "60")
            elif host.redirects_to:
                self.send_response(302)
                self.send_header("Location", host.redirects_to)
            else:
                self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"no such file")

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
