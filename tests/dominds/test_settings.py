"""The profiles: an embedded default on loopback, and a public server that demands HTTPS and a key of its own."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.stack import ROOT

pytestmark = pytest.mark.server

Loader = Callable[..., subprocess.CompletedProcess[str]]
SERVER = {"DATABASE_URL": "postgres://ada:pw@db/talks", "REDIS_URL": "redis://cache:6379/0", "SECRET_KEY": "k" * 60}
SHOWN = """
import json
from django.conf import settings as s
names = ["SECRET_KEY", "ALLOWED_HOSTS", "REDIS_URL", "DATABASES", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE",
         "EMBEDDED", "SECURE_HSTS_SECONDS", "SESSION_COOKIE_AGE", "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE",
         "DEBUG"]
print(json.dumps({name: getattr(s, name) for name in names}))
"""


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Read the settings in a process of their own, with nothing but the given environment."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "dominds.settings"}
        return subprocess.run(
            [sys.executable, *(arguments or ("-c", SHOWN))],
            cwd=ROOT,
            env={**kept, "DOMINDS_DATA_DIR": str(tmp_path / "data"), **environment},
            check=False,
            capture_output=True,
            text=True,
        )

    return run


def shown(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_without_any_environment_it_is_embedded_on_loopback(load: Loader, tmp_path: Path) -> None:
    settings = shown(load())
    database = settings["DATABASES"]["default"]
    assert database["NAME"] == str(tmp_path / "data" / "dominds.sqlite3")
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in database["OPTIONS"]["init_command"]
    assert "synchronous=FULL" in database["OPTIONS"]["init_command"]
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1", "localhost", "[::1]"]
    assert settings["EMBEDDED"] is True
    assert settings["DEBUG"] is False
    assert settings["SECURE_SSL_REDIRECT"] is False


def test_the_embedded_key_is_made_once_and_is_its_owners_alone(load: Loader, tmp_path: Path) -> None:
    first, second = shown(load())["SECRET_KEY"], shown(load())["SECRET_KEY"]
    assert first == second
    assert len(first) >= 50
    assert stat.S_IMODE((tmp_path / "data" / "secret_key").stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["secret_key"]


def test_a_database_server_without_a_key_is_refused_with_advice(load: Loader) -> None:
    done = load(DATABASE_URL=SERVER["DATABASE_URL"])
    assert done.returncode != 0
    assert "SECRET_KEY is not set, but DATABASE_URL names a server" in done.stderr


def test_a_database_server_is_used_through_a_bounded_pool(load: Loader) -> None:
    database = shown(load(**SERVER))["DATABASES"]["default"]
    assert database["OPTIONS"]["pool"] == {"min_size": 1, "max_size": 16, "timeout": 5}
    assert "lock_timeout=2s" in database["OPTIONS"]["options"]
    assert "idle_in_transaction_session_timeout=10s" in database["OPTIONS"]["options"]
    assert database["CONN_MAX_AGE"] == 0
    assert database["ATOMIC_REQUESTS"] is False


def test_public_names_demand_https(load: Loader) -> None:
    settings = shown(load(**SERVER, ALLOWED_HOSTS="dominds.example.org"))
    assert settings["SECURE_SSL_REDIRECT"] is True
    assert settings["SESSION_COOKIE_SECURE"] is True
    assert settings["SECURE_HSTS_SECONDS"] >= 31_536_000


def test_https_can_be_switched_off_for_a_trusted_network(load: Loader) -> None:
    settings = shown(load(**SERVER, ALLOWED_HOSTS="dominds.lan", DOMINDS_HTTPS="off"))
    assert settings["SECURE_SSL_REDIRECT"] is False
    assert settings["SESSION_COOKIE_SECURE"] is False


def test_sessions_last_twelve_hours_and_are_closed_to_scripts(load: Loader) -> None:
    settings = shown(load())
    assert settings["SESSION_COOKIE_AGE"] == 12 * 60 * 60
    assert settings["SESSION_COOKIE_HTTPONLY"] is True
    assert settings["SESSION_COOKIE_SAMESITE"] == "Lax"


def test_commands_beside_a_running_dominds_find_its_redis(load: Loader, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "redis.url").write_text("redis://:pw@127.0.0.1:4711/0")
    assert shown(load())["REDIS_URL"] == "redis://:pw@127.0.0.1:4711/0"
    assert shown(load(REDIS_URL="redis://cache:6379/0"))["REDIS_URL"] == "redis://cache:6379/0"


def test_a_bad_value_stops_the_start_and_is_named(load: Loader) -> None:
    done = load(DEBUG="perhaps")
    assert done.returncode != 0
    assert "DEBUG is 'perhaps'" in done.stderr


def test_a_provider_of_sign_ins_needs_what_it_was_registered_with(load: Loader) -> None:
    done = load(DOMINDS_OIDC_ISSUER="https://id.example.org", DOMINDS_OIDC_CLIENT_ID="dominds")
    assert done.returncode != 0
    assert "DOMINDS_OIDC_ISSUER is set, but DOMINDS_OIDC_CLIENT_ID or DOMINDS_OIDC_CLIENT_SECRET is not" in done.stderr


PROVIDERS = {
    "DOMINDS_OIDC_ISSUER": "https://id.example.org",
    "DOMINDS_OIDC_CLIENT_ID": "dominds",
    "DOMINDS_OIDC_CLIENT_SECRET": "one",
    "DOMINDS_OIDC_3_ISSUER": "https://id.example.org/b",
    "DOMINDS_OIDC_3_CLIENT_ID": "d3",
    "DOMINDS_OIDC_3_CLIENT_SECRET": "three",
    "DOMINDS_OIDC_3_NAME": "Pilots",
    "DOMINDS_OIDC_3_NEW_ACCOUNTS": "off",
}


def test_further_providers_of_sign_ins_are_numbered(load: Loader) -> None:
    shown = "from django.conf import settings as s; [print(one) for one in s.OIDC_PROVIDERS]"
    first, third = load("-c", shown, **PROVIDERS).stdout.splitlines()
    assert "name='id.example.org'" in first and "number=1" in first and "makes_accounts=True" in first
    assert "name='Pilots'" in third and "number=3" in third and "makes_accounts=False" in third
    assert "secret" not in first + third and "three" not in third


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"DOMINDS_OIDC_3_ISSUER": "https://id.example.org/"}, "should be another issuer than those before it"),
        ({"DOMINDS_OIDC_3_CLIENT_ID": ""}, "DOMINDS_OIDC_3_ISSUER is set, but DOMINDS_OIDC_3_CLIENT_ID"),
        ({"DOMINDS_OIDC_1_ISSUER": "https://a.example"}, "should be DOMINDS_OIDC_2_... to DOMINDS_OIDC_9_..."),
        ({"DOMINDS_OIDC_10_NAME": "Ten"}, "should be DOMINDS_OIDC_2_... to DOMINDS_OIDC_9_..."),
    ],
)
def test_a_bad_number_or_a_provider_named_twice_stops_the_start(
    load: Loader, more: dict[str, str], message: str
) -> None:
    done = load(**{**PROVIDERS, **more})
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("name", ["DOMINDS_MINDS_DIR", "DOMINDS_WORKSPACE_DIR"])
def test_a_named_but_missing_folder_is_made_and_said_once(name: str, load: Loader, tmp_path: Path) -> None:
    """A mistyped name gave the demo agents, or a workspace that agents could not read, without a word."""
    missing = tmp_path / "agnets"
    first, second = load(**{name: str(missing)}), load(**{name: str(missing)})
    assert first.stderr == f"Made the folder {missing}, since {name} names it and there was none.\n"
    assert second.stderr == ""
    assert stat.S_IMODE(missing.stat().st_mode) == 0o700
    assert f"{name} is '/proc/none', but should be a folder that can be made" in load(**{name: "/proc/none"}).stderr
    assert load().stderr == ""  # the defaults may be missing


def test_the_settings_of_a_public_server_pass_djangos_deployment_checks(load: Loader) -> None:
    done = load(
        *("manage.py", "check", "--deploy", "--fail-level", "WARNING"),
        **{**SERVER, "SECRET_KEY": "dG9XKzvQe1m4nYb7rJ2pLs8uWf5hAcE0kTiNoRxZqVyBgMjD6wS3PtC9lHaU"},
        ALLOWED_HOSTS="dominds.example.org",
    )
    assert done.returncode == 0, done.stderr


def test_the_model_library_brings_no_django(load: Loader) -> None:
    done = load("-c", "import sys, dominds.llm.messages; print([m for m in ('django', 'celery') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr
