"""What directs the agent from now on, and what only sounds like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.text.directives import FORBIDS, GERMAN, IN_FORBIDS, IN_GERMAN, is_directive

DIRECTIVES = """Never push to main.
Please don't touch the billing tables.
STOP using the staging cluster.
You must not delete rows.
You should not restart the mail server.
Avoid pandas.
Leave the archive alone until Monday.
No deploys between 19:00 and 20:15.
Only Python 3.11.
Report all times in UTC.
Run unit tests with pytest before pushing.
Always include error status codes in responses when I ask about API error handling.
For status reports, show clocks in Pacific Time.
From now on, answer in German.
I would rather get short answers with metric units.
Please make responses light, and stick to metric measurements.
The rotation is done: never reveal the new code; the old one no longer works.
Expenses must stay at or below $700.
Bitte nicht auf main pushen.
Auf keinen Fall die Datenbank neu starten.
Am Vertrag darf vor Mai nichts geändert werden.
Finger von der Steuerung!
不要重启数据库。
千万别重启邮件服务器。
绝对不能清空生产库。
任何时候都不能跳过测试。
别直接推到 main 分支。
Ändere unter keinen Umständen die Rechnung.
按钮不要紧贴窗口边缘。
所有接口必须带上版本号。
上线之前，你必须先备份。"""
# Public talk holds many idioms, reports of one's own and ends of dialogs. Who may or must not do what in the first
# person tells of that person.
TALK = """I don't know yet.
Should we never do that?
not tonight
Bitte nicht falsch verstehen, der Entwurf gefällt mir.
晚一天不要紧，周五前给我就行。
Let's not modify the draft until the meeting.
No errors were found.
The load test passed with no errors on the small cluster.
The server does not answer.
I want to return custom JSON responses.
It must be hard.
Never mind.
Never saw this coming.
Don't forget to take breaks when you need to!
I'm gonna keep on going and never quit.
I've never tried publishing a book.
Thank you!###STOP###
Freitag ist wirklich Schluss, wir dürfen keine Dauerfristverlängerung.
Dazu darf ich leider nichts sagen.
我们必须周五交报告。
我不得不走了。
官方的软件包必须包含源代码。
想要（或必须）编译内核的用户可以这样做。"""


@pytest.mark.parametrize("sentence", DIRECTIVES.splitlines())
def test_a_directive_is_one(sentence: str) -> None:
    assert is_directive(sentence)


@pytest.mark.parametrize("sentence", TALK.splitlines())
def test_talk_directs_nobody(sentence: str) -> None:
    assert not is_directive(sentence)


PARTS = st.sampled_from(
    "please do not don't don’t never avoid stop refrain from under no circumstances hands off before until leave alone "
    "as they are you must should mustn't only always stay be tested is strictly forbidden prohibited off-limits no "
    "longer allowed deploys without niemals keinesfalls auf keinen fall verboten untersagt ab jetzt darf dürfen nichts "
    "keine unter umständen falsch bitte nicht immer finger weg von".split()
)


@given(st.lists(PARTS, max_size=8).map(" ".join))
def test_what_is_looked_for_first_stands_in_every_match(text: str) -> None:
    assert not FORBIDS.match(text) or any(part in text for part in IN_FORBIDS)
    assert not GERMAN.search(text) or any(part in text for part in IN_GERMAN)
