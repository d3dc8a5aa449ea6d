"""Removal of secrets from text before it is logged or stored. This module does not import Django."""

import os
import re
from collections.abc import Iterable

MASK = "[redacted]"
SHORTEST_SECRET = 8  # characters; masking shorter values would hit ordinary words

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|_URL)$")
_PASSWORD_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@]{0,100}:)[^\s@/]{1,300}(?=@)", re.I)
_QUOTE = r"""b?\\{0,2}["']?"""  # a quote as Python or JSON writes it, or JSON inside JSON
_IS = rf"\\{{0,2}}[\"']?\s{{0,3}}[:=,]\s{{0,3}}{_QUOTE}"
_LABELLED = re.compile(
    rf"""(?P<before>\b(?:proxy-)?authorization{_IS}(?:(?:bearer|basic|token)\s{{1,3}}{_QUOTE})?
    |\bbearer\s{{1,3}}{_QUOTE}
    |\b(?:x-)?api[-_]?key{_IS}
    |\bx-goog-api-key{_IS})
    (?P<secret>[^\s"',;}}\]\\]{{6,500}})""",
    re.I | re.X,
)
_SHAPED = re.compile(r"\b(?:sk|pk|rk|xai|gsk|dmk|ghp|hf)[-_][A-Za-z0-9_-]{12,300}|\bAIza[A-Za-z0-9_-]{30,60}")

# Links that let anybody answer in a person's name, or read a dialog.
_LINK = re.compile(r"(?P<before>/by-mail/|/invited/[0-9]+/|/shared/[0-9a-f]{32}\.)[A-Za-z0-9_:%-]{10,500}")

# The address to which an OpenID provider sends the browser, with a code that signs in.
_CALLBACK = re.compile(r"(?P<before>/login/callback/(\d+/)?\?)[^\s\"\\]+")

# Parts without which the patterns cannot match, in lower case if the pattern ignores case. Searching for them takes a
# tenth of a match's time, and hardly any log line holds one.
IN_LABELLED = ("author", "bearer", "key")
IN_SHAPED = tuple("sk- sk_ pk- pk_ rk- rk_ xai- xai_ dmk- dmk_ ghp- ghp_ hf- hf_ AIza".split())

_remembered: set[str] = set()


def remember(secret: str) -> None:
    """Mask this value from now on in every text that this process redacts."""
    if len(secret) >= SHORTEST_SECRET:
        _remembered.add(secret)


def remember_environment() -> None:
    """Remember the values of environment variables with the name of a secret, and passwords in their addresses."""
    for name, value in os.environ.items():
        if not _SECRET_NAME.search(name.upper()):
            continue
        if name.upper().endswith("_URL"):
            _remember_password_of(value)
        else:
            remember(value)


def _remember_password_of(url: str) -> None:
    before, at, _ = url.partition("://")[2].rpartition("@")
    if at and ":" in before:
        remember(before.partition(":")[2])


def redact(text: str) -> str:
    """Return ``text`` with keys, passwords and authorization values masked."""
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, MASK)
    if holds_any(text.casefold(), IN_LABELLED):
        text = _LABELLED.sub(lambda match: match["before"] + MASK, text)
    if "://" in text:
        text = _PASSWORD_IN_URL.sub(lambda match: match["before"] + MASK, text)
    if "/by-mail/" in text or "/shared/" in text or "/invited/" in text:
        text = _LINK.sub(lambda match: match["before"] + MASK, text)
    if "/login/callback/" in text:
        text = _CALLBACK.sub(lambda match: match["before"] + MASK, text)
    return _SHAPED.sub(MASK, text) if holds_any(text, IN_SHAPED) else text


def holds_any(text: str, parts: Iterable[str]) -> bool:
    for part in parts:  # noqa: SIM110 - ``any`` over a generator takes three times as long
        if part in text:
            return True
    return False
