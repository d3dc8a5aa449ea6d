"""What a sentence says in English, German and Chinese: a request, or none."""

import pytest

from remediation.text.statements import is_request, statements_of

# That something is not so, or cannot be, forbids nothing.
REPORTS = """The server does not answer.
Der Server antwortet nicht.
服务器不能访问。
这个接口不可用。"""
REQUESTS = """Could someone measure it again?
Rename the column.
Next, compare both lists.
Als Nächstes miss es noch einmal.
麻烦再测一次。"""
TALK = """That was a lovely evening.
Das war ein schöner Abend.
那是个愉快的晚上。"""


@pytest.mark.parametrize("sentence", [*REPORTS.splitlines(), *TALK.splitlines()])
def test_a_report_is_no_rule(sentence: str) -> None:
    assert not any(one.is_rule for one in statements_of([("user", sentence)]))


@pytest.mark.parametrize("sentence", REQUESTS.splitlines())
def test_a_request_is_one(sentence: str) -> None:
    assert is_request(sentence)


@pytest.mark.parametrize("sentence", TALK.splitlines())
def test_talk_is_no_request(sentence: str) -> None:
    assert not is_request(sentence)


def test_all_that_8000_messages_say_is_remembered() -> None:
    """Told by the very same strings: each of a rewrite's passes over them would read every sentence anew."""
    texts = [("assistant", f"It is fine. They left. We saw it. That was {at}.") for at in range(8_000)]
    first, again = statements_of(texts), statements_of(texts)
    assert len(first) == 32_000
    assert all(one.text is other.text for one, other in zip(first, again, strict=True))
