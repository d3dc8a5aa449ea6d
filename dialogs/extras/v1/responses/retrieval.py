"""``GET /v1/responses/ID``: a response once more, as its dialog holds it, and the end of one that is under way."""

from typing import Any

from dialogs.actions import access
from dialogs.errors import NotFound
from dialogs.extras.v1.ending import ended_by, fields_of
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.pieces import Ended, Refusal, Text
from dialogs.extras.v1.relay import UNDER_WAY, status_and_question
from dialogs.extras.v1.responses.answer import ResponseWriter
from dialogs.extras.v1.responses.stored import Place, Stored
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.runs import Run, abandon
from dialogs.extras.v1.telling import text_of
from dialogs.models import ApiKey, Turn
from dominds.llm.stream import CUT_SHORT

GOING_ON = ("queued", "in_progress")
WITHOUT_END = (Turn.Status.FAILED, Turn.Status.SUSPENDED, Turn.Status.SUPERSEDED)
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def response_of(key: ApiKey, response_id: str) -> dict[str, Any]:
    """Return a response without what its request brought along. Raises ``ApiError``."""
    stored = _find_stored(key, response_id)
    return _json(stored, _run_of(stored))


def cancel(key: ApiKey, response_id: str) -> dict[str, Any]:
    """Stop a response if it is under way, and return it. Raises ``ApiError`` or ``Refusal``."""
    stored = _find_stored(key, response_id)
    run = _run_of(stored)
    result = _json(stored, run)
    if result["status"] in GOING_ON:
        access.writable_dialog(run.dialog_id, key.owner)
        abandon(run)
        result["status"] = "cancelled"
    return result


def _find_stored(key: ApiKey, response_id: str) -> Stored:
    try:
        return Stored(key, Place.of_id(response_id))
    except NotFound:
        raise ApiError(404, "response_not_found", f"There is no response {response_id!r}.") from None


def _run_of(stored: Stored) -> Run:
    place, dialog = stored.place, stored.dialog
    return Run(
        dialog_id=dialog.pk,
        agent_id=dialog.agent_id,
        user_id=dialog.owner_id,
        seq=place.seq,
        queued=False,
        after_event=0,
        after_generation=place.after_generation,
    )


def _json(stored: Stored, run: Run) -> dict[str, Any]:
    # The status is read before the turns, so that an answer that has ended is told whole.
    status, question = status_and_question.one(run.dialog_id, run.seq)
    if not stored.ends_its_message:
        status, question = Turn.Status.COMPLETE, None
    writer = ResponseWriter({"instructions": stored.instructions or None}, Tools(), encrypts=False, run=run)
    last = stored.turns[-1].generation if stored.turns else None
    fields = fields_of(last)
    refusal = fields.pop("refusal", "")
    text = "\n\n".join(filter(None, map(text_of, stored.turns))).removesuffix(refusal)
    for piece in (Text(text), Refusal(refusal)):
        if piece.text:
            writer.piece(piece)
    if question:
        writer.piece(Text(f"\n\n{question}" if text else question))
    calls = tuple(Call(**call) for turn in stored.turns for call in stored.calls(turn))
    counts = {name: getattr(last, name, None) for name in COUNTS}
    is_cut = last is not None and last.finish_reason in CUT_SHORT
    usage = None if None in counts.values() else counts
    writer.end(Ended("length" if is_cut else "stop", calls, usage, {}, fields))
    result = {**writer.whole(), "created_at": int(stored.message.created_at.timestamp())}
    del result["background"]  # which is not stored
    if status in UNDER_WAY and not question:
        result |= {"status": GOING_ON[status == Turn.Status.ANSWERING], "usage": None}
    elif status == Turn.Status.STOPPED:
        result["status"] = "cancelled"
    elif status in WITHOUT_END:
        try:
            ended_by(run, status)
        except ApiError as error:
            result |= {"status": "failed", "error": {"code": error.code, "message": error.message}}
    return result
