"""Which dialog a history finds, where several begin or end alike, and what a fork takes along."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.extras.v1 import conversations
from dialogs.extras.v1.history import Call, ClientMessage
from dialogs.extras.v1.matching.incoming import RESULT_FOLLOWS
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.transcripts import CANDIDATES
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.extras.v1.conversing import ANSWER, as_history, conversation, noted, posted, texts_in, tool
from tests.dialogs.factories import AgentFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_conversations_that_begin_alike_stay_apart(key: ApiKey, agent: str) -> None:
    first, second = conversation(key, agent, "Hello", "Tell of cats"), conversation(key, agent, "Hello", "Tell of dogs")
    assert first.pk != second.pk
    assert posted(key, agent, *as_history("Hello", "Tell of cats"), "More").pk == first.pk
    assert posted(key, agent, *as_history("Hello", "Tell of dogs"), "More").pk == second.pk
    assert posted(key, agent, *as_history("Hello", "Tell of fish"), "More").pk not in (first.pk, second.pk)
    assert Dialog.objects.count() == 3


def test_of_two_that_end_alike_neither_is_taken(key: ApiKey, agent: str) -> None:
    ending = ("So what was noted in the log?", "And is there more to it than that?")
    first = conversation(key, agent, "A secret of one", *ending)
    second = conversation(key, agent, "A secret of another", *ending)
    other = posted(key, agent, *as_history(*ending), "Go on")
    assert other.pk not in (first.pk, second.pk)
    assert not any("secret" in text for text in texts_in(other))
    assert posted(key, agent, *as_history("A secret of one", *ending), "Go on").pk == first.pk


@pytest.mark.parametrize("fields", [{"end_user": "grace"}, {}])
def test_people_behind_one_key_are_never_mixed(key: ApiKey, agent: str, fields: Any) -> None:
    of_ada = conversation(key, agent, "Hello", "Tell of cats", end_user="ada")
    of_other = posted(key, agent, *as_history("Hello", "Tell of cats"), "More", **fields)
    assert of_other.pk != of_ada.pk
    assert posted(key, agent, *as_history("Hello", "Tell of cats"), "More", end_user="ada").pk == of_ada.pk


def test_an_older_conversation_is_found_by_its_answer_alone(key: ApiKey, agent: str) -> None:
    first = posted(key, agent, "<context>of today</context> What is new?")
    answer = noted("<context>of today</context> What is new?")
    for number in range(CANDIDATES + 1):
        conversation(key, agent, f"Something else {number}")
    assert posted(key, agent, "What is new?", answer, "And then?").pk == first.pk


def test_a_failed_message_is_answered_again_in_its_dialog(key: ApiKey, script: Script) -> None:
    script({"match": "fail", "error": "auth"}, ANSWER)
    agent = str(AgentFactory.create().pk)
    conversation(key, agent, "Hello")
    failed = posted(key, agent, *as_history("Hello"), "Now fail")
    assert failed.state == "failed"
    script(ANSWER)
    again = posted(key, agent, *as_history("Hello"), "Now fail")
    assert again.pk == failed.pk
    assert texts_in(again) == [*as_history("Hello"), *as_history("Now fail")]


def test_a_fork_shares_what_stood_before_and_repeats_no_rewrite(key: ApiKey, script: Script) -> None:
    words = "Understood: " + "the cargo is forty barrels of oil, and the cat may stay. " * 12
    script({"text": words, "usage": "estimate"}, context_length=16_000)
    agent = str(AgentFactory.create(context_policy="retention").pk)
    asked: list[str] = []
    texts: list[str] = []
    while not RemediationRun.objects.exists():
        asked.append(f"Message {len(asked)}: " + "do consider this carefully. " * 20)
        origin = posted(key, agent, *texts, asked[-1])
        texts += [asked[-1], words]
    origin = posted(key, agent, *texts, "One more")
    posted(key, agent, *texts, "One more", words, "And another")
    calls = origin.generations.count()
    fork = posted(key, agent, *texts, "Another one instead")
    assert fork.pk != origin.pk
    assert texts_in(fork) == [*texts_in(origin)[: len(texts)], "Another one instead", words]
    assert fork.generations.count() == 1, "one reply, and nothing for a rewrite"
    assert (
        RemediationRun.objects.filter(dialog=fork).count() == RemediationRun.objects.filter(dialog=origin).count() == 1
    )
    assert fork.removed_units.count() == origin.removed_units.count() > 0
    assert posted(key, agent, *texts, "Another one instead", words, "Go on").pk == fork.pk
    assert origin.generations.count() == calls


def test_a_fork_takes_nothing_along_of_what_came_later(key: ApiKey, agent: str) -> None:
    origin = conversation(key, agent, "Hello", "Tell of cats", "A secret")
    origin.reminders.create(position=0, text="A secret")
    fork = posted(key, agent, *as_history("Hello", "Tell of cats"), "Something else")
    assert texts_in(fork) == as_history("Hello", "Tell of cats", "Something else")
    assert not fork.reminders.exists()
    assert (fork.forked_from, fork.own_from) == (origin, 5)
    assert Dialog.objects.get(pk=origin.pk).fork_count == 1
    assert f"/d/{origin.pk}/" in browser_of(key.owner).get(f"/d/{fork.pk}/").content.decode()
    assert fork.last_position == fork.last_turn_seq == 6
    assert min(data["seq"] for data in event_data(fork, "turn")) == 5, "what was copied did not happen here"


def listed(key: ApiKey) -> set[str]:
    page = browser_of(key.owner).get("/dialogs/").content.decode()
    return set(re.findall(r"/d/([0-9a-f-]{36})/", page))


def test_other_answers_are_versions_of_one_dialog_in_the_list(key: ApiKey, agent: str) -> None:
    """As chat programs ask for them: the same without the last answer, here three times, and an older one once."""
    first = conversation(key, agent, "Hello", "Tell of cats")
    others = [posted(key, agent, *as_history("Hello"), "Tell of cats") for _ in range(3)]
    assert len({first.pk, *(other.pk for other in others)}) == 4, "nothing that was said is removed"
    assert listed(key) == {str(others[-1].pk)}
    assert {(other.forked_from_id, other.own_from, other.title) for other in others} == {(first.pk, 3, "Hello")}
    page = browser_of(key.owner).get(f"/d/{others[-1].pk}/").content.decode()
    assert "4/4" in page and f"/d/{others[1].pk}/" in page
    Turn.objects.filter(dialog=others[1].pk, position=4).update(text="Cats sleep, most of the time, in the sun.")
    back = posted(key, agent, *as_history("Hello"), "Tell of cats", "Cats sleep, most of the time, in the sun.", "More")
    assert (back.pk, listed(key)) == (others[1].pk, {str(others[1].pk)}), "its user went back to the third answer"
    dogs = posted(key, agent, *as_history("Hello"), "Tell of dogs")
    assert listed(key) == {str(back.pk), str(dogs.pk)}, "another question is a conversation beside it"
    again = posted(key, agent, *as_history("Hello"), "Tell of dogs")
    assert listed(key) == {str(back.pk), str(again.pk)}
    first_again = posted(key, agent, *as_history("Hello", "Tell of cats"), "And then?")
    assert (len(listed(key)), str(first_again.pk) in listed(key)) == (2, True)


def test_what_a_person_opened_keeps_its_place_in_the_list(key: ApiKey, agent: str) -> None:
    first = conversation(key, agent, "Hello", "Tell of cats")
    Dialog.objects.filter(pk=first.pk).update(origin=Dialog.Origin.PERSON, expires_at=None)
    other = posted(key, agent, *as_history("Hello"), "Tell of cats")
    assert listed(key) == {str(first.pk), str(other.pk)}


def test_files_behind_the_conversation_are_told_as_they_change(key: ApiKey, agent: str) -> None:
    """As aider has it: its files as they are now between the conversation and the newest message, which a reminder ends
    for as long as it is the newest, and after each answer a word on what came of it."""
    head = ["Here are summaries of some files in my repository.", "Ok, I won't edit those without asking first."]
    reminder = "\n\nReturn the whole file, never a part of it."
    lines: list[str] = []
    stored = list(head)
    versions = (1, 2, 2, 3, 1, 4)
    for number, version in enumerate(versions):
        files = [
            f"I have *added these files to the chat*: made.txt, version {version}",
            "Ok, any changes will be to those.",
        ]
        asked, answer = f"Task {number}", noted(f"Task {number}{reminder}")
        dialog = posted(key, agent, *head, *lines, *files, f"{asked}{reminder}")
        is_new = number == 0 or version != versions[number - 1]
        stored += [*lines[-2:], *(files if is_new else []), f"{asked}{reminder}", answer]
        lines += [asked, answer, f"I committed the changes with git hash {number}", "Ok."]
    assert texts_in(dialog) == stored
    assert Dialog.objects.count() == 1
    assert posted(key, agent, *head, *files, "Another session").pk != dialog.pk
    assert posted(key, agent, *head, *lines[:4], *files, "From an older place").pk != dialog.pk


def test_what_another_model_answered_since_is_told(key: ApiKey, agent: str) -> None:
    first = conversation(key, agent, "Hello", "Tell of cats")
    since = ["And of dogs?", "They bark, says another model."]
    assert posted(key, agent, *as_history("Hello", "Tell of cats"), *since, "Go on").pk == first.pk
    assert texts_in(first) == [*as_history("Hello", "Tell of cats"), *since, *as_history("Go on")]


TASKS = ("Generate a concise title", "Name one to three tags", "Suggest five questions that the user may ask next")


@pytest.mark.parametrize("stored", [True, False], ids=["quotes a dialog", "quotes none"])
def test_prompts_that_quote_a_conversation_are_background(key: ApiKey, agent: str, *, stored: bool) -> None:
    """Two turns as a chat page has them, with its prompts for title, tags and next questions, in words of its own."""
    texts: list[str] = []
    for asked in ("What ships are there?", "Which of them has a cat?"):
        if stored:
            posted(key, agent, *texts, asked)
        texts += [asked, noted(asked)]
        history = "\n".join(f"{('USER', 'ASSISTANT')[number % 2]}: {text}" for number, text in enumerate(texts))
        for task in TASKS:
            posted(key, agent, f"{task} for this:\n\n{history}")
    page = browser_of(key.owner).get("/").content.decode()
    listed = set(re.findall(r"/d/[0-9a-f-]{36}/", page))
    assert len(listed) == (1 if stored else 6)
    assert (TASKS[0] in page) != stored
    assert posted(key, agent, *texts, "Go on").origin == Dialog.Origin.KEY


def test_two_turns_of_open_webui_are_one_dialog_in_the_list(key: ApiKey, agent: str) -> None:
    """What its page was seen to ask, in order: a title while the first message is under way,
    then next messages and tags."""

    def beside(task: str, *texts: str) -> None:
        history = "\n".join(f"{('USER', 'ASSISTANT')[number % 2]}: {text}" for number, text in enumerate(texts))
        posted(key, agent, f"### Task:\n{task}\n### Chat History:\n<chat_history>\n{history}\n</chat_history>")

    beside("A title", "Hi")
    dialog = posted(key, agent, "Hi", tools=[{"name": "ask_user", "description": "", "parameters": {"type": "object"}}])
    beside("What the user may say next", *as_history("Hi"))
    beside("One to three tags", *as_history("Hi"))
    assert posted(key, agent, *as_history("Hi"), "And now?").pk == dialog.pk
    beside("What the user may say next", *as_history("Hi", "And now?"))
    page = browser_of(key.owner).get("/").content.decode()
    assert set(re.findall(r"/d/([0-9a-f-]{36})/", page)) == {str(dialog.pk)}


def test_a_title_may_be_asked_for_before_its_subject(key: ApiKey, agent: str) -> None:
    """As opencode does."""
    messages = (ClientMessage("user", "Generate a title for this conversation:\n"), ClientMessage("user", '"Task 0"'))
    run = conversations.begin(key, ChatRequest(model=agent, messages=messages))
    assert Dialog.objects.get(pk=run.dialog_id).origin == Dialog.Origin.BACKGROUND


@pytest.mark.parametrize("name", ["system-reminder", "session_context"])
def test_what_a_program_tells_beside_the_users_words_may_change(key: ApiKey, agent: str, name: str) -> None:
    """As Qwen Code and Gemini CLI tell the files of a folder with the first message of a session that they resume."""

    def beside(files: str, words: str = "Hi") -> str:
        return f"<{name}>Files:{files}</{name}>\n<{name}>Tuesday</{name}>\n{words}"

    first = posted(key, agent, beside(""))
    answer = noted(beside(""))
    assert posted(key, agent, beside(" made.txt").replace("Tuesday", ""), answer, "And now?").pk == first.pk
    assert posted(key, agent, beside(" made.txt", "Hello"), answer, "And now?").pk != first.pk


def test_what_aider_asks_for_commits_and_summaries_is_background(key: ApiKey, agent: str) -> None:
    system = (
        "You are an expert software engineer that generates concise, one-line Git commit messages based on the diffs."
    )
    assert posted(key, agent, "# Diffs: ...", instructions=system).origin == Dialog.Origin.BACKGROUND
    system = "*Briefly* summarize this partial conversation about programming.\nInclude less detail about older parts."
    assert posted(key, agent, "# USER\nTask 1", instructions=system).origin == Dialog.Origin.BACKGROUND
    system = "You write good git commit messages."
    assert posted(key, agent, "What did I change?", instructions=system).origin == Dialog.Origin.KEY


LIBRECHAT = (
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the "
    "detected language (5 words or less, no punctuation or quotation)\n\nUser: Hi"
)
ANALYSE = "Analyze this conversation and provide:\nwhat the customer wants, and who is to blame.\n\nUser: Hi"


@pytest.mark.parametrize(
    ("text", "fields", "origin"),
    [
        (LIBRECHAT, {}, "background"),
        (LIBRECHAT, {"tools": [tool("extract")], "required_tool": "extract"}, "background"),
        (LIBRECHAT, {"tools": [tool("extract"), tool("search")], "required_tool": "*"}, "key"),
        (ANALYSE, {}, "key"),
        (
            "Your task is to reflect the speaker's likely facial expression through a fitting emoji.\n\nMessage: "
            "```Hi```",
            {},
            "background",
        ),
        (
            'You have been provided with a set of responses from various models to the latest user query: "Hi"',
            {},
            "background",
        ),
        ("### Aufgabe:\nFinde einen Titel.\n<chat_history>\nUSER: Hallo\n</chat_history>", {}, "background"),
        ("### Aufgabe:\nFinde einen Titel.", {}, "key"),
        (
            "Query: History:\nUSER: Hi\nQuery: Hi",
            {"instructions": "Available Tools: []\n\nYour task is to choose"},
            "background",
        ),
        ("Query: what is SQL?", {}, "key"),
    ],
)
def test_prompts_of_chat_pages_are_background(
    key: ApiKey, agent: str, text: str, fields: dict[str, Any], origin: str
) -> None:
    dialog = posted(key, agent, text, **fields)
    assert (dialog.origin, dialog.expires_at is not None) == (origin, origin == "background")


@pytest.mark.parametrize(
    ("asked", "answer", "task"),
    [
        ("法国的首都是哪里？", "法国的首都是巴黎。", "请为下面的对话生成三个标签：\n用户：{asked}\n助手：{answer}"),
        ("Какая столица Франции?", "Столица Франции — Париж.", "Придумай заголовок:\n{asked}\n{answer}"),
        ("ما عاصمة فرنسا؟", "عاصمة فرنسا هي باريس.", "اقترح ثلاثة أسئلة تالية:\n{asked}\n{answer}"),
        ("フランスの首都は？", "パリです。フランスの首都です。", "次の会話に題名を付けてください。\n{asked}\n{answer}"),
    ],
    ids=["zh", "ru", "ar", "ja"],
)
def test_prompts_in_other_languages_quote_short_answers(
    key: ApiKey, script: Script, asked: str, answer: str, task: str
) -> None:
    script({"text": answer, "usage": "estimate"})
    agent = str(AgentFactory.create().pk)
    dialog = posted(key, agent, asked)
    assert posted(key, agent, task.format(asked=asked, answer=answer)).origin == Dialog.Origin.BACKGROUND
    again = posted(key, agent, asked, answer, asked)
    assert (again.pk, again.origin, again.expires_at) == (dialog.pk, Dialog.Origin.KEY, None)


@pytest.mark.parametrize(
    "topic",
    [
        "Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, "
        "quotation marks, periods, symbols, bold text, or additional text. Remove enclosing quotation marks.",
        "使用四到五个字直接返回这句话的简要主题，不要解释、不要标点、不要语气词、不要多余文本，不要加粗，如果没有主题，请直接返回“闲聊”",
    ],
    ids=["en", "zh"],
)
def test_a_title_asked_for_behind_the_conversation_stays_apart(key: ApiKey, agent: str, topic: str) -> None:
    dialog = conversation(key, agent, "Hello", "Tell of cats")
    beside = posted(key, agent, *as_history("Hello", "Tell of cats"), topic)
    assert (beside.origin, beside.expires_at is not None, beside.forked_from) == ("background", True, None)
    assert texts_in(beside)[:3] == [*as_history("Hello"), "Tell of cats"], "its model sees what it is about"
    again = posted(key, agent, *as_history("Hello", "Tell of cats"), "And of dogs?")
    assert (again.pk, again.origin, again.expires_at) == (dialog.pk, "key", None)
    assert topic not in texts_in(again)


def test_a_dialog_that_is_named_stays_a_conversation_whatever_is_said(key: ApiKey, agent: str) -> None:
    dialog = conversation(key, agent, "Hello", "Tell of cats")
    again = posted(key, agent, "Generate a title for this conversation", dialog_id=dialog.pk)
    assert (again.pk, again.origin, again.expires_at) == (dialog.pk, "key", None)


def test_the_look_up_does_not_grow_with_what_was_said(key: ApiKey, agent: str) -> None:
    counts = []
    for length in (2, 12):
        asked = [f"Message {number} of {length}" for number in range(length)]
        conversation(key, agent, *asked)
        with CaptureQueriesContext(connection) as captured:
            conversations.begin(key, request(agent, as_history(*asked), "More"))
        counts.append(sum(query["sql"].startswith("SELECT") for query in captured.captured_queries))
    assert counts[0] == counts[1]


def request(agent: str, before: Sequence[str], new: str) -> ChatRequest:
    lines = [ClientMessage(("user", "assistant")[number % 2], text) for number, text in enumerate([*before, new])]
    return ChatRequest(model=agent, messages=tuple(lines))


@pytest.mark.parametrize("texts", [(), as_history("Hello")], ids=["the first", "a later one"])
def test_what_failed_and_is_sent_again_stays_in_its_dialog(key: ApiKey, script: Script, texts: Sequence[str]) -> None:
    """As official clients do by themselves, told of an error that passes."""
    script(ANSWER)
    agent = str(AgentFactory.create().pk)
    if texts:
        posted(key, agent, texts[0])
    script({"error": "auth"})
    asked = [ClientMessage(("user", "assistant")[number % 2], text) for number, text in enumerate((*texts, "Go on"))]
    for _ in range(3):
        drive(conversations.begin(key, ChatRequest(model=agent, messages=tuple(asked))).dialog_id)
    dialog = Dialog.objects.get()
    assert dialog.state == "failed"
    script(ANSWER)
    assert texts_in(posted(key, agent, *texts, "Go on")) == [*texts, *as_history("Go on")]
    assert Dialog.objects.count() == 1
    another = posted(key, agent, *texts, "Go on")
    assert another.pk != dialog.pk, "one that was answered is asked anew"


def test_a_first_message_whose_tool_was_called_is_no_failure(key: ApiKey, script: Script) -> None:
    script({"tool_calls": [{"name": "look", "arguments": {}}]})
    agent = str(AgentFactory.create().pk)
    tool = {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}
    runs = []
    for _ in range(2):
        runs.append(
            conversations.begin(key, ChatRequest(model=agent, messages=(ClientMessage("user", "Hi"),), tools=[tool]))
        )
        drive(runs[-1].dialog_id)
    assert runs[0].dialog_id != runs[1].dialog_id


@pytest.mark.parametrize("text", ["", "I look."])
def test_a_resent_message_whose_tool_was_called_is_stored_once(key: ApiKey, script: Script, text: str) -> None:
    """As where the answer was lost on its way: it is asked anew, and its new version is the one that is listed."""
    script({"match": "Look", "text": text, "tool_calls": [{"name": "look", "arguments": {}}]}, ANSWER)
    agent = str(AgentFactory.create().pk)
    posted(key, agent, "Hello")
    sent = {posted(key, agent, *as_history("Hello"), "Look", tools=[tool("look")]).pk for _ in range(3)}
    assert all(texts_in(Dialog.objects.get(pk=pk)) == [*as_history("Hello"), "Look", text] for pk in sent)
    (shown,) = Dialog.objects.filter(archived_at=None)
    call = shown.turns.latest("position").tool_calls[0]  # type: ignore[index]
    lines = [ClientMessage("user", "Hello"), ClientMessage("assistant", noted("Hello")), ClientMessage("user", "Look")]
    lines += [ClientMessage("assistant", text, (Call(**call),)), ClientMessage("tool", "A cat", call_id=call["id"])]
    assert conversations.begin(key, ChatRequest(model=agent, messages=tuple(lines))).dialog_id == shown.pk


def test_calls_and_results_may_be_told_as_text(key: ApiKey, script: Script) -> None:
    """As smolagents does: each step was a dialog of its own."""
    tool = {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}
    script({"match": "enough", "text": "It is warm."}, {"tool_calls": [{"name": "look", "arguments": {}}]})
    agent = str(AgentFactory.create().pk)
    lines = [ClientMessage("user", "Hi")]
    for number in range(4):
        request = ChatRequest(model=agent, messages=tuple(lines), tools=[tool] if number < 3 else [])
        run = conversations.begin(key, request)
        drive(run.dialog_id)
        answer = Turn.objects.filter(dialog=run.dialog_id, role=Turn.Role.ASSISTANT).latest("seq")
        called = [{"id": call["id"], "function": call["name"]} for call in answer.tool_calls or ()]
        lines.append(ClientMessage("assistant", f"Calling tools:\n{called}"))
        lines.append(ClientMessage("user", "Observation: " + ("dark", "cold", "enough")[min(number, 2)]))
    dialog = Dialog.objects.get()
    result_follows = RESULT_FOLLOWS
    assert texts_in(dialog) == [
        "Hi",
        "",
        result_follows,
        "Observation: dark",
        "",
        result_follows,
        "Observation: cold",
        "",
        result_follows,
        "Observation: enough",
        "It is warm.",
    ]


def test_a_schema_may_name_the_largest_number(key: ApiKey, agent: str) -> None:
    """PostgreSQL gives it back as an integer of 309 digits."""
    schema = {"type": "object", "properties": {"x": {"type": "number", "maximum": 1.7976931348623157e308}}}
    dialog = posted(key, agent, "Hello", tools=[{**tool("look"), "parameters": schema}])
    assert texts_in(dialog)[-1] == noted("Hello")
