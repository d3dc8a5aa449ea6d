"""The tests' own servers: real PostgreSQL and Redis, and a stack on them."""

import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from redis import Redis

from tests.harness.live import LIVE_DATABASE
from tests.harness.stack import Stack

pytestmark = pytest.mark.server


@pytest.mark.django_db
def test_rows_are_kept_by_a_real_postgresql() -> None:
    get_user_model().objects.create_user("ada")
    assert connection.vendor == "postgresql"
    assert get_user_model().objects.count() == 1


def test_the_runs_redis_is_the_one_that_settings_name(redis_client: Redis, settings: Any) -> None:
    redis_client.set("seen", "yes")
    with Redis.from_url(settings.REDIS_URL) as named:
        assert named.get("seen") == b"yes"


def test_the_orm_and_the_live_processes_see_the_same_rows(live_stack: Stack) -> None:
    assert connection.settings_dict["NAME"] == LIVE_DATABASE
    person = get_user_model().objects.create_user("live-ada")
    assert live_stack.api_as(person).get("/api/dialogs").json() == []
    results: list[int] = []

    def count() -> None:
        results.append(get_user_model().objects.count())
        connection.close()

    other = threading.Thread(target=count)
    other.start()
    other.join()
    assert results[0] >= 1


@pytest.mark.django_db
def test_the_test_database_is_back_after_a_live_one() -> None:
    assert connection.settings_dict["NAME"].startswith("test_")
    assert not get_user_model().objects.filter(username="live-ada").exists()
