"""The newest failure stays with its call, word for word, until the same call succeeds."""

from dataclasses import replace

import pytest

from remediation.context import Unit, Units, total_tokens
from remediation.policies.conformance import numbered, prose, system, tool, unit
from remediation.strategies.outcome import newest_failure
from tests.quality.keeping import POLICIES, count, toolbox

FAILURE = replace(tool("exit 2: cannot open socket", id="failing"), failed=True)
MENDED = tool("ok", id="failing")


def dialog(*calls: Unit) -> Units:
    before, after = ([unit(prose(f"topic{n}", 40)) for n in range(*span)] for span in ((0, 12), (12, 30)))
    units = [system(), *before, *calls, *after]
    return tuple(replace(one, est_tokens=count(one.messages)) for one in numbered(*units))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_newest_failure_outlasts_rewrites(policy: str) -> None:
    units = dialog(FAILURE)
    failed = next(one for one in units if one.failed)
    for _ in range(3):
        target = total_tokens(units) // 2
        after = POLICIES[policy](units, 2 * target, target, toolbox(lambda text, tokens: "")).units
        assert failed in after
        units = (*after, *(replace(one, id=f"{one.id}+{len(units)}") for one in dialog()[-12:]))


def test_a_failure_that_the_same_call_mended_may_go() -> None:
    assert newest_failure(dialog(FAILURE, MENDED)) == -1
    assert newest_failure(dialog(MENDED, FAILURE)) > 0


def test_a_failure_that_fills_the_view_may_go() -> None:
    large = replace(FAILURE, est_tokens=10_000)
    assert newest_failure((*dialog(), large)) == -1
