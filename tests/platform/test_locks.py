"""The lock files: complete, hashed, in step with pyproject.toml, and silent about where packages come from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.stack import ROOT

LOCKS = {"requirements.lock": (), "requirements-dev.lock": ("dev",)}


def locked(path: Path) -> dict[str, str]:
    """Return versions by name."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_what_pyproject_asks_for_is_locked_in_a_fitting_version(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [project["optional-dependencies"][extra] for extra in LOCKS[name]]
    versions = locked(ROOT / name)
    for line in [*project["dependencies"], *(line for extra in extras for line in extra)]:
        wanted = Requirement(line)
        result = versions.get(canonicalize_name(wanted.name))
        assert result is not None, f"{line} is not in {name}: run `make lock`"
        assert wanted.specifier.contains(result), f"{name} has {wanted.name} {result}, but {line} is asked for"


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_a_hash_and_none_an_address(name: str) -> None:
    text = (ROOT / name).read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) > 50
    assert not [block for block in blocks if "--hash=sha256:" not in block]
    # What must not be there: an address, a path of one machine, an option that names a package index.
    assert not re.search(r"https?:|file:|--index|--find-links|--extra-index", text)


def test_both_files_agree_on_every_version() -> None:
    runtime, development = locked(ROOT / "requirements.lock"), locked(ROOT / "requirements-dev.lock")
    assert {name: development.get(name) for name in runtime} == runtime
