"""Spans that only remember. OpenTelemetry's own SDK is an extra that tests do without."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import Span, SpanContext, Status, TraceFlags, Tracer, TracerProvider

# The package lists what was released with version 1.43. These two were added to the conventions since, the second in
# place of ``gen_ai.usage.cache_creation.input_tokens``.
NEWER = {"gen_ai.conversation.compacted", "gen_ai.usage.cache_write.input_tokens"}
NAMES = NEWER | {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
OPERATIONS = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}


class Recorded(Span):
    def __init__(self, name: str, attributes: Mapping[str, Any], number: int, parent: "Recorded | None") -> None:
        self.name, self.attributes, self.parent = name, dict(attributes), parent
        self.status: Status | None = None
        self.begins: int | None = None
        self.ends: int | None = None
        self.ended = False
        trace_id = parent.get_span_context().trace_id if parent else number
        self._context = SpanContext(trace_id, number, False, TraceFlags(TraceFlags.SAMPLED))

    def end(self, end_time: int | None = None) -> None:
        self.ended, self.ends = True, end_time

    def get_span_context(self) -> SpanContext:
        return self._context

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.attributes |= attributes

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status

    def is_recording(self) -> bool:
        return True

    def add_event(self, *_: Any, **__: Any) -> None: ...
    def record_exception(self, *_: Any, **__: Any) -> None: ...
    def update_name(self, name: str) -> None: ...


class Recorder(TracerProvider, Tracer):
    def __init__(self) -> None:
        self.spans: list[Recorded] = []
        self._numbers = count(1)

    def named(self, name: str) -> list[Recorded]:
        return [span for span in self.spans if span.name == name]

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return self

    def start_span(
        self, name: str, context: Any = None, *_: Any, attributes: Any = None, start_time: int | None = None, **__: Any
    ) -> Recorded:
        above = trace.get_current_span(context).get_span_context().span_id
        parent = next((span for span in self.spans if span.get_span_context().span_id == above), None)
        self.spans.append(Recorded(name, attributes or {}, next(self._numbers), parent))
        self.spans[-1].begins = start_time
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self, name: str, *given: Any, **options: Any
    ) -> Iterator[Recorded]:
        span = self.start_span(name, options["context"], attributes=options["attributes"])
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield span


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(trace, "get_tracer", recorder.get_tracer)
    return recorder
