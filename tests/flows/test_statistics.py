"""Counters of input, output and total: sums of what was reported, beside an estimate that is named one."""

import pytest
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions.messages import post_message
from dialogs.models import Dialog
from tests.dialogs.factories import UserFactory, make_dialog
from tests.dominds.llm.studio_server import StudioServer
from tests.doubles.brains import Reply, Scripted
from tests.flows.conftest import Minds, Serve, dialog_with, say

pytestmark = pytest.mark.django_db(transaction=True)


def asked_for(dialog: Dialog) -> Client:
    return Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})


def test_reported_tokens_are_summed_and_missing_ones_are_counted_apart(serve: Serve) -> None:
    server = serve(context_length=128_000, traits={"usage": "sums"})
    server.brain = Scripted(Reply("a", usage=(100, 10)), Reply("b", is_reported=False), Reply("c", usage=(300, 20)))
    dialog = dialog_with(server)
    for text in ("one", "two", "three"):
        say(dialog, text)
    result = asked_for(dialog).get(f"/api/dialogs/{dialog.pk}/statistics").json()
    sums = {
        "generations": 3,
        "unreported": 1,
        "input_tokens": 400,
        "output_tokens": 30,
        "total_tokens": 430,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "cost_usd": None,
        "unpriced": 3,
    }
    assert result == {"reported": sums, "by_purpose": {"reply": sums}, "next_request": None}


def test_nothing_reported_is_unknown_and_not_zero(serve: Serve) -> None:
    server = serve()
    server.brain = lambda _: Reply("a", is_reported=False)
    dialog = dialog_with(server)
    say(dialog, "one")
    reported = asked_for(dialog).get(f"/api/dialogs/{dialog.pk}/statistics").json()["reported"]
    assert (reported["input_tokens"], reported["total_tokens"], reported["unreported"]) == (None, None, 1)


def test_the_next_request_is_an_estimate_with_its_source_and_limit(serve: Serve) -> None:
    server = serve(window=8_000, api_type="lmstudio")
    dialog = dialog_with(server)
    say(dialog, "hello")
    following = asked_for(dialog).get(f"/api/dialogs/{dialog.pk}/statistics").json()["next_request"]
    assert (following["limit"], following["est_output_room"], following["est_source"]) == (8_000, 1_000, "calibrated")
    assert following["est_total_tokens"] == following["est_input_tokens"] + 1_000
    say(dialog, "again")
    assert server.requests[-1].usage["prompt_tokens"] == pytest.approx(following["est_input_tokens"], rel=0.05)


def test_before_the_first_report_the_servers_own_tokenizer_counts(minds: Minds) -> None:
    text = "Plain words, which most vocabularies hold as one token each. " * 40

    def estimate(characters_per_token: float) -> int:
        studio = StudioServer("qwen3-14b", 8_000, tokenize=lambda sample: round(len(sample) / characters_per_token))
        with studio.running():
            models = {studio.model: {"name": "Double"}}
            entry = {"name": "Double", "apiType": "lmstudio", "baseUrl": studio.url, "models": models}
            minds.providers["double"] = entry
            minds.write()
            dialog = make_dialog(provider="double", model=studio.model)
            post_message(dialog.pk, text)
            following = asked_for(dialog).get(f"/api/dialogs/{dialog.pk}/statistics").json()["next_request"]
        assert following["est_source"] == "calibrated"
        return int(following["est_input_tokens"])

    assert estimate(3.0) == pytest.approx(2 * estimate(6.0), rel=0.01)


def test_strangers_are_told_nothing(serve: Serve) -> None:
    dialog = dialog_with(serve())
    stranger = Client(headers={"Authorization": f"Bearer {create_key(UserFactory.create())}"})
    assert stranger.get(f"/api/dialogs/{dialog.pk}/statistics").status_code == 404
