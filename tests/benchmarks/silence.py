"""What others feel while calls wait for servers outside that say nothing: ``python -m tests.benchmarks.silence``.

Twenty embeddings wait at a provider that is silent, 24 clicks on images at a host that drips its head, 25 sign-ins at
an OpenID provider that hangs: each kind alone, then all at once. Meanwhile one person reads pages, one after another.
"""

import argparse
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from statistics import quantiles
from typing import Any

import httpx2
import yaml

from tests.benchmarks.rig import Rig, load, report, rig, table

EMBEDDINGS, IMAGES, SIGN_INS = 20, 24, 25
SECONDS = 8.0  # for which pages are read in each stage; every call outside takes longer
PATIENCE_SECONDS = 30  # with a call outside; an embedding may wait longer than that at its provider


@contextmanager
def mute_host() -> Iterator[int]:
    """A host that accepts every connection: a path with ``drip`` gets a head of one byte in half a second, without end;
    any other nothing."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    held.append(connection)
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with suppress(OSError):
                if b"drip" not in connection.recv(4096):
                    return
                connection.sendall(b"HTTP/1.1 200 OK\\r\\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.5)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
    for connection in held:
        connection.close()


def read_for(seconds: float, client: httpx2.Client, pages: list[str]) -> list[float]:
    """Read pages one after another, and return the milliseconds of each. Raises for any answer but a page."""
    taken, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        for page in pages:
            began = time.monotonic()
            client.get(page).raise_for_status()
            taken.append((time.monotonic() - began) * 1000)
    return taken


def row(name: str, taken: list[float]) -> list[str]:
    cut = quantiles(taken, n=100)
    return [name, str(len(taken)), f"{cut[49]:.0f}", f"{cut[94]:.0f}", f"{cut[98]:.0f}", f"{max(taken):.0f}"]


def status_of(call: "Future[httpx2.Response]") -> str:
    try:
        return str(call.result().status_code)
    except httpx2.ReadTimeout:
        return "still waiting"


def measure(running: Rig, port: int) -> list[list[str]]:
    from dialogs.accounts.api_keys import create_key
    from dialogs.actions.messages import create_dialog
    from dialogs.models import Agent, Turn
    from tests.harness.browser import session_key

    reader, caller = running.people(2)
    reader.is_superuser = True  # without one the server sends everybody to its set-up
    reader.save()
    Agent.objects.create(id="mute", name="Mute", provider="mute", model="m")
    dialogs = [create_dialog(person, running.agent("quick").pk) for person in (reader, caller)]
    image = f"http://127.0.0.1:{port}/drip.png"
    for dialog in dialogs:
        for seq, role, text in ((1, Turn.Role.USER, "A picture?"), (2, Turn.Role.ASSISTANT, f"![it]({image})")):
            Turn.objects.create(
                dialog=dialog, seq=seq, position=seq, role=role, text=text, status=Turn.Status.COMPLETE, round_number=1
            )

    def client(**more: Any) -> httpx2.Client:
        return httpx2.Client(base_url=running.stack.base_url, trust_env=False, timeout=PATIENCE_SECONDS, **more)

    key = {"Authorization": f"Bearer {create_key(caller, name='bench')}"}
    clicks = client(cookies={"sessionid": session_key(caller)})
    embeddings, strangers = client(headers=key), client()
    calls: dict[str, tuple[int, Callable[[], httpx2.Response]]] = {
        "embeddings": (EMBEDDINGS, lambda: embeddings.post("/v1/embeddings", json={"model": "mute", "input": "x"})),
        "images": (
            IMAGES,
            lambda: clicks.get(f"/d/{dialogs[1].pk}/turn/2/remote-image/", params={"address": image}),
        ),
        "sign-ins": (SIGN_INS, lambda: strangers.get("/login/provider/")),
    }
    pages = ["/dialogs/", f"/d/{dialogs[0].pk}/", "/q4h/", "/settings/"]
    readers = client(cookies={"sessionid": session_key(reader)})
    read_for(SECONDS / 2, readers, pages)
    rows = [row("nothing", read_for(SECONDS, readers, pages))]
    for names in (("images",), ("sign-ins",), ("embeddings",), tuple(calls)):
        with ThreadPoolExecutor(EMBEDDINGS + IMAGES + SIGN_INS) as threads:
            waiting = [threads.submit(calls[name][1]) for name in names for _ in range(calls[name][0])]
            time.sleep(1)
            held = sum(not call.done() for call in waiting)
            taken = read_for(SECONDS, readers, pages)
            late = sum(not call.done() for call in waiting)
            said = {status_of(call) for call in waiting}
        rows.append(row(f"{held} of {' and '.join(names)}, {late} at the end, {', '.join(sorted(said))}", taken))
    return rows


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with mute_host() as port:
        issuer = {"ISSUER": f"http://127.0.0.1:{port}/id", "CLIENT_ID": "x", "CLIENT_SECRET": "x", "NAME": "Mute"}
        settings: dict[str, Any] = {f"DOMINDS_OIDC_{name}": value for name, value in issuer.items()}
        settings |= {"DOMINDS_PRIVATE_IMAGES": "on", "DOMINDS_REMOTE_IMAGES_PER_MINUTE": "1000"}
        settings |= {"DOMINDS_REMOTE_IMAGE_BYTES": "1000000000"}
        mute: dict[str, Any] = {
            "name": "Mute",
            "apiType": "openai-compatible",
            "baseUrl": f"http://127.0.0.1:{port}/v1",
        }
        mute |= {"models": {"m": {"name": "M", "context_length": 8_000}}}
        with rig(workers=1, **settings) as running, ThreadPoolExecutor(1) as rows:
            listed = running.stack.minds_dir / "llm.yaml"
            known = yaml.safe_load(listed.read_text())
            known["providers"]["mute"] = mute
            listed.write_text(yaml.safe_dump(known))
            running.stack.sync_agents()
            measured = rows.submit(measure, running, port).result()
            head = ("waiting", "pages", "p50", "p95", "p99", "slowest, ms")
            report(f"## Others' pages beside calls that wait ({load()})\n\n{table(head, measured)}")


if __name__ == "__main__":
    main()
