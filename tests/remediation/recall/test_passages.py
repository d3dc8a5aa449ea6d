import json

from hypothesis import given
from hypothesis import strategies as st

from remediation.recall.passages import PASSAGE_CHARS, PASSAGE_TOKENS, passages_of
from remediation.tokens.counting import count_characters


def length(text: str) -> int:
    return len(text)


def test_a_short_text_stays_whole() -> None:
    (only,) = passages_of(7, "user", "  Never push to main.\n", length)
    assert (only.turn, only.speaker, only.text, only.part, only.parts) == (7, "user", "Never push to main.", 0, 1)


def test_a_log_is_cut_between_lines() -> None:
    lines = [f"2026-11-22 10:00:{number:02} worker {number} started" for number in range(60)]
    result = passages_of(1, "run", "\n".join(lines), length)
    assert len(result) > 1
    assert [line for passage in result for line in passage.text.splitlines()] == lines


def test_json_on_one_line_is_cut_between_its_entries() -> None:
    rows = [{"number": f"HX{number}", "price": number, "seats": [1, 2, 3]} for number in range(60)]
    result = passages_of(1, "list", json.dumps(rows), length)
    assert all(passage.text.startswith(("[{", "{")) for passage in result)


@given(st.text(max_size=5_000))
def test_passages_hold_all_of_the_text_in_order_and_in_bounds(text: str) -> None:
    result = passages_of(1, "user", text, length)
    assert "".join("".join(passage.text.split()) for passage in result) == "".join(text.split())
    assert [passage.part for passage in result] == list(range(len(result)))
    assert all(0 < len(passage.text) <= PASSAGE_CHARS * 3 // 2 for passage in result)


def test_a_chinese_passage_takes_no_more_room_than_an_english() -> None:
    text = "数据库的备份昨天晚上又失败了，请在周五之前检查日志。不要删除任何旧的文件，也不要重启服务器！" * 30
    result = passages_of(1, "user", text, count_characters)
    assert all(passage.est_tokens <= 1.5 * PASSAGE_TOKENS for passage in result)
    assert all(passage.text.endswith(("。", "！")) for passage in result)
