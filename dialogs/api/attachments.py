"""Images of messages, for those who may read the dialog."""

from uuid import UUID

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from ninja import Router

from dialogs.actions import access
from dialogs.api.auth import PersonRequest
from dialogs.errors import NotFound
from dialogs.models import Dialog

CACHE_SECONDS = 3600

router = Router(tags=["messages"])


@router.get("/dialogs/{uuid:dialog_id}/images/{sha256}", response={200: None})
def get_image(request: PersonRequest, dialog_id: UUID, sha256: str) -> HttpResponse:
    """Return the bytes of an image, by the `sha256` that its turn gives in `attachments`."""
    return image_of(access.visible_dialog(dialog_id, request.auth), sha256)


def image_of(dialog: Dialog, sha256: str) -> HttpResponse:
    image = dialog.attachments.filter(sha256=sha256).first()
    if image is None:
        raise NotFound("There is no such image in this dialog.")
    return image_answer(image.name, image.media_type, bytes(image.content))


def image_answer(name: str, media_type: str, content: bytes) -> HttpResponse:
    """Send an image that a stranger made, with headers that keep browsers from taking it for anything else."""
    answer = HttpResponse(content, content_type=media_type)
    answer["Content-Disposition"] = content_disposition_header(False, name) or "inline"
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    answer["Cache-Control"] = f"private, max-age={CACHE_SECONDS}, immutable"
    return answer
