"""Probes for machines: liveness, readiness, metrics."""

import asyncio
import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django_prometheus.exports import ExportToDjangoView
from health_check.views import HealthCheckView
from redis.asyncio import Redis

PROBE_TIMEOUT_SECONDS = 3


def livez(request: HttpRequest) -> HttpResponse:
    """Answer that this process lives. Asks nobody else, so that a lost database does not restart the web server."""
    return HttpResponse("ok\n", content_type="text/plain")


def redis_client() -> Redis:
    """Return a client that gives up soon: a probe must not hang with what it probes."""
    return Redis.from_url(
        settings.REDIS_URL, socket_timeout=PROBE_TIMEOUT_SECONDS, socket_connect_timeout=PROBE_TIMEOUT_SECONDS
    )


class Readiness(HealthCheckView):  # type: ignore[misc]  # health_check ships no types
    """Answer 200 when database and Redis answer, else 503, naming the part that does not."""

    http_method_names = ("get", "head")
    checks = (
        "health_check.checks.Database",
        ("health_check.contrib.redis.Redis", {"client_factory": redis_client}),
    )

    async def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        results = await asyncio.gather(*(check.get_result() for check in self.get_checks()))
        answers = {type(result.check).__name__.lower(): str(result.error or "ok") for result in results}
        ready = not any(result.error for result in results)
        return JsonResponse({"ready": ready, **answers}, status=200 if ready else 503)


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus: openly on a loopback-only server, else to who has the permission, or the holder of DOMINDS_METRICS_TOKEN."""
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
