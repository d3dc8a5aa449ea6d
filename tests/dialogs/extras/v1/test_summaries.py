"""Which answer stands for a conversation: clients ask for a summary, and tell that in the place of what was said. On
the twelve dialogs of `tests/quality`, in the forms in which five programs were seen to do it, and in which texts are
only quoted."""

from collections.abc import Callable, Sequence

import pytest

from dialogs.extras.v1.asked_summaries import LastAnswer, asks_for_summary
from dialogs.extras.v1.exchanges import DISTINCT_CHARS
from dialogs.extras.v1.history import ClientMessage
from tests.quality.facts import Dialog, load_dialogs

Messages = list[ClientMessage]
DIALOGS = load_dialogs()
CHINESE = [
    ("user", "请帮我们规划从热那亚出发的航行,船上有四十桶油。"),
    ("assistant", "好的:航线经过科西嘉岛北侧,全程大约三天,途中在巴斯蒂亚补充淡水。"),
    ("user", "船长不希望夜间进港,猫也要留在船上。"),
    ("assistant", "明白了:到港时间改为上午九点,猫留在船上,并且每天喂两次。"),
]
CHINESE_SUMMARY = (
    "船从热那亚出发,载有四十桶油,航线经过科西嘉岛北侧,全程大约三天,途中在巴斯蒂亚补充淡水。船长不希望夜间进港,所以到港时间是上午九点。"
    "猫留在船上,每天喂两次。接下来要做的是:写出每天的航行计划,并且确认巴斯蒂亚的淡水价格。"
)
GERMAN = [
    ("user", "Plane bitte die Fahrt ab Genua, mit vierzig Fässern Öl an Bord."),
    ("assistant", "Gern: nördlich an Korsika vorbei, etwa drei Tage, frisches Wasser in Bastia."),
    ("user", "Der Kapitän will nicht bei Nacht einlaufen, und die Katze bleibt an Bord."),
    ("assistant", "Dann laufen wir um neun Uhr morgens ein; die Katze bleibt und wird zweimal am Tag gefüttert."),
]
GERMAN_SUMMARY = (
    "Die Fahrt geht ab Genua mit vierzig Fässern Öl nördlich an Korsika vorbei, etwa drei Tage, mit frischem Wasser "
    "aus Bastia. Eingelaufen wird um neun Uhr morgens. Die Katze bleibt an Bord. Offen ist der Preis des Wassers."
)


def summed_up(dialog: Dialog) -> tuple[Messages, str]:
    """What people and the agent said up to its longest summary, and that."""
    summary = dialog.good_summaries[-1]
    texts = [one for one in dialog.messages[: summary.upto] if one["role"] in ("user", "assistant") and one["content"]]
    return [ClientMessage(one["role"], one["content"]) for one in texts], summary.text


def of_pairs(pairs: Sequence[tuple[str, str]]) -> Messages:
    return [ClientMessage(role, text) for role, text in pairs]


CONVERSATIONS: dict[str, tuple[Messages, str]] = {
    **{dialog.name: summed_up(dialog) for dialog in DIALOGS},
    "Chinese": (of_pairs(CHINESE), CHINESE_SUMMARY),
    "German": (of_pairs(GERMAN), GERMAN_SUMMARY),
}


def user(text: str) -> ClientMessage:
    return ClientMessage("user", text)


def assistant(text: str) -> ClientMessage:
    return ClientMessage("assistant", text)


# -- how programs compact: what they ask, how the model answers it, and what they tell then ----------------------------

Form = tuple[str, str, Callable[[Messages, str], Messages]]
NEW = user("Now the next step.")


def kept_messages(before: Messages, summary: str) -> Messages:
    """Codex: all that the user said, and the summary behind it as the newest message, where it goes on by itself."""
    return [*(one for one in before if one.role == "user"), user(f"Here is what another model found out:\n{summary}")]


FORMS: dict[str, Form] = {
    "framed, in Claude Code's way": (
        "Reply in an <analysis> block and a <report> block.",
        "<analysis>Hm, well.</analysis>\n<report>\n{}\n</report>",
        lambda before, summary: [user(f"Continued from a session that ran out of room:\n{summary}"), NEW],
    ),
    "behind what the user said, in Codex's way": ("Hand over to the next model.", "{}", kept_messages),
    "as the answer to other words, in opencode's way": (
        "Fill in this template.",
        "{}",
        lambda before, summary: [user("Where are we?"), assistant(summary), *before[-2:], NEW],
    ),
    "framed, with the end as it was, in Qwen Code's way": (
        "Think, then write the <state>.",
        "<state>{}</state>",
        lambda before, summary: [user(f"<state>{summary}</state>"), assistant("Got it."), *before[-2:], NEW],
    ),
    "alone, in Crush's way": ("Where do we stand?", "{}", lambda before, summary: [user(summary), NEW]),
    "among the instructions, with the end as it was": (
        "Bitte kurz.",
        "{}",
        lambda before, summary: [ClientMessage("system", f"Before this: {summary}"), *before[-2:], NEW],
    ),
    "in Chinese words": ("请总结一下以上的对话。", "{}", lambda before, summary: [user(f"摘要:{summary}"), NEW]),
    "in German words": (
        "Fasse unser Gespräch zusammen.",
        "{}",
        lambda before, summary: [user(f"Bisher: {summary}"), NEW],
    ),
}


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_summary_stands_for_its_conversation(form: Form, conversation: tuple[Messages, str]) -> None:
    asked, answer, tell = form
    before, summary = conversation
    last = LastAnswer.of([*before, user(asked), assistant(answer.format(summary))])
    assert last.place_in(tell(before, summary)) is not None
    others = [messages for messages, text in CONVERSATIONS.values() if text != summary]
    assert all(last.place_in(other) is None for other in others)


