"""Celery's transport over Redis, with three changes.

A channel has one client for all commands: kombu would make a client for each, which takes longer than the command.
Redis keeps no copy of a message until it is acknowledged: the sweeper repeats what is lost. And the loss of Redis does
not end the worker.
"""

from typing import Any

from kombu.transport import redis, virtual


class QoS(virtual.QoS):
    """A worker's unacknowledged messages, which are returned to the queue when it ends, unless Redis was lost.

    Then they are dropped: the sweeper wakes their dialogs. Kombu's error used to end the worker with all running
    answers, or would write the messages to a file.
    """

    def restore_unacked(self) -> None:
        if self.channel.connection.client is not None:
            restore: Any = super().restore_unacked  # kombu has no types
            restore()
        self._delivered.clear()


class Channel(redis.Channel):
    """A channel with one client, which is replaced if the pool of connections is new, as after a loss of Redis."""

    ack_emulation = False  # two pipelines of commands for each message
    _one_client: Any = None

    def __init__(self, *given: Any, **named: Any) -> None:
        begin: Any = super().__init__
        begin(*given, **named)
        vars(self)["QoS"] = QoS

    def _create_client(self, asynchronous: bool = False) -> Any:
        make: Any = super()._create_client
        if asynchronous:
            return make(asynchronous=True)
        if self._one_client is None or self._one_client.connection_pool is not self.pool:
            self._one_client = make()
        return self._one_client


class Transport(redis.Transport):
    """The transport that the setting ``broker_transport`` names."""

    Channel = Channel
