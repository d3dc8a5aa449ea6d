"""Each page and each piece of it comes in its reader's language; programs and what is stored stay English."""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import available_timezones

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone, translation

from dialogs.accounts.api_keys import create_key
from dialogs.actions.messages import create_dialog
from dialogs.context.limits import catalog
from dialogs.models import Agent, ApiKey, Dialog, PersonSettings, Turn
from dialogs.pages import sidebar
from dialogs.templatetags.stored_sentences import FORMS, in_page_language, pieces
from dominds.llm.complaints import Complaint, complaint_of_response
from dominds.llm.errors import ADVICE, error_of
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import Zoo, operator
from tests.dialogs.extras.teams.leading import make_lead
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.dialogs.html_tree import in_one_line
from tests.dialogs.plain_words import PlainWords

pytestmark = pytest.mark.django_db(transaction=True)
CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"text": "Hello."})
    return send(make_dialog(), "Hello")


def page(client: Client, address: str, **headers: str) -> str:
    answer = client.get(address, headers=headers or None)
    assert answer.status_code == 200
    return in_one_line(answer.content.decode())


def choose(user: User, language: str) -> None:
    PersonSettings.objects.update_or_create(user=user, defaults={"language": language})


def test_pages_speak_the_language_that_a_person_chose(dialog: Dialog) -> None:
    client = browser_of(dialog.owner)
    fields = {"theme": "system", "language": "zh-hans", "email": ""}
    saved = client.post("/settings/appearance/", fields, follow=True, headers={"Accept-Language": "en"})
    html = in_one_line(saved.content.decode())
    assert saved.status_code == 200 and '<html lang="zh-Hans" dir="ltr"' in html
    assert "已保存。" in html and "外观与通知" in html and "Look and notifications" not in html
    assert "phrases.zh-hans.js" in html
    assert "今天想做些什么？" in page(client, "/")
    shown = page(client, f"/d/{dialog.pk}/")
    assert "上下文健康" in shown and "空闲" in shown and f"给 {dialog.agent} 发消息" in shown
    assert "Context health" not in shown
    choose(dialog.owner, "en")
    assert "Context health" in page(client, f"/d/{dialog.pk}/", **CHINESE)


def test_no_english_word_is_left_on_a_chinese_page(script: Script) -> None:
    """But names, and what somebody wrote."""
    zoo, person = Zoo(script), operator()
    made = [zoo.undone(), zoo.waiting(), zoo.suspended(), make_lead(zoo.talk("one"))]
    choose(person, "zh-hans")
    client, left = browser_of(person), dict[str, str]()
    addresses = """
        / /dialogs/ /q4h/ /q4h/?tab=answered /models/ /models/connect/ /agents/ /agents/new/ /tool-servers/ /people/
        /settings/ /settings/context-display/ /settings/templates/ /settings/costs/ /settings/keys/ /settings/site/
        /settings/limits/ /ops/ /statistics/ /import/
    """.split()
    for dialog in made:
        calls = dialog.generations.order_by("-pk")[:2]
        addresses += [f"/d/{dialog.pk}/", f"/d/{dialog.pk}/context/"]
        addresses += [f"/d/{dialog.pk}/context/?at={call.pk}" for call in calls]
        addresses += [f"/d/{dialog.pk}/archive/{run.pk}/" for run in dialog.remediations.all()]
        addresses += [f"/q4h/{question.pk}/" for question in dialog.questions.all()]
    known = catalog()
    names = {
        *(name for model in known.models.values() for name in (model.name, model.model_id, model.provider_id)),
        *(provider.name for provider in known.providers.values()),
        *(name for agent in Agent.objects.all() for name in (agent.name, agent.pk)),
        *(name for dialog in Dialog.objects.all() for name in (dialog.title, str(dialog.owner))),
        *available_timezones(),
        *NAMES,
        WRITTEN,
    }
    known_words = {word for name in names for word in LATIN.findall(name)}
    for address in addresses:
        for text in PlainWords(page(client, address), LATIN).odd:
            if unknown := {*LATIN.findall(text)} - known_words:
                left[f"{address}: {text}"] = ", ".join(sorted(unknown))
    assert left == {}


LATIN = re.compile("[A-Za-z]{3,}")
NAMES = """
    Dominds token Enter Shift API LLM MCP UTC English HTTPS JSON JavaScript Redis Prometheus Webhook Slack Mattermost
    OpenAI Anthropic Responses Messages SGLang vLLM ChatGPT Claude DeepSeek Grok ZIP Open WebUI LibreChat Jan URL Codex
    CLI HTTP bearer Tab USD EUR Markdown /api /mcp {"general":{"effort":"low"}} https://tools.example.com/mcp
    SillyTavern https://api.example.com/v1 lead@example.org boss@example.org
""".split()
WRITTEN = """
    Mind the gap. Your side dialogs (the runtime keeps this list): at work, asked to find the hut
"""  # by a person, and for the model


