"""A database of an earlier release reaches this one without loss, and that release can go on with it."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.harness.postgres import PostgresServer
from tests.releases.databases import DUMPS, RELEASES, VENDORS, Column, Database, Row, new_database

pytestmark = pytest.mark.postgresql

STAYS_LONGER = ("health_healthsnapshot", "limit_source")  # in databases of 0.2.0.dev
OURS = ("dialogs_", "health_", "remediation_")


@dataclass
class Upgraded:
    """A database before and after its upgrade."""

    release: str
    database: Database
    columns_before: dict[str, dict[str, Column]] = field(default_factory=dict)
    rows_before: dict[str, list[Row]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=[(release, vendor) for release in RELEASES for vendor in VENDORS], ids="-".join)
def upgraded(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Upgraded:
    release, vendor = request.param
    folder = tmp_path_factory.mktemp("upgrade")
    database = new_database(vendor, f"upgrade_{RELEASES.index(release)}", postgres, folder)
    database.load(DUMPS / f"{release}.{vendor}.sql")
    result = Upgraded(release, database)
    for table in database.tables():
        result.columns_before[table] = database.columns(table)
        result.rows_before[table] = database.query(f'SELECT * FROM "{table}"')
    database.upgrade(folder)
    return result


@pytest.fixture(scope="module")
def new(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return, of each kind, a database that this release has made."""
    made: dict[str, Database] = {}
    for vendor in VENDORS:
        folder = tmp_path_factory.mktemp("new")
        made[vendor] = new_database(vendor, "upgrade_new", postgres, folder)
        made[vendor].upgrade(folder)
    return lambda database: made["sqlite" if database.url.startswith("sqlite") else "postgresql"]


def test_every_row_of_before_is_kept(upgraded: Upgraded) -> None:
    for table, rows in upgraded.rows_before.items():
        assert rows or not table.startswith(OURS), f"{table} is empty in the dump"
        after = upgraded.database.query(f'SELECT * FROM "{table}"')
        for row in rows:
            assert any(row.items() <= each.items() for each in map(dict, after)), f"{table} lost or changed {row}"


def test_the_tables_are_those_of_a_new_database(upgraded: Upgraded, new: Any) -> None:
    database, fresh = upgraded.database, new(upgraded.database)
    assert database.tables() == fresh.tables()
    for table in database.tables():
        columns, expected = database.columns(table), fresh.columns(table)
        if (upgraded.release, table) == ("0.2.0.dev", STAYS_LONGER[0]):
            longer, as_made = columns.pop(STAYS_LONGER[1]), expected.pop(STAYS_LONGER[1])
            assert longer.length and as_made.length and longer.length > as_made.length
        assert columns == expected, table
    assert database.indexes() == fresh.indexes()


def test_the_release_before_can_go_on_with_the_tables(upgraded: Upgraded) -> None:
    """Nothing that it reads or writes is gone, and what it does not know fills itself. Its columns keep their types:
    PostgreSQL refuses its prepared statements once one has another type, a longer one too."""
    for table, before in upgraded.columns_before.items():
        after = upgraded.database.columns(table)
        assert before.keys() <= after.keys(), f"{table} lost {before.keys() - after.keys()}"
        for name, column in after.items():
            where = f"{table}.{name}"
            if name not in before:
                assert column.may_be_null or column.has_default, f"{where} is required, and {upgraded.release} omits it"
                continue
            old = before[name]
            assert column.type == old.type, f"{where} was {old.type}"
            assert column.may_be_null or not old.may_be_null, f"{where} could be null"
            assert column.length == old.length, f"{where} had {old.length} characters"


def test_staff_keeps_its_rights(upgraded: Upgraded) -> None:
    """In 0.1.0 whoever was staff could do what five permissions give since."""
    rights = upgraded.database.query(
        "SELECT codename FROM auth_permission p JOIN auth_user_user_permissions u ON u.permission_id = p.id "
        "JOIN auth_user a ON a.id = u.user_id WHERE a.username = 'staff'"
    )
    expected = {"view_all_dialogs", "act_in_all_dialogs", "operate", "view_metrics", "resolve_question"}
    assert {row["codename"] for row in rights} == (expected if upgraded.release == "0.1.0" else set())


def test_calls_without_a_price_are_counted(upgraded: Upgraded) -> None:
    database = upgraded.database
    dialogs = {row["id"]: row["unpriced_generations"] for row in database.query("SELECT * FROM dialogs_dialog")}
    if upgraded.release == "0.1.0":
        counted = dict.fromkeys(dialogs, 0)
        for row in database.query("SELECT * FROM dialogs_generation"):
            counted[row["dialog_id"]] += row["outcome"] not in ("running", "failed")
        assert dialogs == counted
    assert any(dialogs.values())


def test_dumps_hold_no_secret() -> None:
    for dump in DUMPS.iterdir():
        assert "pbkdf2" not in dump.read_text()
