"""So many sockets at once are on their way in; who waits too long is told so, before a browser gives up by itself."""

import asyncio
from typing import Any

import pytest

from dominds.web.admission import AT_ONCE, PATIENCE_SECONDS, TRY_LATER, admit

pytestmark = pytest.mark.anyio


class House:
    """An application that accepts each socket when it is told to, and then keeps it."""

    def __init__(self) -> None:
        self.asked = self.accepted = 0
        self.open = asyncio.Event()
        self.over = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self.served = admit(self._serve)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await self.open.wait()
        if scope["broken"]:
            raise ValueError("the database is away")
        await send({"type": "websocket.accept"})
        self.accepted += 1
        await self.over.wait()

    def come(self, guests: int, *, broken: bool = False) -> list["asyncio.Task[None]"]:
        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)

        served: Any = self.served
        return [asyncio.create_task(served({"broken": broken}, None, send)) for _ in range(guests)]


@pytest.mark.parametrize("broken", [False, True])
async def test_places_are_free_again_once_a_socket_is_in_or_has_failed(broken: bool) -> None:
    house = House()
    first, second = house.come(AT_ONCE, broken=broken), house.come(AT_ONCE)
    await asyncio.sleep(0.1)
    assert house.asked == AT_ONCE
    house.open.set()
    await asyncio.sleep(0.1)
    assert house.asked == 2 * AT_ONCE
    assert house.accepted == (1 if broken else 2) * AT_ONCE, "who is in takes no place among those who wait"
    house.over.set()
    result = await asyncio.gather(*first, *second, return_exceptions=True)
    assert sum(isinstance(answer, ValueError) for answer in result) == (AT_ONCE if broken else 0)


async def test_who_waits_too_long_is_told_to_come_later() -> None:
    house = House()
    house.come(AT_ONCE)
    await asyncio.wait_for(asyncio.gather(*house.come(50)), PATIENCE_SECONDS + 2)
    assert house.sent == [{"type": "websocket.close", "code": TRY_LATER}] * 50
    assert house.asked == AT_ONCE, "nobody looks for a session that is sent away"
    house.open.set()
    await asyncio.sleep(0.1)
    house.come(AT_ONCE)
    await asyncio.sleep(0.1)
    assert house.accepted == 2 * AT_ONCE
    house.over.set()
