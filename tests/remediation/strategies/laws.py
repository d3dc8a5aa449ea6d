"""What holds for every strategy on every context, and contexts to try it on."""

from typing import Any

from remediation.context import Units, total_tokens
from remediation.policies.conformance import rows
from remediation.policies.conformance import view as context
from remediation.policies.laws import is_paired
from remediation.strategies.outcome import StrategyOutcome, touchable
from tests.remediation.building import model, numbered, prose, system, user

__all__ = ["context", "rows"]


def check_laws(before: Units, outcome: StrategyOutcome) -> None:
    after = outcome.units
    untouchable = [u for i, u in enumerate(before) if i not in touchable(before)]
    assert [u for u in after if u in untouchable] == untouchable  # word for word, in their order
    assert total_tokens(after) <= total_tokens(before)
    assert len({u.id for u in after}) == len(after)
    assert all(is_paired(u) for u in after)
    known = {u.id: index for index, u in enumerate(before)}
    places = [known[u.id] for u in after if u.id in known]
    assert places == sorted(places)


def gone_priorities(before: Units, after: Units) -> set[int]:
    standing = {(u.id, u.text) for u in after}
    return {u.priority for u in before if (u.id, u.text) not in standing}


def talk(turns: int, length: int = 30, **fields: Any) -> Units:
    """A system prompt, ``turns`` messages of ``length`` words, and a newest question."""
    texts = [(user if i % 2 == 0 else model)(prose(f"subject{i}", length), **fields) for i in range(turns)]
    return numbered(system(), *texts, user("What now?"))
