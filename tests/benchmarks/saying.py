"""Sends messages as a client of the API would, spread over some seconds, in a process of its own.

Reads a line ``dialog key text`` for each from standard input. At the end it prints for each the dialog, the microsecond
at which it was sent, the status of the answer, and how many microseconds that took.
"""

import argparse
import http.client
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import orjson

SENDERS = 8
_local = threading.local()


def say(port: int, at: float, dialog: str, key: str, text: str) -> str:
    time.sleep(max(0.0, at - time.monotonic()))
    if not hasattr(_local, "connection"):
        _local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    sent_us = time.monotonic_ns() // 1000
    _local.connection.request("POST", f"/api/dialogs/{dialog}/messages", orjson.dumps({"text": text}), headers)
    answer = _local.connection.getresponse()
    answer.read()
    return f"{dialog} {sent_us} {answer.status} {time.monotonic_ns() // 1000 - sent_us}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    asked = parser.parse_args()
    lines = [line.split(" ", 2) for line in sys.stdin.read().splitlines()]
    started = time.monotonic()
    with ThreadPoolExecutor(SENDERS) as senders:
        texts = [
            senders.submit(say, asked.port, started + asked.seconds * index / len(lines), dialog, key, text)
            for index, (dialog, key, text) in enumerate(lines)
        ]
    print("\n".join(line.result() for line in texts))


if __name__ == "__main__":
    main()
