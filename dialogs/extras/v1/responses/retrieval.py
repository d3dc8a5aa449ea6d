"""``GET /v1/responses/ID``: a response once more, as its dialog holds it."""

from typing import Any

from dialogs.errors import NotFound
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.pieces import Text
from dialogs.extras.v1.relay import UNDER_WAY
from dialogs.extras.v1.responses.answer import ResponseWriter
from dialogs.extras.v1.responses.stored import Place, Stored
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.telling import text_of
from dialogs.models import ApiKey, Turn
from dominds.llm.stream import CUT_SHORT

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def response_of(key: ApiKey, response_id: str) -> dict[str, Any]:
    """Return a response without what its request brought along. Raises ``ApiError``."""
    try:
        stored = Stored(key, Place.of_id(response_id))
    except NotFound:
        raise ApiError(404, "response_not_found", f"There is no response {response_id!r}.") from None
    place, dialog = stored.place, stored.dialog
    run = Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=dialog.owner_id,
        seq=place.seq,
        queued=False,
        after_event=0,
        after_generation=place.after_generation,
    )
    writer = ResponseWriter({"instructions": stored.instructions or None}, Tools(), encrypts=False, run=run)
    if text := "\n\n".join(filter(None, map(text_of, stored.turns))):
        writer.piece(Text(text))
    calls = tuple(Call(**call) for turn in stored.turns for call in stored.calls(turn))
    last = stored.turns[-1].generation if stored.turns else None
    counts = {name: getattr(last, name, None) for name in COUNTS}
    is_cut = last is not None and last.finish_reason in CUT_SHORT
    writer.end("length" if is_cut else "stop", calls, None if None in counts.values() else counts)
    result = {**writer.whole(), "created_at": int(stored.message.created_at.timestamp())}
    if stored.is_head and stored.message.status in UNDER_WAY:
        result["status"] = "in_progress"
    elif stored.is_head and stored.message.status == Turn.Status.FAILED:
        result |= {"status": "failed", "error": {"code": "generation_failed", "message": dialog.failure}}
    return result
