"""Typed readers of environment variables. A bad value stops the start with an error that says what was expected."""

import os
import re
import sys
from email.utils import parseaddr
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from dominds.oidc.registration import Registration

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})
SERVER_ENGINE = "dominds.db.postgresql"
FILE_ENGINE = "dominds.db.sqlite3"
LOCAL_KINDS = ("lmstudio", "ollama", "llamacpp", "vllm")
REDIS_SCHEMES = ("redis", "rediss")
MOST_PROVIDERS = 9  # providers of sign-ins
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465}

_env = environ.Env()


class BadEnvironment(ImproperlyConfigured):
    """An environment variable holds something that Dominds cannot use."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        super().__init__(f"{name} is {value!r}, but should be {expected}. Correct or unset it, and start again.")


def text(name: str, default: str = "") -> str:
    """Return a variable without surrounding blanks; an empty one counts as unset."""
    return str(_env.str(name, default="")).strip() or default


def flag(name: str, *, default: bool) -> bool:
    """Return a yes-or-no variable."""
    value = text(name)
    if not value:
        return default
    if value.lower() in TRUE:
        return True
    if value.lower() in FALSE:
        return False
    raise BadEnvironment(name, value, "one of 1, true, yes, on, 0, false, no, off")


def number(name: str, *, default: int, minimum: int = 0, maximum: int | None = None) -> int:
    """Return a whole number of at least ``minimum``, and at most ``maximum``."""
    value = text(name)
    if not value:
        return default
    if not value.isdecimal() or int(value) < minimum or (maximum is not None and int(value) > maximum):
        bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise BadEnvironment(name, value, f"a whole number {bounds}")
    return int(value)


def words(name: str, default: list[str]) -> list[str]:
    """Return the parts of a comma-separated variable, without blanks."""
    return [part.strip() for part in text(name).split(",") if part.strip()] or default


def servers(name: str, default: str) -> list[tuple[str, str]]:
    """Return pairs of kind and address of model servers from ``KIND=ADDRESS,...``. The value ``off`` means none."""
    value = text(name, default)
    if value == "off":
        return []
    pairs = [entry.strip().partition("=") for entry in value.split(",") if entry.strip()]
    if not all(kind in LOCAL_KINDS and urlsplit(address).hostname for kind, _, address in pairs):
        raise BadEnvironment(name, value, f"off, or KIND=ADDRESS with commas between, of {', '.join(LOCAL_KINDS)}")
    return [(kind, address) for kind, _, address in pairs]


def apps(name: str, ours: list[str], *, group: str) -> list[str]:
    """Return the Django apps that a variable lists by name. If it is unset, these are all of ours and of packages.

    A package names its app in an entry point of ``group``. The value ``none`` means no app. If every name has a ``-``
    before it, all apps but these are returned.
    """
    own = {app.rpartition(".")[2]: app for app in ours}
    known = own | {entry.name: entry.value for entry in entry_points(group=group) if _is_there(entry, own)}
    wanted = words(name, list(known))
    if wanted == ["none"]:
        return []
    if without := [word[1:] for word in wanted if word.startswith("-")]:
        wanted = [word for word in (*known, *without) if word not in without] if len(without) == len(wanted) else [""]
        wanted += [word for word in without if word not in known]
    if any(word not in known for word in wanted):
        expected = f"none, or some of {', '.join(known)} with commas between, or each of some with - before it"
        raise BadEnvironment(name, text(name), expected)
    return [app for word, app in known.items() if word in wanted]


def _is_there(plugin: EntryPoint, own: dict[str, str]) -> bool:
    """Check whether a package's app can be imported, and write the reason to standard error if not.

    A fault in somebody else's package must not prevent the start.
    """
    try:
        reason = "" if find_spec(plugin.value) else f"there is no module {plugin.value}"
    except (ImportError, ValueError) as error:
        reason = str(error)
    if plugin.name in own:
        reason = f"Dominds has an extension {plugin.name} of its own"
    if reason:
        sys.stderr.write(f"The extension {plugin.name} ({plugin.value}) is left out: {reason}.\n")
    return not reason


def one_of(name: str, choices: tuple[str, ...], default: str) -> str:
    """Return one of ``choices``."""
    value = text(name, default)
    if value not in choices:
        raise BadEnvironment(name, value, f"one of {', '.join(choices)}")
    return value


def folder(name: str, default: str, *, base: Path) -> Path:
    """Return a folder's absolute path: the variable's, from the working directory, or ``default`` in ``base``."""
    given = text(name)
    path = Path(given).expanduser().resolve() if given else base / default
    try:
        is_file = path.exists() and not path.is_dir()
    except OSError as error:
        raise BadEnvironment(name, str(path), f"a folder that this user may open ({error.strerror})") from None
    if is_file:
        raise BadEnvironment(name, str(path), "a folder, not a file")
    return path


def make_folder(name: str, path: Path) -> None:
    """Make the folder unless it exists. Raises ``BadEnvironment`` if it cannot be made or written to."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadEnvironment(name, str(path), f"a folder that can be made ({error.strerror})") from None
    try:
        # Permissions do not tell: root has all of them, but cannot write to a file system that is read-only.
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise BadEnvironment(name, str(path), f"a folder that this user may write to ({error.strerror})") from None


def make_named_folder(name: str, path: Path) -> None:
    """Make the folder that a variable names, and say so, in case the name has a typing error.

    The default folder is not made.
    """
    if text(name) and not path.exists():
        make_folder(name, path)
        sys.stderr.write(f"Made the folder {path}, since {name} names it and there was none.\n")


