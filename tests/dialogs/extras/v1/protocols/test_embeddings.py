"""``/v1/embeddings`` with the official client: the provider's vectors, in costs and budgets."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from dialogs.context.spending import spent_this_month
from dialogs.models import ApiKey, Dialog, EmbeddingUse, PersonSettings


def test_embeddings_are_the_providers(gpt: OpenAI, person: User) -> None:
    result = gpt.embeddings.create(model="embedder", input="Hi", encoding_format="float")
    assert (result.data[0].embedding, result.usage.total_tokens) == ([0.25, 0.5], 2)
    with pytest.raises(openai.BadRequestError, match="The input is empty"):
        gpt.embeddings.create(model="embedder", input="")
    with pytest.raises(openai.NotFoundError) as unsupported:
        gpt.embeddings.create(model="plain", input="Hi")
    assert unsupported.value.code == "embeddings_unsupported"
    assert not Dialog.objects.filter(owner=person).exists()


def test_embeddings_count_in_costs_and_in_the_budget_of_a_month(gpt: OpenAI, person: User) -> None:
    PersonSettings.objects.create(user=person, monthly_budget_usd="0.004")
    for _ in range(2):  # two tokens each
        gpt.embeddings.create(model="embedder", input="Hi", encoding_format="float")
    use = EmbeddingUse.objects.get(person=person)
    assert (use.model, use.calls, use.prompt_tokens, use.cost_usd, use.unpriced) == (
        "embedder",
        2,
        4,
        Decimal("0.004"),
        0,
    )
    assert spent_this_month(person.pk) == Decimal("0.004")
    with pytest.raises(openai.ConflictError, match="this month, and the budget is"):
        gpt.with_options(max_retries=0).embeddings.create(model="embedder", input="Hi", encoding_format="float")


@pytest.mark.parametrize("whose", ["key", "month"])
def test_thirty_calls_at_once_do_not_pass_a_cent(gpt: OpenAI, person: User, whose: str) -> None:
    """Each costs a fifth of a cent, and a cent is reserved for each: what is under way counts."""
    if whose == "key":
        ApiKey.objects.filter(owner=person).update(budget_usd="0.01")
    else:
        PersonSettings.objects.create(user=person, monthly_budget_usd="0.01")
    client = gpt.with_options(max_retries=0)

    def call(_: int) -> bool:
        try:
            client.embeddings.create(model="embedder", input="Hi", encoding_format="float")
        except (openai.RateLimitError, openai.ConflictError):
            return False
        return True

    with ThreadPoolExecutor(30) as threads:
        passed = sum(threads.map(call, range(30)))
    assert 1 <= passed <= 5
    use = EmbeddingUse.objects.get(person=person)
    assert (use.calls, use.cost_usd) == (passed, passed * Decimal("0.002"))
