"""Probes: liveness, readiness and metrics."""

import asyncio
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from django_prometheus.exports import ExportToDjangoView
from redis import Redis, RedisError

PROBE_TIMEOUT_SECONDS = 5  # a probe must not hang if the database or Redis hangs
# Separate pools: otherwise questions that hang at one part would hold up those to the other, which would then seem to
# hang as well.
_database_threads, _redis_threads = ThreadPoolExecutor(4), ThreadPoolExecutor(4)


def livez(request: HttpRequest) -> HttpResponse:
    """Answer that this process is alive. Other parts are not checked: a lost database must not restart this process."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if database and Redis answer, or 503 with the name of the part that does not."""
    parts = {"database": (_ask_database, _database_threads), "redis": (_ask_redis, _redis_threads)}
    answers = dict(zip(parts, await asyncio.gather(*(_answer_of(*part) for part in parts.values())), strict=True))
    ready = set(answers.values()) == {"ok"}
    return JsonResponse({"ready": ready, **answers}, status=200 if ready else 503)


async def _answer_of(ask: Callable[[], None], threads: ThreadPoolExecutor) -> str:
    """Return "ok", or the reason why a part is unavailable, without the addresses that errors contain."""
    try:
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(threads, ask), PROBE_TIMEOUT_SECONDS)
    except TimeoutError:
        return f"Unavailable: no answer within {PROBE_TIMEOUT_SECONDS} seconds"
    except (DatabaseError, RedisError) as error:
        return f"Unavailable: {type(error).__name__}"
    return "ok"


def _ask_database() -> None:
    with connection.temporary_connection() as cursor:
        cursor.execute("SELECT 1")


def _ask_redis() -> None:
    with Redis.from_url(settings.REDIS_URL, socket_timeout=3, socket_connect_timeout=3) as client:
        client.ping()


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with metrics: to everyone on a loopback installation, else by permission or DOMINDS_METRICS_TOKEN."""
    if not (settings.LOOPBACK_ONLY or _may_read_metrics(request)):
        return HttpResponse("Not found\n", status=404, content_type="text/plain")
    answer: HttpResponse = ExportToDjangoView(request)
    return answer


def _may_read_metrics(request: HttpRequest) -> bool:
    expected = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if expected and hmac.compare_digest(given.encode(), expected.encode()):
        return True
    return bool(request.user.is_authenticated and request.user.has_perm("dialogs.view_metrics"))
