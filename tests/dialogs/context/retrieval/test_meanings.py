"""Vectors of what is out of sight are made while a dialog rests, and stay with it."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dialogs.actions import expiry
from dialogs.context.retrieval.meanings import Meanings
from dialogs.context.retrieval.text_index import TURNS, _Growing
from dialogs.models import Dialog, TurnVectors
from remediation.recall.search import search
from remediation.similarity import embeddings
from remediation.similarity.minilm import WIDTH, Array
from tests.dialogs.conftest import Script
from tests.dialogs.context.retrieval.holding import hold
from tests.dialogs.factories import make_dialog, send
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Model:
    """A model that knows of two subjects, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.first_asked_at = 0.0
        self.is_away = False

    def embed(self, texts: Sequence[str]) -> Array | None:
        self.first_asked_at = self.first_asked_at or time.monotonic()
        self.asked += texts
        rows = np.zeros((len(texts), WIDTH), np.float32)
        for place, text in enumerate(texts):
            rows[place, 0 if "doctor" in text or "physician" in text else 1] = 1
        return None if self.is_away else rows


def known() -> tuple[Dialog, Model, Meanings]:
    """A dialog whose index is made, and the vectors of a process."""
    dialog = hold(make_dialog(), "The doctor is away until Monday.", "A green kite flew.")
    with TURNS.of(dialog.pk):
        pass
    model = Model()
    return dialog, model, Meanings(model.embed)


def first_hit(dialog: Dialog, meanings: Meanings) -> int:
    question = "Where is our physician?"
    with TURNS.of(dialog.pk) as index:
        (hit, *_) = search(index, question, meaning=meanings.of(question))
        return hit.hit.passage.turn


def test_they_are_made_once_and_read_back_by_another_process() -> None:
    dialog, model, meanings = known()
    meanings.take_in(dialog.pk, [2, 1])
    assert first_hit(dialog, meanings) == 1
    assert [len(content) for content in TurnVectors.objects.values_list("content", flat=True)] == [WIDTH, WIDTH]
    asked = len(model.asked)
    TURNS._known.put(dialog.pk, _Growing(), 0)
    with TURNS.of(dialog.pk) as index:
        assert index.lacking_meaning() == [2, 1]
    meanings.take_in(dialog.pk, [2, 1])
    assert len(model.asked) == asked and first_hit(dialog, meanings) == 1


def test_they_are_made_when_the_dialog_rests() -> None:
    dialog, model, _ = known()
    meanings = Meanings(model.embed, rest_seconds=0)
    meanings.note(dialog.pk, [1, 2])
    assert not meanings.is_started, "nothing is noted in a process that makes none"
    meanings.start()
    meanings.note(dialog.pk, [1, 2])
    assert model.asked == []
    meanings.rest(dialog.pk)
    eventually(lambda: TurnVectors.objects.count() == 2)
    eventually(lambda: first_hit(dialog, meanings) == 1)


def test_a_dialog_that_goes_on_has_not_rested() -> None:
    dialog, model, _ = known()
    meanings = Meanings(model.embed, rest_seconds=0.3)
    meanings.start()
    for _ in range(2):
        time.sleep(0.1)
        rested_at = time.monotonic()
        meanings.note(dialog.pk, [1, 2])
        meanings.rest(dialog.pk)
    eventually(lambda: TurnVectors.objects.count() == 2)
    assert model.first_asked_at >= rested_at + 0.3


def test_no_more_are_made_once_the_dialog_goes_on() -> None:
    dialog, model, _ = known()

    def embed(texts: Sequence[str]) -> Array | None:
        meanings.note(dialog.pk, [1])  # as its next request does
        return model.embed(texts)

    meanings = Meanings(embed)
    meanings.is_started = True
    meanings.take_in(dialog.pk, [2, 1])
    assert TurnVectors.objects.get().seq == 2


def test_damaged_ones_are_made_anew() -> None:
    dialog, _, meanings = known()
    TurnVectors.objects.create(dialog=dialog, seq=1, content=b"damaged")
    meanings.take_in(dialog.pk, [1])
    assert len(TurnVectors.objects.get().content) == WIDTH and first_hit(dialog, meanings) == 1


def test_without_a_model_none_is_stored() -> None:
    dialog, model, meanings = known()
    model.is_away = True
    meanings.take_in(dialog.pk, [1])
    assert meanings.of("physician") is None and not TurnVectors.objects.exists()
    meanings.take_in(dialog.pk, [99])  # a turn that the index does not have


def test_a_dialog_that_was_removed_meanwhile_keeps_none() -> None:
    dialog, _, meanings = known()
    meanings.take_in(dialog.pk, [1])
    expiry.erase_now(dialog.pk)
    assert not TurnVectors.objects.exists()
    meanings.take_in(dialog.pk, [1, 2])
    assert not TurnVectors.objects.exists()


@pytest.mark.parametrize(("relevance", "recalled"), [("minilm", True), ("wording", False)])
def test_who_wants_words_alone_gets_no_hit_by_meaning(
    script: Script, tmp_path: Path, relevance: str, recalled: bool
) -> None:
    (tmp_path / "minds" / "context.yaml").write_text(f"context_config: {{relevance: {relevance}}}")
    script({"match": "news", "text": "Nothing so far."}, {"text": "Noted."})
    dialog = make_dialog()
    for text in ("The doctor is away until Monday.", "A green kite flew.", "It rained.", "The tram was late."):
        send(dialog, text)  # far enough from what is asked, whose neighbours come along
    about = {"policy": "breaking", "reason": "test", "est_before": 2, "est_after": 1, "removed": []}
    dialog.remediations.create(round_number=1, base_position=8, view=[], **about)
    send(dialog, "Any news?")
    Meanings(embeddings.meanings).take_in(dialog.pk, [1])
    send(dialog, "Where is our physician?")
    assert (1 in dialog.generations.latest("pk").recalled) is recalled
