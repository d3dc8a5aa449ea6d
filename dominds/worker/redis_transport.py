"""Celery's transport over Redis, with two changes.

A channel has one client for all commands: kombu would make a client for each, which takes longer than the command. And
the loss of Redis does not end the worker.
"""

from typing import Any

from kombu.transport import redis


class QoS(redis.QoS):
    """A queue's unacknowledged messages, which are returned to the queue unless Redis was lost.

    Then kombu has no connection to return them by, and its error used to end the worker with all running answers. They
    can be dropped: the sweeper wakes their dialogs.
    """

    def restore_unacked(self, client: Any = None) -> None:
        if self.channel.connection.client is None:
            self._delivered.clear()
        else:
            restore: Any = super().restore_unacked  # kombu has no types
            restore(client)


class Channel(redis.Channel):
    """A channel with one client, which is replaced if the pool of connections is new, as after a loss of Redis."""

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
