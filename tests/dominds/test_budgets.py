import pytest

from dominds import budgets
from dominds.budgets import Budget, OverBudget


@pytest.mark.parametrize("bound", budgets.ALL, ids=lambda bound: bound.setting)
def test_each_bound_holds_at_its_number_and_names_itself_beyond_it(bound: Budget) -> None:
    bound.check(bound.most)
    for amount in (bound.most + 1, bound.most * 1_000_000):
        with pytest.raises(OverBudget) as caught:
            bound.check(amount, "Somebody sent")
        assert (
            str(caught.value)
            == f"Somebody sent more than {bound.most:,} {bound.unit}. {bound.setting} sets this limit."
        )


def test_every_setting_has_one_name_of_its_own() -> None:
    assert len({bound.setting for bound in budgets.ALL}) == len(budgets.ALL)
    assert all(bound.setting.startswith("DOMINDS_") for bound in budgets.ALL)


@pytest.mark.parametrize(("given", "most"), [("500", 500), ("", 7), ("many", 7), ("0", 7), ("-3", 7)])
def test_the_environment_sets_a_bound(monkeypatch: pytest.MonkeyPatch, given: str, most: int) -> None:
    monkeypatch.setenv("DOMINDS_SOMETHING", given)
    assert budgets._budget("DOMINDS_SOMETHING", 7, "things").most == most


@pytest.mark.parametrize(
    ("given", "formerly_given", "most", "setting"),
    [("", "500", 500, "DOMINDS_OLD"), ("300", "500", 300, "DOMINDS_NEW"), ("", "", 7, "DOMINDS_NEW")],
)
def test_a_setting_is_read_by_its_former_name_too(
    monkeypatch: pytest.MonkeyPatch, given: str, formerly_given: str, most: int, setting: str
) -> None:
    monkeypatch.setenv("DOMINDS_NEW", given)
    monkeypatch.setenv("DOMINDS_OLD", formerly_given)
    bound = budgets._budget("DOMINDS_NEW", 7, "things", formerly="DOMINDS_OLD")
    assert (bound.most, bound.setting) == (most, setting)


@pytest.mark.parametrize(
    ("given", "stated", "most"), [("", 0, 7), ("", 99, 99), ("50", 99, 50), ("50", 9, 9), ("50", 0, 50)]
)
def test_a_servers_bound_holds_unless_a_lower_one_is_given(
    monkeypatch: pytest.MonkeyPatch, given: str, stated: int, most: int
) -> None:
    monkeypatch.setenv("DOMINDS_SOMETHING", given)
    assert budgets._budget("DOMINDS_SOMETHING", 7, "things").within(stated) == most
