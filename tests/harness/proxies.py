"""Programs in front of web servers and databases: those of the system, or those that ``make proxies`` unpacked."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from dominds.local.embedded_redis import free_port
from tests.harness.stack import ROOT


def program(name: str) -> str:
    path = f"{os.environ['PATH']}:/usr/sbin:{ROOT}/.venv/proxies/usr/sbin:{ROOT}/.venv/proxies/usr/bin"
    result = shutil.which(name, path=path)
    if result is None:
        raise FileNotFoundError(f"No {name} here. Install Debian's package; `make proxies` fetches nginx and Caddy.")
    return result


def end(process: subprocess.Popen[bytes]) -> None:
    """End a proxy: nginx politely, since a killed one leaves its workers; Caddy at once, since it would wait a minute
    for idle connections.
    """
    process.send_signal(signal.SIGTERM if "nginx" in str(process.args) else signal.SIGKILL)
    process.wait()


def snippet(name: str, *edits: tuple[str, str]) -> str:
    """Return one of the documented files, each edit made at the one place where its first text stands."""
    result = (ROOT / ".ci" / "deploy" / name).read_text()
    for old, new in edits:
        assert result.count(old) == 1, old
        result = result.replace(old, new)
    return result


def nginx_command(site: str, folder: Path) -> list[str]:
    """Write nginx's files for one site, have nginx check them, and return how to start it."""
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} pid {folder}/pid; error_log stderr warn; events {{}}\n"
        f"http {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    command = [program("nginx"), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    return command


def plain_nginx_command(addresses: Iterable[str], port: int, folder: Path) -> list[str]:
    """Return how to start the documented nginx without TLS, on loopback, before web servers at these addresses."""
    line = "    server {} max_fails=1 fail_timeout=10s;"
    site = snippet(
        "nginx.conf",
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
        ("    ssl_certificate     /etc/ssl/dominds/fullchain.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/dominds/privkey.pem;\n", ""),
        (line.format("127.0.0.1:8000"), "\n".join(map(line.format, addresses))),
    )
    return nginx_command(site, folder)
