"""What people and agents said in units: their texts with speaker and turn, for accounts, the ledger and coverage."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dominds.llm.messages import Role
from remediation.context import Unit, UnitKind, UnitRole
from remediation.strategies.outcome import is_ledger
from remediation.strategies.stand_ins import own_text
from remediation.text.marks import BY_RULE, CUT, OMITTED, ROLES, SPEAKERS
from remediation.text.statements import QUOTED, Said, Statement, statements_of
from remediation.text.supersession import mark_superseded

ENTRY = re.compile(r"(\d{1,9})(?:-\d{1,9})? (person|agent|instructions): (.*)", re.S)


class Talk(NamedTuple):
    """What was said in some units: each text with its unit, and the statements of all texts.

    A rewrite takes away the first ``lost`` texts. A statement's ``source`` is the index of its text, or negative for a
    line of an earlier ledger. Statements that no longer hold are marked.
    """

    texts: Sequence[tuple[Unit, Said]]
    statements: Sequence[Statement]
    lost: int

    @property
    def lost_statements(self) -> list[Statement]:
        return [one for one in self.statements if one.source < self.lost]


def said_in(units: Sequence[Unit]) -> list[Said]:
    """Return what was said, in the order of ``units``.

    An account by rule is read back as what it quotes, and any other summary counts as the agent's words. Placeholders,
    ledgers and tools' results say nothing.
    """
    return [said for unit in units for said in _said_by(unit)]


def talk_of(lost: Sequence[Unit], beside: Sequence[Unit] = (), ledger: Sequence[Statement] = ()) -> Talk:
    """Read the ``lost`` units, what people said in the units ``beside`` them, and the lines of an earlier ``ledger``.

    What no longer holds is marked. Only people's words supersede others, so nothing else is read of ``beside``.
    """
    gone = [(unit, said) for unit in lost for said in _said_by(unit)]
    stays = [(unit, said) for unit in beside for said in _said_by(unit) if said.role == Role.USER]
    statements = (
        *ledger,
        *statements_of([said for _, said in gone]),
        *statements_of([said for _, said in stays], len(gone)),
    )
    return Talk([*gone, *stays], mark_superseded(statements), len(gone))


def find_superseded(talk: Talk) -> dict[str, str]:
    """Map the ids of units that are not lost, but say what no longer holds, to their text with marks.

    Accounts are left out, since they have their marks from when they were written.
    """
    marked: dict[str, str] = {}
    for statement in talk.statements:
        if statement.source < talk.lost or statement.holds:
            continue
        unit, said = talk.texts[statement.source]
        if unit.kind is not UnitKind.SUMMARY and statement.text in said.text:
            marked[unit.id] = marked.get(unit.id, said.text).replace(statement.text, statement.marked, 1)
    return marked


def _said_by(unit: Unit) -> Sequence[Said]:
    if unit.kind is UnitKind.PLACEHOLDER or is_ledger(unit):
        return ()
    if unit.kind is UnitKind.SUMMARY:
        return list(_read_back(own_text(unit)))
    return [
        Said(
            "system" if unit.role is UnitRole.SYSTEM else message.role.value,
            message.text.removesuffix(CUT),
            unit.source[min(place, len(unit.source) - 1)] if unit.source else 0,
        )
        for place, message in enumerate(unit.messages)
        if message.role is not Role.TOOL and message.text.strip()
    ]


def _read_back(text: str) -> Iterator[Said]:
    """Yield what a summary tells. Only an account by rule names speakers: a model's summary is the agent's words."""
    by_rule = BY_RULE in text
    for line in text.splitlines():
        entry = ENTRY.fullmatch(line.strip()) if by_rule else None
        if entry:
            words = QUOTED.sub(r"\n\n\g<0>\n\n", entry[3].replace(OMITTED, " "))
            yield Said(ROLES[entry[2]], words, int(entry[1]), settled=True)
        elif line.strip() and not line.startswith("#") and line.strip() != BY_RULE:
            yield Said("assistant", line, settled=True)


def labelled(said: Said, text: str) -> str:
    """Return the text behind its turn and speaker, if the turn is known."""
    return f"{said.turn} {SPEAKERS.get(said.role, 'agent')}: {text}" if said.turn else text
