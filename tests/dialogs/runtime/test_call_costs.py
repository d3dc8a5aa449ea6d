"""What a call costs, by the hour at which it began."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from dialogs.models import Dialog, Generation
from dialogs.runtime.attempts import set_usage
from dialogs.store.change import Change
from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.usage import Usage

FLASH = load_catalog(Path("/nonexistent")).model("deepseek", "deepseek-flash")


@pytest.mark.parametrize(("began", "cost"), [((5, 59), "0.15"), ((6, 0), "0.3"), ((9, 59), "0.3"), ((10, 0), "0.15")])
def test_a_call_costs_what_held_when_it_began(began: tuple[int, int], cost: str) -> None:
    change = Change(Dialog(cost_usd=Decimal(1)), durable=False)
    generation = Generation(outcome=Generation.Outcome.KEPT, started_at=datetime(2026, 11, 23, *began, tzinfo=UTC))
    set_usage(change, generation, Usage(1_000_000, 0), FLASH.prices)
    assert generation.cost_usd == Decimal(cost)
    assert change.dialog.cost_usd == Decimal(1) + Decimal(cost)
