"""The code of an earlier release, from git's history, with the packages of its own lock file."""

import io
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.harness.stack import ROOT

FOLDER = ROOT / "var" / "releases"
COMMITS = {"0.1.0": "499ba045", "0.2.0.dev": "7aca7a69"}  # the second was never released, but people run it


class NoHistory(Exception):
    """This clone lacks the commit of a release."""


@dataclass(frozen=True)
class Checkout:
    """The folder of a release's code, and a Python that has what it imports."""

    code: Path
    python: str


def check_out(release: str) -> Checkout:
    """Lay the code of a release into ``var/releases``, once, and install its packages where they are not ours."""
    code = FOLDER / release / "code"
    if not (code / "manage.py").exists():
        archive = subprocess.run(["git", "archive", COMMITS[release]], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode != 0:
            raise NoHistory(f"This clone has no commit {COMMITS[release]} of {release}. Run: git fetch --unshallow")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(code, filter="data")
    lock = (code / "requirements.lock").read_text()
    if lock == (ROOT / "requirements.lock").read_text():
        return Checkout(code, sys.executable)
    return Checkout(code, _python_with(lock, FOLDER / release))


def _python_with(lock: str, folder: Path) -> str:
    """Return the Python of an environment with these packages, made once."""
    installed, environment = folder / "installed", folder / "venv"
    if not installed.exists() or installed.read_text() != lock:
        (folder / "requirements.lock").write_text(lock)
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        pip = [
            str(environment / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "-qq",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        subprocess.run([*pip, "-r", folder / "requirements.lock"], check=True)
        installed.write_text(lock)
    return str(environment / "bin" / "python")
