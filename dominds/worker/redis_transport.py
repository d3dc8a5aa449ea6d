"""Celery's way to Redis, with one client for the commands of a channel. Kombu makes one for each command, which takes
it longer than the command. A lost Redis does not end the worker."""

from typing import Any

from kombu.transport import redis


class QoS(redis.QoS):
    """Gives messages in hand back, unless Redis was lost: kombu has no address any more by then, and its error ended
    the worker with all answers under way. The sweeper wakes their dialogs."""

    def restore_unacked(self, client: Any = None) -> None:
        if self.channel.connection.client is None:
            self._delivered.clear()
        else:
            restore: Any = super().restore_unacked  # kombu has no types
            restore(client)


class Channel(redis.Channel):
    """Makes another client when its connections are others, as after a loss."""

    QoS = QoS
    _one_client: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        make: Any = super()._create_client  # kombu has no types
        if asynchronous:
            return make(asynchronous=True)
        if self._one_client is None or self._one_client.connection_pool is not self.pool:
            self._one_client = make()
        return self._one_client


class Transport(redis.Transport):
    """The transport that the setting ``broker_transport`` names."""

    Channel = Channel
