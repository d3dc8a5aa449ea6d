"""Shared fixtures, and which tests need a server."""

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.contenttypes.management import create_contenttypes
from django.core.management.commands import flush
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_migrate
from hypothesis import HealthCheck, Phase, settings
from redis import Redis
from xdist.scheduler import LoadFileScheduling

from dominds.db import fresh
from tests.harness import services
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer

pytest_plugins = ["tests.harness.live", "tests.harness.browser"]

# How fast a machine draws or runs an example is no property; and to explain which parts of a counterexample do not
# matter runs it hundreds of times more, which outlasts the time limit.
settings.register_profile(
    "tests",
    max_examples=50,  # other ones in each run: half of Hypothesis's own number halves their time in CI
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow],
)
# On each save a fifth of the examples will do; `make test` draws all of them.
settings.register_profile("unit", settings.get_profile("tests"), max_examples=20)
settings.load_profile("unit" if os.environ.get("DOMINDS_UNIT") else "tests")


# A test that asks for none of these needs no server, and no model to load and to run: `make unit`.
COSTLY_FIXTURES = {
    "minilm",
    "_django_db_helper",
    "postgres",
    "redis_server",
    "browser",
    "live_server",
    "stack",
    "arena",
    "server",
}

# They need programs that nothing else does.
collect_ignore = [
    path
    for path, variable in (("clients", "DOMINDS_CLIENTS"), ("browser/test_firefox.py", "DOMINDS_FIREFOX"))
    if not os.environ.get(variable)
]
if os.environ.get("DOMINDS_UNIT"):
    # To read these takes each worker seven seconds, and nearly every test in them has a server.
    collect_ignore += ["browser", "dialogs", "doubles", "faults", "flows", "security"]
    collect_ignore += ["dominds/db/test_hand_back.py", "dominds/db/test_prepared.py"]
    collect_ignore += ["dominds/test_documents.py", "dominds/web/test_addresses.py"]
    collect_ignore += ["dominds/llm/http/test_headers.py"]  # imports the clients of OpenAI and Anthropic


# Files whose tests share real processes, by the fixture that starts them: on one worker they are started once, for nine
# seconds of CPU, and not on each of four. They come first, since they take the longest.
TOGETHER = {
    "playwright": ("tests/browser/", "tests/dialogs/views/test_accessibility.py"),
    "shared_stack": (
        "tests/dialogs/api/test_live.py",
        "tests/dialogs/extras/teams/test_live.py",
        "tests/dialogs/extras/v1/mcp/test_live.py",
        "tests/dialogs/extras/v1/protocols/",
        "tests/dialogs/extras/v1/test_live.py",
        "tests/dialogs/extras/v1/test_proxy.py",
        "tests/dialogs/extras/v1/test_resending.py",
        "tests/dialogs/test_stories.py",
        "tests/platform/test_harness.py",
    ),
    "arena": (
        "tests/faults/test_dependencies.py",
        "tests/faults/test_machine.py",
        "tests/faults/test_random.py",
        "tests/faults/test_sockets.py",
        "tests/faults/test_team_processes.py",
        "tests/faults/test_workers.py",
    ),
}


# Files of a minute and more come next, so that none of them is what the other workers wait for at the end.
LONG = (
    "tests/dialogs/views/test_crawl.py",
    "tests/releases/",
    "tests/dominds/local/test_up.py",
    "tests/dialogs/store/test_quarantine.py",
    "tests/dialogs/test_migrations.py",
    "tests/flows/test_refusals.py",
    "tests/platform/",
    "tests/flows/",
    "tests/security/",
)


