"""The share of a limit that recalled text has. What comes back is driven in ``tests/flows/test_recall.py``."""

import pytest

from dialogs.context.room import limit_beside_recall


def test_the_trigger_leaves_recalled_text_its_share() -> None:
    assert limit_beside_recall(5_000) * 80 // 100 == pytest.approx(3_250, abs=1)
    assert limit_beside_recall(100_000) == 100_000