def test_without_a_choice_the_browser_says_which(dialog: Dialog) -> None:
    client = browser_of(dialog.owner)
    assert '<html lang="en" dir="ltr"' in page(client, "/")
    assert "phrases." not in page(client, "/")
    assert '<html lang="zh-Hans"' in page(client, "/", **CHINESE)
    assert '<html lang="en"' in page(client, "/", **{"Accept-Language": "xx"})
    assert "创建第一个账户" in page(Client(), "/setup/", **CHINESE)


def test_a_piece_comes_in_the_language_of_its_page(dialog: Dialog) -> None:
    client = browser_of(dialog.owner)
    choose(dialog.owner, "zh-hans")
    address = f"/d/{dialog.pk}/turn/1/actions/"
    assert "Copy text" in page(client, address, **HTMX, **{"X-Page-Language": "en"})
    assert "复制文本" in page(client, address, **HTMX, **{"X-Page-Language": "zh-Hans"})
    assert "复制文本" in page(client, address, **HTMX)


def test_programs_get_english_whatever_their_person_chose(dialog: Dialog) -> None:
    client = browser_of(dialog.owner)
    choose(dialog.owner, "zh-hans")
    assert client.get("/api/settings").json()["language"] == "zh-hans"
    gone = client.get("/api/dialogs/00000000-0000-0000-0000-000000000000", headers=CHINESE).json()
    assert gone["error"]["message"].isascii()
    answer: Any = client.get(f"/d/{dialog.pk}/export.json", headers=CHINESE)

    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    exported = async_to_sync(read)().decode()
    assert exported.isascii() and "\\u" not in exported


def test_what_is_stored_is_english(script: Script, dialog: Dialog) -> None:
    choose(dialog.owner, "zh-hans")
    client = browser_of(dialog.owner)
    client.post(f"/d/{dialog.pk}/messages/", {"text": "Go on", "client_message_id": "m-2"}, headers=CHINESE)
    client.post(f"/d/{dialog.pk}/stop/", headers=CHINESE)
    assert all(turn.text.isascii() for turn in Turn.objects.filter(dialog=dialog))


def test_a_language_that_there_is_not_is_refused(dialog: Dialog) -> None:
    user = UserFactory.create()
    answer = browser_of(user).post("/settings/appearance/", {"theme": "dark", "language": "tlh", "email": ""})
    assert answer.status_code == 400
    assert not PersonSettings.objects.filter(user=user, language="tlh").exists()


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("Last reported prompt: 1,950 tokens.", "最近报告的提示：1,950 个 token。"),
        ("This dialog has cost $0.12, and the budget is $0.10.", "此对话已花费 $0.12，预算为 $0.10。"),
        ("No <b>! It said the same twice in a row.", '<span lang="en">No &lt;b&gt;! </span>它连续两次给出相同的答复。'),
        (
            "The dialog is generating. Branch off when it has finished, or stop it.",
            "对话状态为“生成中”。请在结束后再创建分支，或先停止它。",
        ),
        (
            "The rewrite would not be smaller: est. 5 → 5 tokens. Instructions, tools and reminders take est. 1,571 "
            "tokens beside the messages.",
            "改写不会更小：约 5 → 5 个 token。 除消息外，指令、工具和备忘约占 1,571 个 token。",
        ),
        (
            "The message is too large for qwen3: it has est. 3,507 tokens, and there is room for 3,143. The model "
            "takes 4,096, of which instructions and reminders take est. 13, tools est. 684, and an answer at least "
            "256. Send it in parts, or choose a model with a larger context.",
            "这条消息对 qwen3 来说太长：它约有 3,507 个 token，而只有 3,143 个的空间。 该模型最多容纳 4,096 个，"
            "其中指令和备忘约占 13 个，工具约占 684 个，回答至少占 256 个。 请分几部分发送，或选择上下文更大的模型。",
        ),
        ("est. 9,000 tokens, over 5,000", "估计 9,000 个 token，超出 5,000 的上限"),
        ("A priority-1 agent went over its limit.", "一个优先级为 1 的智能体超出了上限。"),
        ("What a provider says.", '<span lang="en">What a provider says.</span>'),
        ("", ""),
    ],
)
def test_stored_sentences_are_shown_in_the_readers_language(text: str, chinese: str) -> None:
    assert in_page_language(text) == text
    with translation.override("zh-hans"):
        assert in_page_language(text) == chinese


@pytest.mark.parametrize("status", [None, 400, 401, 402, 403, 404, 408, 413, 429, 500, 503, 504])
def test_of_a_providers_refusal_only_its_own_words_stay(status: int | None) -> None:
    """Without a status it came in the middle of an answer."""
    if status is None:
        complaint = Complaint(text="Kaputt")
    else:
        complaint = complaint_of_response(status, {}, b'{"error": {"message": "Kaputt"}}')
    theirs = [text for text, is_ours in pieces(str(error_of(complaint, "a.host:8080"))) if not is_ours]
    assert "".join(theirs).strip(" .") == "Kaputt"


def test_what_is_advised_after_a_refusal_has_a_translation() -> None:
    assert set(ADVICE.values()) <= set(FORMS)


