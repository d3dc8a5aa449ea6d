"""What a sentence says, in the languages that people write: a rule, a failure, a decision,
a request, or none of them."""

import pytest

from remediation.text.statements import MEMORABLE, REQUEST, STRONG, is_failure, rule_strength

RULES = """You should not restart the mail server.
Leave the archive alone until Monday.
Am Vertrag darf vor Mai nichts geändert werden.
Finger von der Steuerung!
No borres la tabla antigua.
No se puede publicar sin revisión.
Não deve reiniciar o servidor.
Ne touchez pas au serveur de messagerie.
Il ne faut pas publier sans relecture.
Архив удалять нельзя.
Не меняйте договор.
千万别重启邮件服务器。
不允许修改合同。
アーカイブを消してはいけません。
서버를 재시작하지 마세요.
ممنوع حذف الأرشيف."""
# That something is not so, or cannot be, forbids nothing.
REPORTS = """The server does not answer.
Le serveur ne répond pas.
Je ne sais pas.
Nous ne voyons rien.
Der Server antwortet nicht.
El servidor no responde.
Сервер не отвечает.
服务器不能访问。
这个接口不可用。
サーバーは応答しません。
الخادم لا يرد."""
FAILURES = """The job hangs after an hour.
The worker exited with exit code 3.
Nach einer Stunde ist der Lauf abgebrochen.
La tarea no funciona.
O processo falhou.
Le traitement a planté.
Обработка зависла.
一小时后任务卡死了。
バッチが落ちました。
작업 실패.
توقفت المهمة بسبب خطأ."""
DECISIONS = """We settled on the blue one.
Wir haben uns auf Blau geeinigt.
Hemos decidido usar el azul.
Nous avons retenu le bleu.
Договорились взять синий.
最后选了蓝色。
青にすることに決まりました。
파란색으로 결정했습니다.
قررنا الأزرق."""
REQUESTS = """Could someone measure it again?
Rename the column.
Next, compare both lists.
Als Nächstes miss es noch einmal.
Hay que medirlo otra vez.
Você pode medir de novo?
Pourriez-vous le mesurer ?
Нужно измерить ещё раз.
麻烦再测一次。
もう一度測ってもらえますか。
다시 측정해 주세요.
أريد قياسه مرة أخرى."""
TALK = """That was a lovely evening.
Das war ein schöner Abend.
Fue una noche preciosa.
C'était une belle soirée.
Это был чудесный вечер.
那是个愉快的晚上。
素敵な夜でした。
كانت أمسية جميلة."""


@pytest.mark.parametrize("sentence", RULES.splitlines())
def test_a_prohibition_is_a_rule_in_any_of_ten_languages(sentence: str) -> None:
    assert rule_strength("user", sentence) >= STRONG


@pytest.mark.parametrize("sentence", [*REPORTS.splitlines(), *TALK.splitlines()])
def test_a_report_is_no_rule(sentence: str) -> None:
    assert rule_strength("user", sentence) < STRONG


@pytest.mark.parametrize("sentence", FAILURES.splitlines())
def test_a_failure_is_one(sentence: str) -> None:
    assert is_failure(sentence)


@pytest.mark.parametrize("sentence", DECISIONS.splitlines())
def test_a_decision_is_memorable(sentence: str) -> None:
    assert MEMORABLE.search(sentence)


@pytest.mark.parametrize("sentence", REQUESTS.splitlines())
def test_a_request_is_one(sentence: str) -> None:
    assert REQUEST.search(sentence)


@pytest.mark.parametrize("sentence", TALK.splitlines())
def test_talk_is_nothing_of_all_that(sentence: str) -> None:
    assert not (is_failure(sentence) or MEMORABLE.search(sentence) or REQUEST.search(sentence))
