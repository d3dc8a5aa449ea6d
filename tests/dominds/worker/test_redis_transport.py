"""The channel on which Celery's messages come and go, at a real Redis."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
from kombu.common import ignore_errors
from kombu.connection import Connection
from kombu.entity import Queue
from redis import Redis

from dominds.celery import app
from dominds.worker.redis_transport import Channel, Transport
from tests.harness.redis_server import RedisServer


@pytest.fixture
def channel(redis_client: Redis) -> Iterator[Channel]:
    connection: Connection = app.connection_for_write()
    with connection:
        channel = connection.default_channel
        assert isinstance(channel, Channel)
        yield channel


def test_all_commands_of_a_channel_go_through_one_client(channel: Channel) -> None:
    with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
        assert first is second
        assert first.ping()


def test_after_a_loss_another_client_uses_the_new_connections(channel: Channel) -> None:
    with channel.conn_or_acquire() as lost:
        cast(Any, channel)._disconnect_pools()  # as kombu does
    with channel.conn_or_acquire() as renewed:
        assert renewed is not lost
        assert renewed.connection_pool is channel.pool
        assert renewed.ping()


def test_messages_in_hand_at_a_loss_of_redis_end_no_worker() -> None:
    """Celery then closes what it has given up already. The error ended the worker with all answers under way."""
    server = RedisServer().start()
    connection = Connection(server.url, transport=Transport)
    queue = Queue("wakes")
    connection.Producer().publish("wake", routing_key=queue.name, declare=[queue])
    in_hand: list[object] = []
    connection.Consumer([queue], callbacks=[lambda body, message: in_hand.append(message)]).consume()
    connection.Consumer([Queue("others")], channel=connection.channel()).consume()
    connection.drain_events(timeout=5)
    with suppress(TimeoutError):
        connection.drain_events(timeout=0.2)  # waits for the next one
    assert len(in_hand) == 1
    server.kill()
    with suppress(Exception):
        connection.collect(socket_timeout=1)
    ignore_errors(connection, connection.close)
    server.remove()
