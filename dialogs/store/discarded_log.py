"""The log of discarded outputs, which are stored nowhere else. It holds 7 days, or nothing if an
operator wants that."""

import contextlib
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import structlog
from django.conf import settings

from dialogs.models import Generation, SiteSettings
from dominds.llm.messages import ToolCall

log = structlog.get_logger(__name__)

KEEP_DAYS = 7


def log_output(generation: Generation, reason: str, text: str, calls: Iterable[ToolCall]) -> None:
    log.warning("output_discarded", dialog_id=str(generation.dialog_id), generation=generation.pk, reason=reason)
    if not SiteSettings.current().keep_discarded_outputs:
        return
    folder = folder_of()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = {
        "at": datetime.now(UTC).isoformat(),
        "dialog": str(generation.dialog_id),
        "generation": generation.pk,
        "attempt": generation.attempt,
        "reason": reason,
        "text": text,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
    }
    with contextlib.suppress(OSError), (folder / f"{datetime.now(UTC):%Y-%m-%d}.jsonl").open("ab") as lines:
        lines.write(orjson.dumps(entry) + b"\n")


def folder_of() -> Path:
    return Path(settings.DATA_DIR) / "discarded"


def delete_old(now: float | None = None) -> int:
    """Delete entries older than 7 days for the sweeper, and return the number of files."""
    oldest = (time.time() if now is None else now) - KEEP_DAYS * 86_400
    old = [path for path in folder_of().glob("*.jsonl") if path.stat().st_mtime < oldest]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)
