"""Logs and traces of a worker: ids on every line, and spans named as OpenTelemetry's GenAI conventions say."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from opentelemetry import trace
from opentelemetry.trace import Span
from structlog.contextvars import bound_contextvars

from dialogs.context.retrieval.recall import Recall
from dialogs.context.view import WHOLE, Call
from dialogs.extension import installed_extensions
from dialogs.models import Dialog, Generation
from dialogs.runtime.stream_reply import Reply
from dialogs.store.lease import Lease
from dominds import telemetry
from dominds.llm.usage import Usage
from remediation.models import RemediationRun

log = structlog.get_logger(__name__)


@contextmanager
def trace_run(lease: Lease) -> Iterator[None]:
    """Trace a worker's run of one dialog. An extension may name the parent of its span."""
    dialog_id = str(lease.dialog_id)
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": dialog_id,
        "dominds.epoch": lease.epoch,
    }
    name, parent = "invoke_agent", ""
    if telemetry.is_on() and (dialog := Dialog.objects.select_related("agent").filter(pk=dialog_id).first()):
        name = f"invoke_agent {dialog.agent_id}"
        attributes |= {"gen_ai.agent.id": dialog.agent_id, "gen_ai.agent.name": dialog.agent.name}
        parents = (extension.traced_below(dialog) for extension in installed_extensions())
        parent = next(filter(None, parents), "")
    with bound_contextvars(dialog_id=dialog_id, epoch=lease.epoch), telemetry.span(name, attributes, parent=parent):
        yield


@contextmanager
def running_tool(dialog: Dialog, call: Call) -> Iterator[Span]:
    """Trace one tool call. If it has to wait for a person or a result, its span ends when the waiting begins."""
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.conversation.id": str(dialog.pk),
    }
    with telemetry.span(f"execute_tool {call.name}", attributes) as span:
        yield span


def note_failed_tool() -> None:
    telemetry.note_failure(trace.get_current_span(), "tool_failed")


def trace_recall(dialog: Dialog, look: Callable[[], Recall]) -> Recall:
    """Trace the search for passages that bear on the newest message, in the turns that have left the context."""
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "turns",
        "gen_ai.conversation.id": str(dialog.pk),
    }
    with telemetry.span("retrieval turns", attributes) as span:
        recalled = look()
        span.set_attribute("dominds.recall.turns", len(recalled.turns))
        span.set_attribute("dominds.recall.est_tokens", recalled.est_tokens)
    return recalled


@contextmanager
def trace_generation(generation: Generation) -> Iterator[Callable[[Reply], Reply]]:
    """Trace one model call. Pass its reply to the function that this yields."""
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": generation.provider,
        "gen_ai.request.model": generation.model,
        "gen_ai.conversation.id": str(generation.dialog_id),
        "dominds.generation.id": generation.pk,
        "dominds.generation.purpose": generation.purpose,
        "dominds.generation.attempt": generation.attempt,
    }
    if _is_compacted(generation):
        attributes["gen_ai.conversation.compacted"] = True  # the conventions ask to leave it out where it is false
    with (
        bound_contextvars(generation_id=generation.pk),
        telemetry.span(f"chat {generation.model}", attributes, calls_out=True) as span,
    ):

        def tell(reply: Reply) -> Reply:
            _describe(span, reply)
            used = reply.usage if isinstance(reply.usage, Usage) else None
            log.info(
                "model_call_ended",
                finish_reason=reply.finish_reason,
                prompt_tokens=used and used.prompt_tokens,
                completion_tokens=used and used.completion_tokens,
                first_token_ms=reply.first_token_ms,
                error=reply.error.kind if reply.error else "",
            )
            return reply

        yield tell


@contextmanager
def trace_rewrite(
    dialog: Dialog, policy: str, est_before: int, limit: int | None
) -> Iterator[Callable[[RemediationRun], None]]:
    """Trace one rewrite, with spans for its side calls. Pass its row to the function that this yields."""
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.conversation.id": str(dialog.pk),
        "dominds.rewrite.policy": policy,
        "dominds.rewrite.est_tokens.before": est_before,
    }
    if limit is not None:
        attributes["dominds.rewrite.limit"] = limit
    with telemetry.span("compact_context", attributes) as span:

        def tell(run: RemediationRun) -> None:
            if run.rejected:
                telemetry.note_failure(span, "rewrite_refused")
                return
            span.set_attribute("gen_ai.conversation.compacted", True)
            span.set_attribute("dominds.rewrite.est_tokens.saved", run.est_before - run.est_after)
            span.set_attribute("dominds.rewrite.strategies", [step["strategy"] for step in run.steps])

        yield tell


def _is_compacted(generation: Generation) -> bool:
    """Check whether the request began with a re-entry package, or with the result of a rewrite, in place of turns."""
    return bool(generation.base) and generation.base != WHOLE


def _describe(span: Span, reply: Reply) -> None:
    if reply.finish_reason:
        span.set_attribute("gen_ai.response.finish_reasons", [reply.finish_reason])
    if isinstance(reply.usage, Usage):
        span.set_attribute("gen_ai.usage.input_tokens", reply.usage.prompt_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", reply.usage.completion_tokens)
        for name, count in (
            ("cache_read.input_tokens", reply.usage.cache_read_tokens),
            ("cache_write.input_tokens", reply.usage.written_tokens),
            ("reasoning.output_tokens", reply.usage.reasoning_tokens),
        ):
            if count is not None:
                span.set_attribute(f"gen_ai.usage.{name}", count)
    if reply.first_token_ms is not None:
        span.set_attribute("gen_ai.response.time_to_first_chunk", reply.first_token_ms / 1000)
    if reply.error is not None:
        telemetry.note_failure(span, reply.error.kind)
    elif reply.was_left:
        span.set_attribute("dominds.ended", reply.ending.value)
