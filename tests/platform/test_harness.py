"""The tests' own servers: real PostgreSQL and Redis, and a stack's parts that can be broken one by one."""

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from redis import Redis


@pytest.mark.django_db
def test_rows_are_kept_by_a_real_postgresql() -> None:
    get_user_model().objects.create_user("ada")
    assert connection.vendor == "postgresql"
    assert get_user_model().objects.count() == 1


def test_the_runs_redis_is_the_one_that_settings_name(redis_client: Redis, settings: object) -> None:
    redis_client.set("seen", "yes")
    with Redis.from_url(settings.REDIS_URL) as named:
        assert named.get("seen") == b"yes"
