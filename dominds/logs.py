"""One log line per event, as JSON for machines or plain text for the console, with secrets masked in both."""

import logging
import re
from typing import Any

import structlog

from dominds.redaction import redact

# Terminal escapes and other control characters, which could forge lines or colours. Newline and tab are allowed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.UnicodeDecoder(),
]


class SafeFormatter(structlog.stdlib.ProcessorFormatter):
    """A formatter that masks secrets in the finished line, so that message, arguments and traceback are all covered."""

    def format(self, record: logging.LogRecord) -> str:
        line = redact(super().format(record))
        return line if line.isprintable() else _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", line)


def json_formatter() -> SafeFormatter:
    """Return the formatter for production: one JSON object per line."""
    # Local variables are left out: they hold texts of dialogs, and keys that cannot be recognised.
    frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return _formatter(structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer())


def console_formatter() -> SafeFormatter:
    """Return the formatter for a terminal: one short line, with tracebacks below it."""
    return _formatter(
        structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback)
    )


def _formatter(*renderers: Any) -> SafeFormatter:
    return SafeFormatter(
        foreign_pre_chain=[*SHARED_PROCESSORS, structlog.stdlib.ExtraAdder()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    )


def configure_structlog() -> None:
    """Send structlog's events through the standard library's handlers."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def logging_config(style: str, level: str) -> dict[str, Any]:
    """Return the value of ``LOGGING`` for the style ``json`` or ``console``. Everything goes to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": json_formatter}, "console": {"()": console_formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": style}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # django-structlog logs each request, on a terminal only failures. Django's own logger would repeat them.
            "django_structlog.middlewares": {"level": "WARNING" if style == "console" else level},
            "django.request": {"level": "ERROR"},
            # These log a line for each wake-up.
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
            "daphne": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
        },
    }
