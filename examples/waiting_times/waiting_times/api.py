from uuid import UUID

from ninja import Router, Schema

from dialogs.api.auth import PersonRequest
from waiting_times.waiting import newest_closed

router = Router(tags=["questions"])


class Waited(Schema):
    question: UUID
    minutes: float


@router.get("/waiting-times", response=list[Waited])
def waiting_times(request: PersonRequest) -> list[dict[str, object]]:
    """How long the newest questions waited for a person."""
    return [{"question": question.pk, "minutes": minutes} for question, minutes in newest_closed(request.auth)]
