"""Marks on passages of what a newer message of a person supersedes, as ledger and account have them."""

from collections.abc import Mapping
from dataclasses import replace

from dominds.llm.messages import Role
from remediation.recall.passages import Passage
from remediation.text.statements import Said, statements_of
from remediation.text.supersession import mark_superseded


def mark_older(older: Mapping[int, Passage], newer: Passage) -> dict[int, Passage]:
    """Return those of the passages ``older`` that ``newer`` supersedes, marked, by their entries.

    ``older`` is in the order of the dialog. What is marked already stays as it is.
    """
    ordered = list(older.items())
    said = [Said(Role.USER, passage.text, passage.turn) for passage in (*older.values(), newer)]
    marked: dict[int, Passage] = {}
    for one in mark_superseded(statements_of(said)):
        if one.holds or one.until != newer.turn or one.source == len(ordered):
            continue
        entry, passage = ordered[one.source]
        former = marked.get(entry, passage)
        start = passage.text.find(one.text)
        end = start + one.end
        if start >= 0 and end not in dict(former.superseded):
            marked[entry] = replace(former, superseded=tuple(sorted((*former.superseded, (end, newer.turn)))))
    return marked
