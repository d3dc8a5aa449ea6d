"""Celery's way to Redis, with one client for the commands of a channel. Kombu makes one for each command, which takes it longer
than the command."""

from typing import Any

from kombu.transport import redis


class Channel(redis.Channel):
    """Makes another client when its connections are others, as after a loss."""

    _one_client: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        make: Any = super()._create_client  # kombu has no types
        if asynchronous:
            return make(asynchronous=True)
        if self._one_client is None or self._one_client.connection_pool is not self.pool:
            self._one_client = make()
        return self._one_client


class Transport(redis.Transport):
    """The setting ``broker_transport`` names it."""

    Channel = Channel
