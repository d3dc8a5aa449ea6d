"""Images and files in messages: how they are written, how many tokens they take, and models that cannot see them."""

import base64

from dominds.llm.catalog.model import ModelInfo
from dominds.llm.messages import ImagePart, Part, Request
from dominds.llm.provider import RequestRefused


def base64_of(given: Part) -> str:
    return base64.b64encode(given.content).decode()


def data_url(given: Part) -> str:
    return f"data:{given.media_type};base64,{base64_of(given)}"


def unseen_reason(request: Request, model: ModelInfo) -> str:
    """Why the model cannot take a request's parts, for people; empty where it can."""
    wanted = {modality_of(given) for message in request.messages for given in message.parts}
    blind = sorted(wanted - set(model.modalities))
    if not blind:
        return ""
    return (
        f"{model.provider_id}/{model.model_id} takes no {' and no '.join(blind)}. "
        "Choose a model that does, or leave it out; where the model does, add it to its modalities in llm.yaml."
    )


def refuse_unseen(request: Request, model: ModelInfo) -> None:
    """Raises ``RequestRefused`` before anything is sent."""
    if reason := unseen_reason(request, model):
        raise RequestRefused(reason)


def modality_of(given: Part) -> str:
    return "image" if isinstance(given, ImagePart) else "file"
