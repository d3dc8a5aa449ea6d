"""docker-compose.yml: no engine here runs it, so its sense is checked against the commands that exist."""

from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from dominds.local import up
from tests.harness.stack import ROOT


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def test_there_is_one_service_per_part(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"postgres", "redis", "migrate", "web", "proxy", "worker", "sweeper"}


@pytest.mark.parametrize("name", ["web", "worker", "sweeper"])
def test_parts_wait_for_healthy_servers_and_finished_migrations(compose: dict[str, Any], name: str) -> None:
    needs = {part: need["condition"] for part, need in compose["services"][name]["depends_on"].items()}
    assert needs == {
        "postgres": "service_healthy",
        "redis": "service_healthy",
        "migrate": "service_completed_successfully",
    }
    for server in ("postgres", "redis"):
        assert compose["services"][server]["healthcheck"]["test"]


def test_parts_run_what_up_runs(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services["worker"]["command"][1:]) <= set(up.worker_command("any", up.DEFAULT_CONCURRENCY))
    web = " ".join(up.web_command("0.0.0.0", 8000))
    for option in ("--websocket_timeout 43200", "--websocket-max-message-size 65536", "--application-close-timeout 5"):
        assert option in " ".join(services["web"]["command"])
        assert option in web
    for name in ("migrate", "sweeper"):
        assert services[name]["command"][2] in get_commands()


def test_no_secret_has_a_default_and_only_the_proxy_a_port(compose: dict[str, Any]) -> None:
    environment = compose["services"]["web"]["environment"]
    assert environment["SECRET_KEY"].startswith("${SECRET_KEY:?")
    assert "${POSTGRES_PASSWORD:?" in environment["DATABASE_URL"]
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:${PORT:-8000}:8000"]}


@pytest.mark.parametrize("name", ["web", "worker", "sweeper"])
def test_there_may_be_many_of_a_part(compose: dict[str, Any], name: str) -> None:
    """Neither a name nor a port of the host that only one container could have."""
    assert not {"container_name", "ports", "hostname", "network_mode"} & set(compose["services"][name])


def test_the_proxy_stands_before_every_web_container(compose: dict[str, Any]) -> None:
    proxy = compose["services"]["proxy"]
    assert proxy["depends_on"] == {"web": {"condition": "service_healthy"}}
    mounted, inside, _ = proxy["volumes"][0].split(":")
    assert inside == "/etc/caddy/Caddyfile"
    assert "dynamic a web 8000" in (ROOT / mounted).read_text()
    assert compose["services"]["web"]["expose"] == ["8000"]


def test_the_image_copies_folders_that_exist(compose: dict[str, Any]) -> None:
    dockerfile = (ROOT / compose["services"]["web"]["build"]["dockerfile"]).read_text()
    copied = [line.split()[1:-1] for line in dockerfile.splitlines() if line.startswith("COPY")]
    let_through = {
        line[1:] for line in (ROOT / ".ci" / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")
    }
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists()
        assert name in let_through
