"""A Firefox that a test drives over WebDriver BiDi, which it speaks itself: no driver is installed for it."""

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect

from tests.harness.stack import eventually

ENTER = "\ue007"  # as WebDriver names the key
LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
ANSWER_SECONDS = 60
STANDS_STILL = """new Promise((done) => {
    let last = "";
    const look = () => {
        const box = JSON.stringify(%s?.getBoundingClientRect() ?? "");
        if (box.length > 2 && box === last) return done(box);
        last = box;
        setTimeout(look, 150);
    };
    look();
})"""


class Firefox:
    """One tab. What is looked for is told in JavaScript."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv(timeout=ANSWER_SECONDS))).get("id") != number:
            pass
        assert answer["type"] == "success", (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def log_in(self, base_url: str, session: str) -> None:
        cookie = {"name": "sessionid", "value": {"type": "string", "value": session}}
        self._ask("storage.setCookie", cookie=cookie | {"domain": urlsplit(base_url).hostname})

    def go(self, address: str) -> None:
        self._ask("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        target = {"context": self._tab}
        answer = self._ask("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert answer["type"] == "success", (expression, answer)
        return answer["result"].get("value")

    def expect(self, expression: str) -> None:
        eventually(lambda: self.evaluate(f"Boolean({expression})"), 30)

    def click(self, element: str) -> None:
        """Press the mouse on an element, once it is there and moves no more."""
        self.expect(element)
        self.evaluate(f"{element}.scrollIntoView({{ block: 'nearest' }})")
        box = json.loads(self.evaluate(STANDS_STILL % element))
        x, y = (round(box[start] + box[size] / 2) for start, size in (("x", "width"), ("y", "height")))
        move = {"type": "pointerMove", "x": x, "y": y}
        self._act("pointer", move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def type(self, keys: str) -> None:
        self._act("key", *({"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")))

    def _act(self, kind: str, *actions: dict[str, Any]) -> None:
        source = {"type": kind, "id": kind, "actions": list(actions)}
        self._ask("input.performActions", context=self._tab, actions=[source])


@contextmanager
def firefox(program: str, profile: Path) -> Iterator[Firefox]:
    """Start a Firefox without a window, and end it. ``profile`` is an empty folder."""
    command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    log_file = profile.parent / "firefox.log"
    with log_file.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            said = eventually(lambda: LISTENING.search(log_file.read_text()), 60)
            with connect(f"{said[1]}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
