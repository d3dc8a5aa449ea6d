"""The runtime's marks are found by a look for the few signs that each of them holds."""

from remediation.text.marks import NEEDED, SIGNS


def test_what_is_looked_for_second_holds_what_is_looked_for_first() -> None:
    assert [part for part in NEEDED if not any(sign in part for sign in SIGNS)] == []
