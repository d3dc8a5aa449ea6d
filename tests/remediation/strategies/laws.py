"""What holds for every strategy on every context, and contexts to try it on."""

from hypothesis import strategies as st

from remediation.context import Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.strategies.outcome import StrategyOutcome, touchable
from tests.remediation.building import model, numbered, prose, system, tool, unit, user

rows = st.lists(
    st.tuples(
        st.sampled_from(["user", "model", "tool"]),
        st.sampled_from([UnitKind.MESSAGE, UnitKind.CODE, UnitKind.PLAN_REF, UnitKind.LOG, UnitKind.OTHER]),
        st.integers(1, 3),
        st.booleans(),
        st.integers(0, 120),
    ),
    max_size=16,
)


def context(made: list[tuple[str, UnitKind, int, bool, int]]) -> Units:
    """A system prompt and one unit per row. Kinds are drawn without regard to the text: misclassified on purpose."""
    units: list[Unit] = [system()]
    for index, (who, kind, priority, pinned, length) in enumerate(made):
        text = prose(f"topic{index % 3}", length)
        if who == "tool":
            units.append(tool(text, id=f"t{index}", priority=priority, pinned=pinned))
        else:
            role = UnitRole.USER if who == "user" else UnitRole.ASSISTANT
            units.append(unit(text, role, kind=kind, priority=priority, pinned=pinned))
    return numbered(*units)


def check_laws(before: Units, outcome: StrategyOutcome) -> None:
    after = outcome.units
    untouchable = [u for i, u in enumerate(before) if i not in touchable(before)]
    assert [u for u in after if u in untouchable] == untouchable  # word for word, in their order
    assert total_tokens(after) <= total_tokens(before)
    assert len({u.id for u in after}) == len(after)
    assert all(_paired(u) for u in after)
    known = {u.id: index for index, u in enumerate(before)}
    places = [known[u.id] for u in after if u.id in known]
    assert places == sorted(places)


def _paired(u: Unit) -> bool:
    """Every call has its result in the same unit, and every result its call."""
    calls = {call.id for message in u.messages for call in message.tool_calls}
    results = {message.tool_call_id for message in u.messages if message.tool_call_id}
    return calls == results


def gone_priorities(before: Units, after: Units) -> set[int]:
    standing = {(u.id, u.text) for u in after}
    return {u.priority for u in before if (u.id, u.text) not in standing}


def talk(turns: int, length: int = 30, **fields: object) -> Units:
    """A system prompt, ``turns`` messages of ``length`` words, and a newest question."""
    said = [
        (user if i % 2 == 0 else model)(prose(f"subject{i}", length), **fields)  # type: ignore[operator]
        for i in range(turns)
    ]
    return numbered(system(), *said, user("What now?"))
