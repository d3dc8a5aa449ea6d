"""Exchanges: a message of a person and all units that answer it. An answered question never stands alone."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from dominds.llm.messages import Message, Role
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, UnitRole, Units
from remediation.strategies.digest import LEAST_WORTH, shorten
from remediation.strategies.outcome import is_question
from remediation.strategies.stand_ins import stand_in, text_counter
from remediation.text.marks import CUT

ANSWER_TOKENS = 32  # of the short answer that stands beside a question
ANSWER_PREFIX = "answer-"
UNSAID = "[I answered this; read_archive shows how.]"


def exchanges(units: Sequence[Unit]) -> list[list[int]]:
    """Return the indices of each exchange, oldest first. Each system prompt and stand-in is a group by itself."""
    groups: list[list[int]] = []
    is_open = False
    for index, unit in enumerate(units):
        alone = unit.role is UnitRole.SYSTEM or unit.kind in STAND_INS
        if is_open and not (alone or is_question(unit)):
            groups[-1].append(index)
        else:
            groups.append([index])
        is_open = not alone
    return groups


def with_answers(before: Units, after: Units, toolbox: Toolbox) -> Units:
    """Return ``after`` with a short answer behind each question that lost its whole answer.

    A model would answer an old question again if it stood alone.
    """
    present = {unit.id for unit in after}
    answers = {before[first].id: [before[index] for index in rest] for first, *rest in exchanges(before) if rest}
    view: list[Unit] = []
    for unit, following in zip_longest(after, after[1:]):
        view.append(unit)
        answered = answers.get(unit.id, ()) if following is None or is_question(following) else ()
        if answered and is_question(unit) and present.isdisjoint(answer.id for answer in answered):
            view.append(_short_answer(answered, toolbox, (*after, *view)))
    return tuple(view)


def _short_answer(answered: Sequence[Unit], toolbox: Toolbox, taken: Sequence[Unit]) -> Unit:
    said = "\n".join(
        message.text
        for unit in answered
        for message in unit.messages
        if message.role is Role.ASSISTANT and not message.text.endswith((CUT, UNSAID))
    )
    best = shorten(said, ANSWER_TOKENS, text_counter(toolbox), LEAST_WORTH)
    text = f"{best}{CUT}" if best else UNSAID
    messages = (Message(Role.ASSISTANT, text),)
    made = stand_in(UnitKind.MESSAGE, text, answered, toolbox, taken, ANSWER_PREFIX)
    return replace(made, role=UnitRole.ASSISTANT, messages=messages, est_tokens=toolbox.count(messages))