class Scheduling(LoadFileScheduling):
    """A file stays on one worker, and so do those that share processes. The one that drives a browser does nothing
    else: from its first page on, Playwright's event loop keeps other tests from running theirs."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((fixture for fixture, files in TOGETHER.items() if file.startswith(files)), file)

    def _reschedule(self, node: Any) -> None:
        if "playwright" in self.assigned_work[node] and not node.shutting_down:
            node.shutdown()  # once it has done what it has
        super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)  # not with -p no:xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what shares processes or may take long, mark what needs no server,
    and leave the long ones to ``make faults``."""
    together = tuple(file for files in TOGETHER.values() for file in files)
    in_one_process = not os.environ.get("PYTEST_XDIST_WORKER")  # there what drives a browser must be last
    seconds = dict.fromkeys((item.path for item in items), 0.0)
    for item in items:
        if limit := item.get_closest_marker("timeout"):
            seconds[item.path] = max(seconds[item.path], limit.args[0])

    def place(item: pytest.Item) -> tuple[bool, bool, int, float]:
        drives = item.nodeid.startswith(TOGETHER["playwright"])
        long = next((at for at, start in enumerate(LONG) if item.nodeid.startswith(start)), len(LONG))
        return drives is in_one_process, not item.nodeid.startswith(together), long, -seconds[item.path]

    items.sort(key=place)
    for item in items:
        for fixture, files in TOGETHER.items():
            if fixture in getattr(item, "fixturenames", ()) and not item.nodeid.startswith(files):
                raise pytest.UsageError(f"Add the file of {item.nodeid} to TOGETHER: it uses {fixture}.")
        served = any(item.get_closest_marker(name) for name in ("django_db", "server", "slow"))
        if not served and not COSTLY_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("unit")
    left = [item for item in items if _belongs_to_another_run(item, together)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def _belongs_to_another_run(item: pytest.Item, together: tuple[str, ...]) -> bool:
    if django_settings.EMBEDDED and (item.get_closest_marker("postgresql") or item.nodeid.startswith(together)):
        return True
    if os.environ.get("DOMINDS_EXTRAS") == "none" and item.get_closest_marker("extras"):
        return True
    return bool(item.get_closest_marker("deep")) and os.environ.get("DOMINDS_FAULTS") != "all"


@pytest.fixture(scope="session", autouse=True)
def static_files_when_asked() -> None:
    """Look for a static file when it is asked for: else each new test client reads all of them first, in 20 ms."""
    django_settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def passwords_at_once() -> None:
    """Hash passwords at once: half a second of CPU for each is the point of it for people, not for tests."""
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The run's PostgreSQL server."""
    return services.start_postgres()


@pytest.fixture(scope="session")
def redis_server() -> RedisServer:
    """The run's Redis, the one that settings.REDIS_URL names."""
    return services.redis()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Let pytest-django take the test database that is there: it is laid as a new install's is, in a fifth of the time
    that its migrations take, and goes with its server."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_blocker: Any) -> None:
    """Bring PostgreSQL up, or name a file, and lay the test database."""
    described = connection.settings_dict
    if django_settings.EMBEDDED:
        described["TEST"]["NAME"] = str(services.folder / "tests.sqlite3")
    else:
        services.start_postgres().create_database(f"test_{described['NAME']}")
    usual = described["NAME"]
    described["NAME"] = described["TEST"]["NAME"] or f"test_{usual}"
    with django_db_blocker.unblock():
        assert fresh.lay()
        connection.close()
    described["NAME"] = usual


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Make the flush after each test cheap: content types and permissions stay, and only what has rows is emptied."""
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    vars(flush)["sql_flush"] = _emptying
    yield
    gc.collect()  # ends threads of asgiref whose connections would keep the database from being dropped


def _emptying(style: object, database: BaseDatabaseWrapper, **options: bool) -> list[str]:
    """Return the statements that empty a database: DELETE, since TRUNCATE writes new files for each of fifty tables."""
    names = database.introspection.django_table_names(only_existing=True, include_views=False)
    names = [name for name in names if name not in ("django_content_type", "auth_permission")]
    with database.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names))
        return [f"DELETE FROM {name}" for (name,) in cursor.fetchall()]


@pytest.fixture(scope="session")
def redis_connection(redis_server: RedisServer) -> Iterator[Redis]:
    """A connection for all tests: to open one takes longer than many a test."""
    with redis_server.client() as client:
        yield client


@pytest.fixture
def redis_client(redis_connection: Redis) -> Redis:
    """A client of the run's Redis, emptied first."""
    redis_connection.flushall()
    return redis_connection


@pytest.fixture
def anyio_backend() -> str:
    """Coroutine tests marked ``anyio`` run on asyncio, as the server does."""
    return "asyncio"