# -- how it is asked for in other languages ----------------------------------------------------------------------------

ASKED_IN = {
    "Japanese": "これまでの会話を要約してください。固有名詞や日付は残してください。",
    "Korean": "지금까지의 대화를 요약해 주세요. 결정 사항과 남은 일을 포함하세요.",
    "Russian": "Суммируй диалог кратко, по пунктам: намерения, факты, решения.",
    "Russian, in other words": "Подведи итоги разговора, чтобы продолжить с этого места.",
    "Ukrainian": "Підсумуй розмову, щоб ми могли продовжити.",
    "French": "Résume la conversation en conservant les décisions prises, les fichiers modifiés et l'état de la tâche.",
    "French, in other words": "Fais une synthèse de nos échanges jusqu’ici.",
    "Spanish": "Resume la conversación preservando decisiones, acuerdos y tareas pendientes.",
    "Portuguese": "Resuma a conversa em um parágrafo, preservando fatos e decisões.",
    "Italian": "Riassumi la conversazione mantenendo decisioni, file e risultati utili.",
    "Polish": "Podsumuj rozmowę: decyzje, pliki, następne kroki.",
    "Dutch": "Vat het gesprek tot nu toe samen.",
    "Turkish": "Şimdiye kadarki konuşmayı özetle.",
    "Vietnamese": "Hãy tóm tắt cuộc trò chuyện này.",
    "Arabic": "لخّص المحادثة حتى الآن مع القرارات المتخذة.",
    "Hindi": "अब तक की बातचीत का सारांश लिखें।",
}
NO_SUMMARY_OF_TALK = (
    "Resume the session where we left it.",
    "Резюмируй эту статью о море.",
    "Résume ce livre en dix lignes.",
    "この本を要約してください。",
    "이 문서를 요약해 주세요.",
    "Resuma este artigo.",
    "Riassumi questo capitolo.",
    "Podsumuj ten raport.",
    "Özetle bu kitabı.",
    "Let us talk about the session.",
    "О чём наш разговор?",
    "Où en est notre discussion ?",
    "会話を続けましょう。",
)


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("asked", ASKED_IN.values(), ids=ASKED_IN)
def test_a_summary_is_asked_for_in_many_languages(asked: str, conversation: tuple[Messages, str]) -> None:
    before, summary = conversation
    last = LastAnswer.of([*before, user(asked), assistant(summary)])
    assert last.place_in([user(f"»: {summary}"), NEW]) is not None
    assert last.place_in([user(f"Is that right? {summary}")]) is None, "it is the newest message"


@pytest.mark.parametrize("asked", NO_SUMMARY_OF_TALK)
def test_other_requests_are_none_for_a_summary_of_the_conversation(asked: str) -> None:
    assert not asks_for_summary(asked)


# -- how texts are quoted ----------------------------------------------------------------------------------------------

QUOTED: dict[str, Callable[[Messages, str], Messages]] = {
    "to be improved": lambda before, answer: [user(f"Improve this text: {answer}")],
    "as a plan, behind what each session begins with": lambda before, answer: [before[0], user(f"Do this:\n{answer}")],
    "as a file": lambda before, answer: [user(f"I added a file:\n{answer}"), assistant("Ok."), user("Shorten it.")],
    "beside a question": lambda before, answer: [ClientMessage("system", f"The text:\n{answer}"), user("Is it sound?")],
    "as a message before another": lambda before, answer: [user(f"Selected:\n{answer}"), user("Is it sound?")],
    "as it was": lambda before, answer: [*before, NEW],
}


@pytest.mark.parametrize("tell", QUOTED.values(), ids=QUOTED)
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_an_answer_that_is_quoted_is_no_summary(
    conversation: tuple[Messages, str], tell: Callable[[Messages, str], Messages]
) -> None:
    """Each answer of a conversation, told elsewhere."""
    answer, _ = conversation
    ends = [at for at, one in enumerate(answer, 1) if one.role == "assistant" and len(one.text) > 2 * DISTINCT_CHARS]
    for end in ends:
        last = LastAnswer.of(answer[:end])
        assert last.place_in(tell(answer[:end], answer[end - 1].text)) is None
