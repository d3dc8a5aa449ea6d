"""The policies there are: our own, those of plug-ins, and plug-ins that cannot be used."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from remediation import policies
from remediation.policies import none, retention
from remediation.policies.policy import ByHand, Policy
from remediation.policies.registry import GROUP, choice_for, choices, collect, own, registry, title_of, with_verb

ADDED = """
from remediation.policies.policy import Policy
POLICY = Policy(name="mine", label="mine", sentence="Does nothing.")
"""
PLUGIN = """
from remediation.policies.policy import ByHand, Policy
POLICY = Policy(name="mine", label="mine", sentence="Does nothing.")
BREAKING = Policy(name="breaking", label="mine too", sentence="Does nothing.")
PRUNER = Policy(name="pruner", label="p", sentence="Does nothing.", title="Pruned", rewrite=print,
    by_hand=ByHand(verb="prune", label="p", button="p", does="p."))
OTHER = "a text"
FIRST = Policy(name="first", label="first", sentence="Does nothing.", place=5)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_plugin.py").write_text(PLUGIN)
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('no such GPU')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("some_plugin", "broken_plugin"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def entry(value: str) -> EntryPoint:
    return EntryPoint("plugin", value, GROUP)


def test_names_and_verbs_of_our_own_are_unique() -> None:
    names = [policy.name for policy in own()]
    verbs = [policy.by_hand.verb for policy in own() if policy.by_hand]
    assert len(set(names)) == len(names)
    assert len(set(verbs)) == len(verbs)


def test_our_own_are_in_the_order_that_people_know() -> None:
    """One more may stand anywhere among them."""
    names = ["none", "retention", "prune", "auto_manage", "summarize", "breaking", "autocompaction", "fresh_start"]
    assert [policy.name for policy in own() if policy.name in names] == names


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module beside our own, and nothing else."""
    (tmp_path / "added_policy.py").write_text(ADDED)
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    registry.cache_clear()
    yield
    sys.modules.pop("remediation.policies.added_policy", None)
    registry.cache_clear()


def test_a_policy_of_our_own_is_one_file(added: None) -> None:
    assert [policy.name for policy in choices()][-1] == "mine"
    assert choice_for("mine", "").policy.label == "mine"


def test_a_plugins_policy_follows_our_own(plugin: None) -> None:
    result = collect([entry("some_plugin:POLICY")])
    assert [policy.name for policy in result.policies] == [*(policy.name for policy in own()), "mine"]
    assert result.problems == ()
    assert collect([entry("some_plugin:FIRST")]).policies[0].name == "first", "unless it has a place before them"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("some_plugin:BREAKING", "breaking already"),
        ("some_plugin:PRUNER", "verb prune already"),
        ("some_plugin:OTHER", "found str"),
        ("some_plugin:MISSING", "MISSING"),
        ("no_such_module:POLICY", "no_such_module"),
        ("broken_plugin:POLICY", "no such GPU"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_and_left_out(plugin: None, value: str, reason: str) -> None:
    result = collect([entry(value), entry("some_plugin:POLICY")])
    assert [policy.name for policy in result.policies][len(own()) :] == ["mine"]
    (problem,) = result.problems
    assert value in str(problem)
    assert reason in str(problem)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "Mine"},
        {"name": "a_name_of_17_chars"},
        {"label": ""},
        {"sentence": ""},
        {"target_percent": 0},
        {"target_percent": 100},
        {"rewrite": print},  # no title
        {"by_hand": ByHand(verb="mine", label="m", button="m", does="m.")},  # nothing to perform
    ],
)
def test_a_policy_without_sense_is_refused_where_written(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"polic|name|target|%"):
        Policy(**{"name": "mine", "label": "mine", "sentence": "Does nothing.", **fields})


@pytest.mark.parametrize("verb", ["", "clear", "milestone", "Drop", "drop-all"])
def test_a_verb_is_no_other_request(verb: str) -> None:
    with pytest.raises(ValueError, match="is no verb"):
        ByHand(verb=verb, label="m", button="m", does="m.")


@pytest.mark.parametrize(
    ("name", "kind", "policy", "problem"),
    [
        ("", "", "none", ""),
        ("", "lmstudio", "autocompaction", ""),
        ("none", "lmstudio", "none", ""),
        ("retention", "", "retention", ""),
        ("autocompaction", "lmstudio", "autocompaction", ""),
        ("", "ollama", "summarize", ""),  # servers of one's own are watched by default
        ("", "llamacpp", "summarize", ""),
        ("", "vllm", "summarize", ""),
        (
            "autocompaction",
            "",
            "none",
            "autocompaction is only for models of LM Studio's kind, so nothing is compacted.",
        ),
        ("gone", "lmstudio", "none", "The policy gone is not installed, so nothing is compacted."),
        ("fresh_start", "", "none", "The policy fresh_start is not installed, so nothing is compacted."),
    ],
)
def test_the_policy_in_force(name: str, kind: str, policy: str, problem: str) -> None:
    result = choice_for(name, kind)
    assert (result.policy.name, result.problem) == (policy, problem)


def test_rows_of_a_policy_that_is_gone_have_a_title() -> None:
    assert title_of("retention") == retention.POLICY.title
    assert title_of("gone") == "Context rewritten (gone)"


def test_verbs_lead_to_their_policies() -> None:
    assert with_verb("prune") is retention.PRUNE
    assert with_verb("") is with_verb("guess") is None
    assert not none.POLICY.counts
