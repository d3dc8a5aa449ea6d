"""A mail server on loopback that refuses what real ones refuse: commands out of order, senders without a login, unknown
recipients, bare line feeds, lines over 1,000 octets, and mails without From, Date or Message-ID."""

import base64
import queue
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

MOST_OCTETS = 1_000  # of a line, its end included (RFC 5321, 4.5.3.1.6)
WAIT_SECONDS = 10
Reply = tuple[int, str]


class MailServer(socketserver.ThreadingTCPServer):
    """``mails`` are those that it took. ``busy`` times it asks senders to come again."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, login: tuple[str, str], domain: str) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.login, self.domain, self.busy = login, domain, 0
        self.mails: queue.Queue[EmailMessage] = queue.Queue()
        self.refusals: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def wait(self) -> EmailMessage:
        return self.mails.get(timeout=WAIT_SECONDS)


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.greeted = self.known = False
        self.sender, self.recipients = "", list[str]()
        self._say(220, "double.test ESMTP")
        while line := self.rfile.readline(MOST_OCTETS + 1):
            verb, _, rest = line.decode("ascii", "replace").strip().partition(" ")
            code, words = self._answer(verb.upper(), rest) if line.endswith(b"\r\n") else (500, "Line without its end")
            if code >= 400:
                self.server.refusals.append(f"{code} {words}")
            self._say(code, words)
            if code in (221, 500):
                return

    def _say(self, code: int, words: str) -> None:
        *more, last = words.split("\n")
        text = "".join(f"{code}-{line}\r\n" for line in more) + f"{code} {last}\r\n"
        self.wfile.write(text.encode())

    def _answer(self, verb: str, rest: str) -> Reply:
        if verb == "QUIT":
            return 221, "Bye"
        if verb in ("EHLO", "HELO"):
            self.greeted = bool(rest)
            return (250, "double.test\nAUTH PLAIN\nSIZE 1000000") if rest else (501, "Say who you are")
        if verb == "RSET":
            self.sender, self.recipients = "", []
            return 250, "OK"
        if not self.greeted:
            return 503, "Send EHLO first"
        return {"AUTH": self._auth, "MAIL": self._mail, "RCPT": self._rcpt, "DATA": self._data}.get(
            verb, self._unknown
        )(rest)

    def _unknown(self, rest: str) -> Reply:
        return 502, "Command not implemented"

    def _auth(self, rest: str) -> Reply:
        mechanism, _, encoded = rest.partition(" ")
        self.known = (
            mechanism == "PLAIN" and tuple(base64.b64decode(encoded).decode().split("\0")[1:]) == self.server.login
        )
        return (235, "Accepted") if self.known else (535, "Authentication failed")

    def _mail(self, rest: str) -> Reply:
        pattern_match = re.match(r"FROM:<([^<>\s]+@[^<>\s]+)>", rest, re.I)
        if not self.known:
            return 530, "Authentication required"
        if self.server.busy:
            self.server.busy -= 1
            return 451, "Try again later"
        if pattern_match is None or self.sender:
            return 501, "Bad sender"
        self.sender = pattern_match[1]
        return 250, "OK"

    def _rcpt(self, rest: str) -> Reply:
        pattern_match = re.match(r"TO:<([^<>\s]+)>", rest, re.I)
        if not self.sender:
            return 503, "Send MAIL first"
        if pattern_match is None or not pattern_match[1].endswith(f"@{self.server.domain}"):
            return 550, "No such user here"
        self.recipients.append(pattern_match[1])
        return 250, "OK"

    def _data(self, rest: str) -> Reply:
        if not self.recipients:
            return 503, "Send RCPT first"
        self._say(354, "Go on")
        lines: list[bytes] = []
        while (line := self.rfile.readline(MOST_OCTETS + 1)) != b".\r\n":
            if not line.endswith(b"\r\n") or line[:-2].find(b"\r") >= 0:
                return 500, "Bare line feed, or a line that is too long"
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        self.sender, self.recipients = "", []
        mail = BytesParser(policy=policy.default).parsebytes(b"".join(lines))
        if missing := [name for name in ("From", "Date", "Message-ID", "To", "Subject") if name not in mail]:
            return 550, f"Missing: {', '.join(missing)}"
        assert isinstance(mail, EmailMessage)
        self.server.mails.put(mail)
        return 250, "Taken"


@contextmanager
def mail_server(login: tuple[str, str] = ("dominds", "a secret"), domain: str = "example.org") -> Iterator[MailServer]:
    server = MailServer(login, domain)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
