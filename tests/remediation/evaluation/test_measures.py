import json
from dataclasses import replace

import pytest

from dominds.llm.messages import Message, Role, ToolCall
from remediation.evaluation.dialogs import Dialog, Probe, Turn
from remediation.evaluation.measures import State, answerable, normalise, run, values_of
from remediation.evaluation.policies import POLICIES, toolbox_of
from remediation.evaluation.report import Updates, tally, updates_of
from remediation.evaluation.simulation import Recalling, Setup, Simulation
from remediation.similarity.embeddings import LexicalEmbedder
from remediation.tokens.counting import counter_for

COUNTER = counter_for("gpt-4", "characters")
TOOLBOX = toolbox_of(COUNTER, LexicalEmbedder())
BUDGET = 1_000


def setup(policy: str, share: float = 0.0, budget: int = BUDGET) -> Setup:
    return Setup(POLICIES[policy], budget, Recalling(share), COUNTER, TOOLBOX)


def filler(number: int) -> str:
    subjects = ("the garden", "a train ride", "new curtains", "the neighbours", "a soup", "the piano", "rain", "a book")
    return f"Number {number}: today it was about {subjects[number % 8]}, nothing that anybody would have to remember."


def turn(number: int, text: str) -> Turn:
    role = (Role.USER, Role.ASSISTANT)[number % 2]
    return Turn(f"t{number}", role.value, Message(role, text), text)


def talk(facts: dict[int, str], probes: tuple[Probe, ...], length: int = 60) -> Dialog:
    texts = {number: facts.get(number, filler(number)) for number in range(length)}
    return Dialog("talk", "made", tuple(turn(number, text) for number, text in texts.items()), probes)


WHEN = Probe("When does Kim's ferry to Bergen leave?", "plain", ("t4",))
BOTH = Probe("Which ferry does Kim take, and who meets her?", "two", ("t4", "t20"))
FACTS = {4: "Kim's ferry to Bergen leaves at 18:40.", 20: "At the ferry Solveig meets Kim."}
TALK = talk(FACTS, (WHEN, BOTH))


def test_what_a_message_quotes_was_needed_just_before_it() -> None:
    turns = [*TALK.turns[:50], replace(turn(50, "Really?"), quotes=(FACTS[4], FACTS[20], "Nobody said this."))]
    fates = run(Dialog("thread", "made", tuple(turns)), setup("window")).fates
    assert [(fate.measure, fate.state) for fate in fates] == [("quoted next", State.ONE_SEARCH_AWAY)] * 2


def test_a_window_loses_what_is_old_and_recall_brings_it_back() -> None:
    without, with_recall = run(TALK, setup("window")), run(TALK, setup("window", 0.35))
    assert [fate.state for fate in without.fates] == [State.ONE_SEARCH_AWAY] * 2
    assert [fate.state for fate in with_recall.fates] == [State.IN_SIGHT] * 2
    assert [fate.position for fate in without.fates] == ["first quarter", "second quarter"]


UPDATED = {4: "The launch date is 2027-03-19.", 20: "Update: the launch date moved to 2027-08-21."}
LAUNCH = Probe("When is the launch?", "update", ("t20",), sentences=("2027-08-21",), superseded=("2027-03-19",))


@pytest.mark.parametrize(
    ("policy", "share", "counted"),
    [
        ("none", 0.0, Updates(1, both=1)),
        ("window", 0.0, Updates(1)),
        ("window", 0.35, Updates(1, new_alone=1)),  # recall marks the old one
        ("breaking", 0.0, Updates(1, new_alone=1)),
    ],
)
def test_an_old_value_counts_while_nothing_marks_it(policy: str, share: float, counted: Updates) -> None:
    assert updates_of(run(talk(UPDATED, (LAUNCH,)), setup(policy, share)).fates) == counted
    assert updates_of(run(TALK, setup(policy, share)).fates) == Updates()


def test_an_old_value_alone_is_told_from_none() -> None:
    probe = replace(LAUNCH, sentences=("2028",))
    assert updates_of(run(talk(UPDATED, (probe,)), setup("none")).fates) == Updates(1, old_alone=1)


