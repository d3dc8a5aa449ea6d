"""Addresses at which there is nothing, as clients of other servers ask for them."""

import pytest
from django.test import Client


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/v1/v1/messages", "/v1/completions"])
def test_an_address_that_is_not_there_tells_the_base_url(client: Client, path: str) -> None:
    """In JSON: a page would be all that a program's user sees."""
    answer = client.post(path, "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert "with /v1 behind it" in answer.json()["error"]["message"]
