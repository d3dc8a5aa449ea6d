"""``/v1/embeddings``, passed on to the provider of an agent's model. Only the cost is stored."""

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dialogs.context.limits import model_of
from dialogs.context.spending import month_under_lock
from dialogs.errors import BudgetSpent, Conflict
from dialogs.extras.v1.errors import ApiError, refused_by_provider
from dialogs.models import Agent, ApiKey, EmbeddingUse
from dialogs.store.charging import LEAST_RESERVED_USD, UNDER_WAY_SECONDS, check_budget_of, quarter_of
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.embeddings import embed
from dominds.llm.json_text import dump
from dominds.llm.models.prices import PER, cost_of, price_of
from dominds.llm.provider import (
    AccessDenied,
    AnswerTooLarge,
    AuthFailed,
    ContextOverflow,
    ProviderError,
    RequestRefused,
    TooLargeForRate,
)
from dominds.llm.usage import Usage, usage_from

AWAY_SECONDS = 5
LASTING: tuple[tuple[type[ProviderError], int, str], ...] = (  # errors that the same request would meet again
    (ContextOverflow, 400, "context_length_exceeded"),
    (TooLargeForRate, 429, "rate_limit_exceeded"),
    (AnswerTooLarge, 500, "generation_failed"),
    (AccessDenied, 403, "provider_permission"),
    (AuthFailed, 401, "provider_authentication"),
)
SMALLEST = Decimal("1e-10")  # USD, as the column has it


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
    began = timezone.now()
    use: dict[str, Any] = {
        "person": person,
        "key": key,
        "began_at": quarter_of(began),
        "agent": agent.pk,
        "provider": model.provider_id,
        "model": model.model_id,
    }
    reserved = _reserve(use, _most_cost(model, body, began))
    try:
        answer = embed(model, body)
    except BaseException as error:
        _settle(use, -reserved)
        if isinstance(error, ProviderError):
            raise _problem(error) from None
        raise
    _note(use, model, answer.get("usage"), began, reserved)
    return answer


def _problem(error: ProviderError) -> ApiError:
    if isinstance(error, RequestRefused):
        return refused_by_provider(str(error), error.status)
    for kind, status, code in LASTING:
        if isinstance(error, kind):
            return ApiError(status, code, str(error), param="input" if kind is ContextOverflow else None)
    wait = math.ceil(error.retry_after_seconds or AWAY_SECONDS)
    return ApiError(503, "provider_unavailable", str(error), retry_after_seconds=wait, repeatable=True)


def _most_cost(model: ModelInfo, body: dict[str, Any], at: datetime) -> Decimal:
    """Return what a call may cost, zero where no price is known. A token has a byte at least."""
    price = price_of(0, model.prices, at)
    if price is None:
        return Decimal(0)
    return max(LEAST_RESERVED_USD, (len(dump(body.get("input"))) * price.input / PER).quantize(SMALLEST))


def _reserve(use: dict[str, Any], usd: Decimal) -> Decimal:
    """Charge a budget before the call, so that calls at the same time see each other, and return what was charged.
    Raises ``Refusal`` where a budget is used up."""
    key, person = use["key"], use["person"]
    with transaction.atomic():
        spending = month_under_lock(person.pk)
        check_budget_of(ApiKey.objects.select_for_update().get(pk=key.pk))
        if spending.exceeded:
            raise Conflict("budget_exceeded", spending.reason)
        if spending.must_wait:
            raise BudgetSpent(spending.reason, UNDER_WAY_SECONDS)
        if not usd or (spending.month_budget is None and key.budget_usd is None):
            return Decimal(0)
        EmbeddingUse.objects.get_or_create(**use)
        _settle(use, usd)
    return usd


def _settle(use: dict[str, Any], usd: Decimal, **counts: Any) -> None:
    EmbeddingUse.objects.filter(**use).update(cost_usd=F("cost_usd") + usd, **counts)


def _note(use: dict[str, Any], model: ModelInfo, reported: Any, began: datetime, reserved: Decimal) -> None:
    counts = reported if isinstance(reported, dict) else {}
    usage = usage_from(counts.get("prompt_tokens"), 0)
    tokens, cost = (usage.prompt_tokens, cost_of(usage, model.prices, began)) if isinstance(usage, Usage) else (0, None)
    EmbeddingUse.objects.get_or_create(**use)
    _settle(
        use,
        (cost or Decimal(0)) - reserved,
        calls=F("calls") + 1,
        prompt_tokens=F("prompt_tokens") + tokens,
        unpriced=F("unpriced") + int(cost is None),
    )
