"""A TCP proxy that can be told to misbehave, before any part of a stack."""

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass


@dataclass
class Toxics:
    """What the proxy does to every byte from now on, in both directions."""

    latency: float = 0.0  # seconds for each piece
    blackhole: bool = False  # connections stay open, nothing arrives
    refuse: bool = False  # new connections are reset
    slice_bytes: int = 0  # pieces of this size
    bytes_per_second: int = 0


class Proxy:
    """Listens on a port of its own and forwards to ``target``. Runs in a thread of this process."""

    def __init__(self, target: int, name: str) -> None:
        self.target = target
        self.name = name
        self.toxics = Toxics()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        threading.Thread(target=self._run, name=f"proxy-{name}", daemon=True).start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.toxics.refuse:
            _reset(writer)
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            _reset(writer)
            return
        ends = {writer, up_writer}
        self._writers |= ends
        try:
            done = asyncio.gather(self._pass(reader, up_writer), self._pass(up_reader, writer))
            await done
        finally:
            self._writers -= ends

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                await self._forward(piece, writer)
        except OSError:
            _reset(writer)
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    async def _forward(self, piece: bytes, writer: asyncio.StreamWriter) -> None:
        toxics = self.toxics
        while self.toxics.blackhole:
            await asyncio.sleep(0.05)
        if toxics.latency:
            await asyncio.sleep(toxics.latency)
        size = toxics.slice_bytes or len(piece)
        for start in range(0, len(piece), size):
            part = piece[start : start + size]
            writer.write(part)
            await writer.drain()
            if toxics.bytes_per_second:
                await asyncio.sleep(len(part) / toxics.bytes_per_second)

    def heal(self) -> None:
        self.toxics = Toxics()

    def reset_all(self) -> None:
        """Break every connection with RST."""
        for writer in tuple(self._writers):
            self._loop.call_soon_threadsafe(_reset, writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, AttributeError):
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
