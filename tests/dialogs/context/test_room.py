"""Room for a re-entry package, whatever kinds of text an estimate took for one."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from dialogs.context.room import SHORT_ANSWER, left_out_for_package
from dialogs.context.sizes import Sizes
from dominds.llm.messages import Message, Role
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from remediation.budget import Budget, package_room
from remediation.config import ContextConfig
from remediation.context import Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.policies.policy import CountingFacts
from remediation.strategies.left_out import to_leave_out
from remediation.strategies.masking import FRESH_UNITS
from remediation.tokens.calibration import DENSEST, Counted
from remediation.tokens.counting import counter_for
from tests.dominds.llm.asking import info

TEXTS = st.lists(st.tuples(st.integers(20, 3_000), st.floats(1 / DENSEST, DENSEST)), min_size=8, max_size=30)


@given(texts=TEXTS, new=st.integers(0, 2), filled=st.floats(0.9, 1.1))
def test_a_forced_clear_fits_whatever_goes_and_whatever_stays(
    texts: list[tuple[int, float]], new: int, filled: float
) -> None:
    """Each text has tokens as they are counted, and what one of them is worth to the model. The report of all but the
    ``new`` ones taught the mean, and says how far the window is ``filled``."""
    known = texts[: len(texts) - new]
    counted = sum(tokens for tokens, _ in known)
    reported = round(sum(tokens * worth for tokens, worth in known))
    window = round(reported / filled)
    whole = sizes(texts, reported / counted, reported, window)
    left_out = left_out_for_package(whole.units, whole, reported, "")
    assume(len(left_out.units) < len(texts) - FRESH_UNITS)  # or else all went that may go
    stay = [text for index, text in enumerate(texts) if index not in left_out.units]
    shorter = sizes(stay, whole.factor, reported, window)
    shorter = replace(shorter, left_out=whole.prompt - shorter.prompt)
    model = info(OPENAI_COMPATIBLE, context_length=window, output_length=8_192)
    output = shorter.budget.output(model, 0, SHORT_ANSWER, shorter.margin(shorter.prompt), package_room(window))
    assert output >= package_room(window)
    assert sum(tokens * worth for tokens, worth in stay) + output <= window


def test_a_message_waits_where_all_beside_it_makes_no_room() -> None:
    """Its request was too long for a server that counts more, as was the forced clear: the dialog was suspended."""
    *others, last = sizes([(100, 1.0)] * 4 + [(1_000, 1.0)], 1.0, 0, 0).units
    units = (*others, replace(last, source=(5,), pinned=True))
    for excess, gone in ((150, (0, 1)), (350, (0, 1, 2, 3)), (900, (4,)), (1_150, (0, 1, 4))):
        assert to_leave_out(units, units, excess, lambda _: 0).units == gone


def sizes(texts: list[tuple[int, float]], factor: float, reported: int, window: int) -> Sizes:
    units: Units = tuple(
        Unit("", UnitKind.MESSAGE, UnitRole.USER, (Message(Role.USER, "a"),), est_tokens=round(tokens * factor))
        for tokens, _ in texts
    )
    budget = Budget(limit=window, window=window, view=total_tokens(units))
    counter, model = counter_for("any", "characters"), info(OPENAI_COMPATIBLE, context_length=window)
    facts = CountingFacts(window, model.model_id, "", None, "", 2, ContextConfig)
    return Sizes(units, budget, "calibrated", factor, Counted(0), counter, facts, model, reported)
