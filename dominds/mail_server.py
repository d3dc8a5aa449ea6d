"""Django's mail backend, with a bound on the whole time of sending one mail."""

import smtplib
import socket

from django.core.mail.backends import smtp

from dominds import waits

TOTAL_SECONDS = 30.0  # for a whole mail, since ``EMAIL_TIMEOUT`` restarts with every byte


class _Bounded(smtplib.SMTP):
    deadline: waits.Deadline | None = None

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connected: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # not in typeshed
        self.deadline = waits.Deadline(TOTAL_SECONDS, connected)
        return connected

    def close(self) -> None:
        if self.deadline is not None:
            self.deadline.end()
            self.deadline = None
        super().close()


class _BoundedOverTls(smtplib.SMTP_SSL, _Bounded):
    """A connection that starts TLS on the socket with the deadline."""


class EmailBackend(smtp.EmailBackend):
    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        return _BoundedOverTls if self.use_ssl else _Bounded

    def open(self) -> bool | None:
        waits.begin("the mail server")
        return super().open()