def test_what_nobody_can_find_by_the_question_is_lost() -> None:
    probe = Probe("Where was she born?", "plain", ("t4",))
    (fate,) = run(talk({4: "Zagreb"}, (probe,)), setup("window")).fates
    assert fate.state is State.LOST


def test_without_a_policy_everything_is_in_sight_and_too_large() -> None:
    result = run(TALK, setup("none"))
    assert all(fate.state is State.IN_SIGHT for fate in result.fates)
    assert (result.rewrites, result.over_budget > 0) == (0, True)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "none"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_no_request_of_any_policy_is_over_the_budget(policy: str, share: float) -> None:
    result = run(TALK, setup(policy, share))
    assert result.over_budget == 0
    assert result.rewrites > 0
    assert result.tokens_cached + result.tokens_recalled < result.tokens_sent
    assert (result.tokens_recalled > 0) == (share > 0)


def test_a_question_whose_answer_was_never_said_is_not_asked() -> None:
    probes = (Probe("Who?", "answer", answers=("Solveig", "nobody")), Probe("Why?", "answer", answers=("because",)))
    assert answerable(talk(FACTS, probes)) == probes[:1]


def test_an_answer_is_in_sight_in_any_of_its_forms() -> None:
    probes = (Probe("Who meets Kim at the ferry?", "answer", answers=("SOLVEIG!", "Sol")),)
    (fate,) = run(talk(FACTS, probes), setup("window", 0.35)).fates
    assert (fate.measure, fate.state) == ("answers in sight", State.IN_SIGHT)


def call(number: int, name: str, arguments: object, result: str) -> tuple[Turn, Turn]:
    made = ToolCall(f"c{number}", name, json.dumps(arguments))
    return (
        Turn(f"{number}", "assistant", Message(Role.ASSISTANT, "", (made,))),
        Turn(f"{number}r", "tool", Message(Role.TOOL, result, tool_call_id=made.id), result),
    )


def agent_dialog(asked: str) -> Dialog:
    first = (turn(0, "My card is card_88123, please keep it."), *call(1, "find_user", {"name": "Kim"}, "user kim_204"))
    middle = tuple(turn(number, filler(number) * 2) for number in range(2, 40))
    last = (turn(40, asked), *call(41, "pay", {"card": "card_88123", "user": "kim_204", "amount": 12}, "paid"))
    return Dialog("agent", "made", (*first, *middle, *last), (), "Never ask for user lee_300.")


def test_values_needed_later_stood_before_the_newest_units() -> None:
    fates = run(agent_dialog("Now pay the thing."), setup("window")).fates
    assert [(fate.measure, fate.kind, fate.speaker) for fate in fates] == [
        ("needed later", "identifier", "user"),
        ("needed later", "identifier", "tool"),
    ]
    assert tally(fates).in_sight == 0
    message = run(agent_dialog("Now pay with card_88123 of kim_204."), setup("window")).fates
    assert message == (), "what stands in the newest units needs no remembering"


def test_recall_brings_the_values_that_the_message_is_about() -> None:
    fates = run(agent_dialog("Now pay with my card, please, for the user that you found."), setup("window", 0.5)).fates
    assert tally(fates).in_sight == 2


def test_values_are_long_enough_and_hold_a_digit() -> None:
    arguments = {"a": "HX12", "b": ["abcd", 12345, 12], "c": {"d": True, "e": None, "f": "x1"}, "g": 12.75}
    assert list(values_of(arguments)) == ["HX12", "12345", "12.75"]
    assert list(values_of('{"broken": 12345')) == ['{"broken": 12345']


def test_words_are_compared_without_case_and_punctuation() -> None:
    assert normalise("It's  18:40, KIM_2!\n") == "it s 18 40 kim 2"


def test_nothing_is_recalled_before_the_first_rewrite() -> None:
    simulation = Simulation(talk(FACTS, (), length=6), setup("window", 0.5, budget=100_000))
    for _ in simulation.steps():
        assert simulation.request(simulation.view).recalled.found == ()
