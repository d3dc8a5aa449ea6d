"""OpenTelemetry, if OTEL_EXPORTER_OTLP_ENDPOINT names a collector and the packages of the ``telemetry`` extra are
installed. Otherwise every span is OpenTelemetry's no-op, which costs microseconds.

Spans hold names, numbers and kinds of error, but never a prompt, an answer or an error's text.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import structlog
from opentelemetry import trace
from opentelemetry.trace import NoOpTracer, ProxyTracer, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

log = structlog.get_logger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PACKAGES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
INSTALL = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
TRACEPARENT = "traceparent"  # the header of W3C's Trace Context that names a parent span in another process
_across = TraceContextTextMapPropagator()

Value = str | int | float | bool | list[str]


def start(service: str) -> bool:
    """Begin to send this process's spans, and return whether they are sent.

    The service's name is OTEL_SERVICE_NAME, or else ``service``.
    """
    if is_on():
        return True
    if not any(os.environ.get(name) for name in ENDPOINTS):
        log.info("telemetry_off", reason=f"{ENDPOINTS[0]} is not set")
        return False
    if missing := [name for name in PACKAGES if not _is_installed(name)]:
        log.warning("telemetry_off", reason=f"{', '.join(missing)} cannot be imported", way_out=INSTALL)
        return False
    _export(service)
    log.info("telemetry_on", service=os.environ.get("OTEL_SERVICE_NAME") or service)
    return True


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _export(service: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def is_on() -> bool:
    """Check whether spans are sent, so that it is worth reading rows for them."""
    return not isinstance(trace.get_tracer("dominds"), NoOpTracer | ProxyTracer)


@contextmanager
def span(name: str, attributes: Mapping[str, Value], *, calls_out: bool = False, parent: str = "") -> Iterator[Span]:
    """Put a span around the block. Of an exception only the type is recorded, since messages may quote people.

    ``parent`` is the ``traceparent`` of a span in another process. By default the parent is the present span.
    """
    kind = SpanKind.CLIENT if calls_out else SpanKind.INTERNAL
    with trace.get_tracer("dominds").start_as_current_span(
        name,
        context=_across.extract({TRACEPARENT: parent}) if parent else None,
        kind=kind,
        attributes=dict(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            note_failure(current, type(error).__name__)
            raise


def record(name: str, attributes: Mapping[str, Value], began: datetime, ended: datetime) -> None:
    """Record a span of something that has ended already, such as a wait that took place in no process."""
    tracer = trace.get_tracer("dominds")
    tracer.start_span(name, attributes=dict(attributes), start_time=_nanoseconds(began)).end(_nanoseconds(ended))


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000_000)


def traceparent() -> str:
    """Return the present span as W3C's ``traceparent``, or an empty text if there is none."""
    carrier: dict[str, str] = {}
    _across.inject(carrier)
    return carrier.get(TRACEPARENT, "")


def note_failure(current: Span, kind: str) -> None:
    current.set_attribute("error.type", kind)
    current.set_status(Status(StatusCode.ERROR))