def database(name: str, *, default: Path) -> dict[str, Any]:
    """Return Django's settings for the database at the variable's URL, or for an SQLite file if it is unset."""
    value = text(name)
    if not value:
        return {"ENGINE": FILE_ENGINE, "NAME": str(default)}
    scheme = urlsplit(value).scheme
    if scheme not in ("postgres", "postgresql", "sqlite"):
        raise BadEnvironment(name, f"{scheme}://...", "postgres://USER:PASSWORD@HOST:PORT/NAME or sqlite:///FILE")
    described: dict[str, Any] = environ.Env.db_url_config(value)
    described["ENGINE"] = FILE_ENGINE if scheme == "sqlite" else SERVER_ENGINE
    if not described["NAME"]:
        raise BadEnvironment(name, f"{scheme}://...", "an address that ends in the database's name")
    if host := described.get("HOST"):
        described["HOST"] = unquote(host)  # the folder of a Unix socket is written as %2Fvar%2Frun...
    return described


def redis_url(name: str) -> str:
    """Return the address of a Redis server."""
    value = text(name)
    parts = urlsplit(value)
    if parts.scheme not in REDIS_SCHEMES or not parts.hostname:
        raise BadEnvironment(name, f"{parts.scheme}://...", "redis://HOST:PORT/NUMBER or rediss://...")
    return value


def web_address(name: str) -> str:
    """Return a site's address, scheme and host without a trailing slash, or an empty text if unset."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"https?://[\w.-]+(:\d+)?|https?://\[[\da-fA-F:]+\](:\d+)?", value):
        raise BadEnvironment(name, value, "an address such as https://dominds.example.org, without a path")
    return value


def issuer(name: str) -> str:
    """Return the issuer of an OpenID provider, unchanged, or an empty text if unset.

    Plain HTTP is accepted only for this machine.
    """
    value = text(name)
    host = r"https://[\w.-]+(:\d+)?|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?"
    if value and not re.fullmatch(rf"({host})(/[^\s?#]*)?", value):
        raise BadEnvironment(
            name, value, "the issuer of an OpenID provider, such as https://id.example.org/realms/main"
        )
    return value


def openid_providers(name: str) -> tuple[Registration, ...]:
    """Return the OpenID providers at which this server is registered.

    ``NAME_ISSUER``, ``NAME_CLIENT_ID`` and so on describe the first, and ``NAME_2_ISSUER`` to ``NAME_9_ISSUER``
    further ones.
    """
    for variable in os.environ:
        match = re.fullmatch(rf"{name}_(\d+)_\w+", variable)
        if match and match[1] not in map(str, range(2, MOST_PROVIDERS + 1)):
            raise BadEnvironment(variable, text(variable), f"{name}_2_... to {name}_{MOST_PROVIDERS}_...")
    prefixes = (name, *(f"{name}_{number}" for number in range(2, MOST_PROVIDERS + 1)))
    registered = tuple(
        _openid_provider(prefix, number) for number, prefix in enumerate(prefixes, 1) if text(f"{prefix}_ISSUER")
    )
    for number, one in enumerate(registered):
        if any(other.names(one.issuer) for other in registered[:number]):
            raise BadEnvironment(
                f"{prefixes[one.number - 1]}_ISSUER", one.issuer, "another issuer than those before it"
            )
    return registered


def _openid_provider(prefix: str, number: int) -> Registration:
    address = issuer(f"{prefix}_ISSUER")
    client, secret = text(f"{prefix}_CLIENT_ID"), text(f"{prefix}_CLIENT_SECRET")
    if not (client and secret):
        raise ImproperlyConfigured(
            f"{prefix}_ISSUER is set, but {prefix}_CLIENT_ID or {prefix}_CLIENT_SECRET is not. Set what the "
            "provider gave you when you registered Dominds there, or unset the issuer, and start again."
        )
    return Registration(
        text(f"{prefix}_NAME", urlsplit(address).hostname or "")[:40],
        address,
        client,
        secret,
        text(f"{prefix}_SCOPES", "openid profile email"),
        text(f"{prefix}_GROUPS_CLAIM", "groups"),
        flag(f"{prefix}_NEW_ACCOUNTS", default=True),
        number,
    )


def mail(name: str) -> dict[str, Any]:
    """Return Django's settings for a mail server, or an empty mapping if unset. ``smtp+tls`` means STARTTLS."""
    value = text(name)
    if not value:
        return {}
    parts = urlsplit(value)
    if parts.scheme not in MAIL_PORTS or not parts.hostname:
        raise BadEnvironment(
            name, f"{parts.scheme}://...", "smtp+tls://USER:PASSWORD@HOST:PORT, smtp+ssl://... or smtp://..."
        )
    described: dict[str, Any] = environ.Env.email_url_config(value)
    described["EMAIL_BACKEND"] = "dominds.mail_server.EmailBackend"
    return {**described, "EMAIL_PORT": described["EMAIL_PORT"] or MAIL_PORTS[parts.scheme]}


def mail_sender(name: str) -> str:
    """Return the sender of mails, which is an address, or a name with the address in angle brackets."""
    value = text(name)
    if "@" not in parseaddr(value)[1]:
        raise BadEnvironment(name, value, "the address that mails come from, such as Dominds <dominds@example.org>")
    return value
