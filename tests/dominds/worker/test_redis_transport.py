"""The channel on which Celery's messages come and go, at a real Redis."""

from collections.abc import Iterator

import pytest
from kombu import Connection
from redis import Redis

from dominds.celery import app
from dominds.worker.redis_transport import Channel


@pytest.fixture
def channel(redis_client: Redis) -> Iterator[Channel]:
    connection: Connection = app.connection_for_write()
    with connection:
        yield connection.default_channel


def test_all_commands_of_a_channel_go_through_one_client(channel: Channel) -> None:
    with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
        assert first is second
        assert first.ping()


def test_after_a_loss_another_client_uses_the_new_connections(channel: Channel) -> None:
    with channel.conn_or_acquire() as lost:
        channel._disconnect_pools()
    with channel.conn_or_acquire() as renewed:
        assert renewed is not lost
        assert renewed.connection_pool is channel.pool
        assert renewed.ping()
