"""``/v1/embeddings``, passed on to the provider of an agent's model. Only the cost is stored."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import F
from django.utils import timezone

from dialogs.context.limits import model_of
from dialogs.context.spending import spent_this_month
from dialogs.errors import Conflict
from dialogs.extras.v1.errors import ApiError
from dialogs.models import Agent, ApiKey, EmbeddingUse, PersonSettings
from dialogs.store.charging import check_budget_of, quarter_of
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.embeddings import embed
from dominds.llm.models.prices import cost_of
from dominds.llm.provider import ProviderError, RequestRefused
from dominds.llm.usage import Usage, usage_from
from remediation.spending import Spending

AWAY_SECONDS = 5


def embeddings_of(body: dict[str, Any], key: ApiKey) -> dict[str, Any]:
    """Return the provider's answer. Raises ``ApiError`` or ``Refusal``."""
    check_budget_of(key)
    person, name = key.owner, body.get("model")
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
    budget = PersonSettings.objects.filter(user=person).values_list("monthly_budget_usd", flat=True).first()
    spending = Spending(month=spent_this_month(person.pk) if budget is not None else Decimal(0), month_budget=budget)
    if spending.exceeded:
        raise Conflict("budget_exceeded", spending.reason)
    began = timezone.now()
    try:
        answer = embed(model, body)
    except RequestRefused as error:
        raise ApiError(400, "refused_by_provider", str(error)) from None
    except ProviderError as error:
        raise ApiError(
            503, "provider_unavailable", str(error), retry_after_seconds=AWAY_SECONDS, repeatable=True
        ) from None
    _note(key, agent, model, answer.get("usage"), began)
    return answer


def _note(key: ApiKey, agent: Agent, model: ModelInfo, reported: Any, began: datetime) -> None:
    counts = reported if isinstance(reported, dict) else {}
    usage = usage_from(counts.get("prompt_tokens"), 0)
    tokens, cost = (usage.prompt_tokens, cost_of(usage, model.prices, began)) if isinstance(usage, Usage) else (0, None)
    named: dict[str, Any] = {
        "person": key.owner,
        "key": key,
        "began_at": quarter_of(began),
        "agent": agent.pk,
        "provider": model.provider_id,
        "model": model.model_id,
    }
    row, _ = EmbeddingUse.objects.get_or_create(**named)
    EmbeddingUse.objects.filter(pk=row.pk).update(
        calls=F("calls") + 1,
        prompt_tokens=F("prompt_tokens") + tokens,
        cost_usd=F("cost_usd") + (cost or Decimal(0)),
        unpriced=F("unpriced") + int(cost is None),
    )
