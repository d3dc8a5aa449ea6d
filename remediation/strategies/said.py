"""The texts of units with their speaker and turn, as ledger, account and coverage read them."""

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
    """What was said in some units: each text beside its unit, and their statements, marked where they no longer hold.

    A statement's ``source`` is the place of its text, negative for a line of an earlier ledger. The first ``lost``
    texts are those that a rewrite takes away.
    """

    texts: Sequence[tuple[Unit, Said]]
    statements: Sequence[Statement]
    lost: int

    @property
    def lost_statements(self) -> list[Statement]:
        return [one for one in self.statements if one.source < self.lost]


def said_in(units: Sequence[Unit]) -> list[Said]:
    """Return what was said, in the order of ``units``.

    An account made by rule is taken apart again; another summary counts as the agent's; placeholders and ledgers
    say nothing, nor does what tools printed.
    """
    return [said for unit in units for said in _said_by(unit)]


def talk_of(lost: Sequence[Unit], beside: Sequence[Unit] = (), ledger: Sequence[Statement] = ()) -> Talk:
    """Read what was said in the ``lost`` units, what people said in those ``beside`` them and the lines of an earlier
    ``ledger``, and decide what of it still holds: only people's words supersede.
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
    """Map units that are not lost and say what no longer holds to their text with the marks. Stand-ins bear their marks
    already.
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
    """Read a summary. Labels are believed only in an account made by rule: what a model writes is the agent's."""
    by_rule = BY_RULE in text
    for line in text.splitlines():
        entry = ENTRY.fullmatch(line.strip()) if by_rule else None
        if entry:
            words = QUOTED.sub(r"\n\n\g<0>\n\n", entry[3].replace(OMITTED, " "))
            yield Said(ROLES[entry[2]], words, int(entry[1]), settled=True)
        elif line.strip() and not line.startswith("#") and line.strip() != BY_RULE:
            yield Said("assistant", line, settled=True)


def labelled(said: Said, text: str) -> str:
    """Say before the text when it was said, and by whom."""
    return f"{said.turn} {SPEAKERS.get(said.role, 'agent')}: {text}" if said.turn else text
