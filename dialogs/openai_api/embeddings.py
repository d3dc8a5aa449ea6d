"""``/v1/embeddings``: passed on to the provider of an agent's model, and kept nowhere."""

from typing import Any

from dialogs.context.limits import model_of
from dialogs.errors import Conflict
from dialogs.models import Agent
from dialogs.openai_api.errors import ApiError
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.embeddings import embed
from dominds.llm.provider import ProviderError, RequestRefused

AWAY_SECONDS = 5


def embeddings_of(body: dict[str, Any]) -> dict[str, Any]:
    """Raises ``ApiError`` or ``Refusal``."""
    name = body.get("model")
    agent = Agent.objects.filter(pk=name, enabled=True).first() if isinstance(name, str) else None
    if agent is None:
        raise ApiError(404, "model_not_found", f"The model {name!r} does not exist.", param="model")
    try:
        model = model_of(agent)
    except UnknownModel as error:
        raise Conflict("agent_unusable", str(error)) from None
    if model.unusable:
        raise Conflict("agent_unusable", model.unusable)
    if not model.kind.embeds:
        raise ApiError(
            404,
            "embeddings_unsupported",
            f"The provider of {name!r} ({model.kind.name}) has no embeddings.",
            param="model",
        )
    try:
        return embed(model, body)
    except RequestRefused as error:
        raise ApiError(400, "refused_by_provider", str(error)) from None
    except ProviderError as error:
        raise ApiError(503, "provider_unavailable", str(error), retry_after_seconds=AWAY_SECONDS) from None
