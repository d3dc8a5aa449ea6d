"""Celery's transport over Redis, with one client for all commands of a channel. Kombu makes a client for each command,
which takes longer than the command. The loss of Redis does not end the worker."""

from typing import Any

from kombu.transport import redis


class QoS(redis.QoS):
    """A queue's messages in hand, which go back unless Redis was lost.

    By then kombu has no address any more, and its error used to end the worker with all answers under way. The sweeper
    wakes their dialogs.
    """

    def restore_unacked(self, client: Any = None) -> None:
        if self.channel.connection.client is None:
            self._delivered.clear()
        else:
            restore: Any = super().restore_unacked  # kombu has no types
            restore(client)


class Channel(redis.Channel):
    """A channel that makes a new client when its connections are new, as after a loss."""

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
