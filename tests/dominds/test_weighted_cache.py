"""What is remembered stays within its bounds, and what was used last stays longest."""

from dominds.weighted_cache import Bounded


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    bounded = Bounded[str](5_000)
    for key in range(10):
        bounded.put(key, f"value {key}", 1_500)
    assert [key for key in range(10) if bounded.get(key)] == [7, 8, 9]
    bounded.put(7, "heavier", 4_900)
    assert [key for key in range(10) if bounded.get(key)] == [7]
    bounded.put(8, "too heavy", 6_000)
    assert len(bounded) == 0


def test_what_is_asked_for_is_kept_before_what_is_newer() -> None:
    bounded = Bounded[str](3)
    for key in "abc":
        bounded.put(key, key, 1)
    bounded.get("a")
    bounded.put("d", "d", 1)
    assert [key for key in "abcd" if bounded.get(key)] == ["a", "c", "d"]