def test_a_refusal_is_told_in_the_readers_language(dialog: Dialog) -> None:
    choose(dialog.owner, "zh-hans")
    client = browser_of(dialog.owner)
    client.post(f"/d/{dialog.pk}/rename/", {"title": " "})
    assert "标题为空。请写明对话的内容。" in page(client, "/")
    empty = client.post(f"/d/{dialog.pk}/messages/", {"text": " "}, headers=HTMX)
    assert (empty.status_code, "消息为空。" in empty.content.decode()) == (400, True)


def test_each_form_of_a_stored_sentence_is_found_as_a_whole() -> None:
    for form in FORMS:
        filled = form.format_map(
            dict.fromkeys(("number", "limit", "size", "spent", "budget", "words", "reason", "seconds", "free"), "12")
            | FILLED
        )
        assert pieces(f"Before this. {filled}")[1:] == [(filled, True)], form


FILLED = {**dict.fromkeys(("tool", "provider", "name", "file", "model", "host", "variable"), "a.b-c"), "state": "Idle"}


def test_times_are_in_the_readers_zone_without_scripts() -> None:
    """That of the browser, until one is chosen in the settings: then that one in every browser."""
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(created_at=datetime(2026, 3, 8, 6, 30, tzinfo=UTC))
    browser, settings = browser_of(dialog.owner), "/settings/appearance/"
    create_key(dialog.owner)
    ApiKey.objects.update(created_at=datetime(2026, 3, 8, 20, 0, tzinfo=UTC))
    assert "8 Mar 2026</time>" in in_one_line(browser.get("/settings/keys/").content.decode())
    assert "06:30 (UTC)" in export_of(browser, dialog)
    browser.cookies["zone"] = "Asia/Shanghai"
    assert "9 Mar 2026</time>" in in_one_line(browser.get("/settings/keys/").content.decode())
    assert "14:30 (Asia/Shanghai)" in export_of(browser, dialog)
    page = in_one_line(browser.get("/settings/").content.decode())
    assert 'data-zone=""' in page and "It is Asia/Shanghai now." in page
    assert '<option value="America/New_York">New York</option>' in page and "US/Eastern" not in page
    chosen = {"theme": "system", "language": "", "zone": "America/New_York"}
    for unknown in ("Mars/Olympus", "/etc/passwd", "../UTC", "york"):
        refused = browser.post(settings, {**chosen, "zone": unknown})
        assert refused.status_code == 400 and "No time zone has this name" in in_one_line(refused.content.decode())
    for typed, zone in (
        ("kolkata", "Asia/Kolkata"),
        ("europe/isle of man", "Europe/Isle_of_Man"),
        ("US/Eastern", "US/Eastern"),
    ):
        browser.post(settings, {**chosen, "zone": typed})
        assert f'data-zone="{zone}"' in in_one_line(browser.get("/settings/").content.decode())
    saved = browser.post(settings, chosen)
    assert saved.status_code == 302 and saved.cookies["zone"]["max-age"] == 0
    assert 'data-zone="America/New_York"' in in_one_line(browser.get("/settings/").content.decode())
    assert "01:30 (America/New_York)" in export_of(browser, dialog), "half an hour before clocks go forward"
    another = browser_of(dialog.owner)
    another.cookies["zone"] = "Asia/Kolkata"
    assert "01:30 (America/New_York)" in export_of(another, dialog)
    browser.post(settings, {**chosen, "zone": ""})
    assert "14:30 (Asia/Shanghai)" in export_of(browser_of(dialog.owner), dialog), "the browser's that was used last"


def export_of(browser: Client, dialog: Dialog) -> str:
    answer: Any = browser.get(f"/d/{dialog.pk}/export.md")

    async def whole() -> str:
        return b"".join([piece async for piece in answer.streaming_content]).decode()

    return async_to_sync(whole)()


def test_programs_choose_a_zone_and_get_utc() -> None:
    person = UserFactory.create()
    api = Client(headers={"Authorization": f"Bearer {create_key(person)}"})
    given = {"data": '{"zone": "Asia/Kolkata"}', "content_type": "application/json"}
    assert api.patch("/api/settings", **given).json()["zone"] == "Asia/Kolkata"  # type: ignore[arg-type]
    given["data"] = '{"zone": "Mars/Olympus"}'
    assert api.patch("/api/settings", **given).status_code in (400, 422)  # type: ignore[arg-type]
    dialog = create_dialog(person, make_dialog().agent_id)
    assert api.get(f"/api/dialogs/{dialog.pk}").json()["created_at"].endswith("Z")


def test_days_of_the_navigation_are_those_of_the_readers_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half past midnight in India, and still the evening before in New York, on the day its clocks go back."""
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(active_at=datetime(2026, 11, 1, 18, 29, tzinfo=UTC))
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 1, 19, 0, tzinfo=UTC))
    days, recent = {}, sidebar.recent_dialogs(dialog.owner, sidebar.NEWEST)
    for zone in ("Asia/Kolkata", "Asia/Shanghai", "America/New_York"):
        with timezone.override(zone):
            days[zone] = [section.title for section in sidebar.sections(dialog.owner, recent)]
    assert days == {"Asia/Kolkata": ["Yesterday"], "Asia/Shanghai": ["Today"], "America/New_York": ["Today"]}
