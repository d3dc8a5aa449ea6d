"""``team.yaml`` becomes rows: what is sound works, the rest is reported by file, path and reason."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from dialogs import checks
from dialogs.agents import team_file
from dialogs.agents.fields import check_fields
from dialogs.agents.team_file import DEMO_FILE, current_team, read_team, synchronise
from dialogs.context.limits import policy_of, unusable_reason
from dialogs.models import Agent

pytestmark = pytest.mark.django_db

Minds = Callable[..., Path]

LLM = """
providers:
  test:
    apiType: openai-compatible
    baseUrl: http://127.0.0.1:9/v1
    models: {big: {context_length: 128000}, small: {context_length: 8000}}
  local:
    apiType: lmstudio
    baseUrl: http://127.0.0.1:9/v1
    models: {qwen: {}}
"""
ANNA = "{provider: test, model: big}"


@pytest.fixture
def minds(tmp_path: Path, settings: Any) -> Minds:
    settings.MINDS_DIR = tmp_path
    (tmp_path / "llm.yaml").write_text(LLM)

    def write(content: str, name: str = "team.yaml") -> Path:
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def problems(content: str, minds: Minds) -> dict[str, str]:
    minds(content)
    return {problem.path: problem.reason for problem in current_team().problems}


def own() -> list[str]:
    return list(Agent.objects.filter(is_demo=False, enabled=True).values_list("pk", flat=True))


# What the file says


def test_toolsets_and_settings_for_the_model_are_stored(minds: Minds) -> None:
    minds(
        "members: {anna: {provider: test, model: big, toolsets: [ws_read], model_params: {general: {temperature: "
        "0.2}}}}"
    )
    assert synchronise().problems == ()
    anna = Agent.objects.get(pk="anna")
    assert (anna.toolsets, anna.model_params) == (["ws_read"], {"general": {"temperature": 0.2}})


def test_what_is_wrong_with_them_is_reported_and_grants_nothing(minds: Minds) -> None:
    result = problems(
        """
members:
  anna: {provider: test, model: big, toolsets: [ws_read, os], model_params: [temperature]}
  ben: {provider: test, model: big, toolsets: ["*", "!ws_mod"], model_params: {general: {since: 2026-01-01, 7: 8}}}
""",
        minds,
    )
    assert set(result) == {
        "members.anna.toolsets",
        "members.anna.model_params",
        "members.ben.toolsets",
        "members.ben.model_params",
    }
    assert "no toolset at all" in result["members.ben.toolsets"]
    members = current_team().members
    assert (members["anna"]["toolsets"], members["ben"]["toolsets"]) == (["ws_read"], [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{temperature: 0.2}", "temperature: there is no such section; known are general, openai-compatible, openai, "),
        ("{general: {heat: 0.2}}", "general: heat means nothing here; known are effort, "),
        (
            "{anthropic: {effort: low}}",
            "anthropic.effort: effort means nothing here; known are thinking, output_config",
        ),
    ],
)
def test_a_setting_that_no_request_could_hold_is_refused(given: str, words: str, minds: Minds) -> None:
    result = problems(f"members: {{anna: {{provider: test, model: big, model_params: {given}}}}}", minds)
    assert words in result["members.anna.model_params"]
    assert "model_params" not in current_team().members["anna"]


def test_members_take_defaults_and_their_own_fields(minds: Minds) -> None:
    minds("""
member_defaults: {provider: test, model: big, priority: 3, tools: [read_file]}
default_responder: ben
members:
  anna: {name: Anna, model: small, instructions: "Be brief.", priority_areas: [Deadline, To Do List]}
  ben:
    {context_policy: breaking, context_limit: 6000, priority: 1, llm_type: gpt, critical_policy: countdown, tools: []}
""")
    assert synchronise().problems == ()
    anna, ben = Agent.objects.get(pk="anna"), Agent.objects.get(pk="ben")
    assert (anna.name, anna.provider, anna.model, anna.priority) == ("Anna", "test", "small", 3)
    assert (anna.instructions, anna.tools) == ("Be brief.", ["read_file"])
    assert anna.priority_areas == ["Deadline", "To Do List"]
    assert (ben.name, ben.context_policy, ben.context_limit, ben.priority) == ("ben", "breaking", 6000, 1)
    assert (ben.llm_type, ben.critical_policy, ben.tools) == ("gpt", "countdown", [])
    assert list(Agent.objects.filter(is_default=True)) == [ben]


def test_a_second_synchronisation_changes_nothing(minds: Minds) -> None:
    minds(f"members: {{anna: {ANNA}}}")
    synchronise()
    before = list(Agent.objects.order_by("pk").values())
    assert synchronise().disabled == ()
    assert list(Agent.objects.order_by("pk").values()) == before


def test_a_field_no_longer_stated_returns_to_its_default(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: big, priority: 1, instructions: x}}")
    synchronise()
    minds(f"members: {{anna: {ANNA}}}")
    synchronise()
    anna = Agent.objects.get(pk="anna")
    assert (anna.priority, anna.instructions) == (2, "")


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ("{provider: nobody, model: big}", "members.anna.provider", "no provider named 'nobody'"),
        ("{provider: test, model: bgi}", "members.anna.model", "Near it: big"),
        ("{model: big}", "members.anna.provider", "is missing"),
        ("{provider: test, model: big, priority: 4}", "members.anna.priority", "from 1 to 3"),
        ("{provider: test, model: big, priority: true}", "members.anna.priority", "from 1 to 3"),
        ("{provider: test, model: big, context_limit: 0}", "members.anna.context_limit", "found 0"),
        ("{provider: test, model: big, context_limit: many}", "members.anna.context_limit", "found 'many'"),
        ("{provider: test, model: big, context_policy: magic}", "members.anna.context_policy", "autocompaction"),
        ("{provider: test, model: big, context_policy: autocompaction}", "members.anna.context_policy", "LM Studio"),
        ("{provider: test, model: big, critical_policy: panic}", "members.anna.critical_policy", "escalate, countdown"),
        ("{provider: test, model: big, tools: read_file}", "members.anna.tools", "a list of texts"),
        ("{provider: test, model: big, tools: [fly]}", "members.anna.tools", "no tool 'fly'"),
        ("{provider: test, model: big, tools: ['mcp:moon']}", "members.anna.tools", "no MCP server 'moon'"),
        ("{provider: test, model: big, gofor: [x]}", "members.anna.gofor", "means nothing here"),
        ("{provider: test, model: big, icon: x}", "members.anna.icon", "means nothing here"),
        ("[a, b]", "members.anna", "expected a mapping"),
    ],
)
def test_a_bad_field_is_reported_and_everything_else_works(minds: Minds, fields: str, path: str, words: str) -> None:
    file = minds(f"members:\n  anna: {fields}\n  ben: {ANNA}\n")
    result = synchronise().problems
    assert {(problem.file, problem.path) for problem in result if words in problem.reason} == {(str(file), path)}
    assert own() == ["anna", "ben"]
    assert Agent.objects.get(pk="ben").provider == "test"


def test_an_agent_with_an_unknown_model_says_why_it_is_unusable(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: huge}}")
    synchronise()
    assert "huge" in unusable_reason(Agent.objects.get(pk="anna"))


def test_a_policy_that_is_not_allowed_falls_back_to_the_default(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: big, context_policy: autocompaction}}")
    synchronise()
    assert policy_of(Agent.objects.get(pk="anna")).policy.name == "none"


def test_an_approval_that_is_not_understood_is_asked_for_always(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: big, tool_approval: allways}}")
    (problem,) = synchronise().problems
    assert "never, changes, always" in problem.reason
    assert Agent.objects.get(pk="anna").tool_approval == "always"


def test_a_problem_of_the_defaults_says_where_it_comes_from(minds: Minds) -> None:
    result = problems(f"member_defaults: {{priority: 9}}\nmembers: {{anna: {ANNA}}}", minds)
    assert "(from member_defaults)" in result["members.anna.priority"]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("shell_specialists: [x]", "shell_specialists"),
        ("default_responder: nobody", "default_responder"),
        ("demo_agents: perhaps", "demo_agents"),
        ("members: [anna]", "members"),
        ("member_defaults: {colour: red}", "member_defaults.colour"),
        ("members: {'a b': {}}", "members.a b"),
        ("- a list", "the file"),
        ("members: {a: 1}\nmembers: {b: 2}", "members"),
        ("members: {a: ", ""),
        ("a: &a [x]\nb: [" + "*a, " * 60 + "]", ""),
    ],
)
def test_a_bad_file_is_reported_and_never_fatal(minds: Minds, content: str, path: str) -> None:
    assert path in problems(content, minds)
    synchronise()
    assert Agent.objects.filter(is_demo=True, enabled=True).exists()


def test_no_file_is_no_problem(minds: Minds) -> None:
    assert synchronise().problems == ()
    assert Agent.objects.get(is_default=True).pk == "demo"


# Who stays and who goes


def test_a_member_no_longer_listed_is_disabled_and_kept(minds: Minds) -> None:
    minds(f"default_responder: anna\nmembers: {{anna: {ANNA}, ben: {ANNA}}}")
    synchronise()
    minds(f"members: {{ben: {ANNA}}}")
    assert synchronise().disabled == ("anna",)
    anna = Agent.objects.get(pk="anna")
    assert (anna.enabled, anna.is_default) == (False, False)
    minds(f"members: {{anna: {ANNA}, ben: {ANNA}}}")
    synchronise()
    assert own() == ["anna", "ben"]


def test_an_agent_made_in_the_admin_stays(minds: Minds) -> None:
    Agent.objects.create(pk="mine", name="Mine", provider="test", model="big")
    minds(f"members: {{anna: {ANNA}}}")
    synchronise()
    synchronise()
    assert own() == ["anna", "mine"]


def test_a_member_that_an_operator_switched_off_stays_off(minds: Minds) -> None:
    minds(f"members: {{anna: {ANNA}}}")
    synchronise()
    Agent.objects.filter(pk="anna").update(enabled=False)
    synchronise()
    assert own() == []


def test_a_file_that_cannot_be_read_disables_nobody(minds: Minds) -> None:
    minds(f"demo_agents: false\nmembers: {{anna: {ANNA}}}")
    synchronise()
    minds("members: {anna: ")
    assert len(synchronise().problems) == 1
    assert list(Agent.objects.filter(enabled=True).values_list("pk", flat=True)) == ["anna"]


def test_demo_agents_can_be_switched_off_and_on_again(minds: Minds) -> None:
    synchronise()
    minds("demo_agents: false")
    assert set(synchronise().disabled) == set(read_team(DEMO_FILE).members)
    assert not Agent.objects.filter(enabled=True).exists()
    minds("demo_agents: true")
    synchronise()
    assert Agent.objects.filter(is_demo=True, enabled=True).count() == len(read_team(DEMO_FILE).members)


def test_a_team_may_take_a_demo_agents_id(minds: Minds) -> None:
    synchronise()
    minds(f"members: {{demo: {ANNA}}}")
    for _ in range(2):
        assert synchronise().problems == ()
        demo = Agent.objects.get(pk="demo")
        assert (demo.provider, demo.is_demo, demo.enabled) == ("test", False, True)


def test_a_page_agent_under_a_demo_id_stays_and_is_reported(minds: Minds) -> None:
    Agent.objects.create(pk="demo", name="Mine", provider="test", model="big")
    (problem,) = synchronise().problems
    assert problem.path == "members.demo"
    assert Agent.objects.get(pk="demo").name == "Mine"


@pytest.mark.parametrize(
    ("content", "default"),
    [
        ("", "demo"),
        (f"members: {{anna: {ANNA}, ben: {ANNA}}}", "anna"),
        (f"default_responder: ben\nmembers: {{anna: {ANNA}, ben: {ANNA}}}", "ben"),
    ],
)
def test_there_is_one_default(minds: Minds, content: str, default: str) -> None:
    synchronise()
    minds(content)
    synchronise()
    assert [agent.pk for agent in Agent.objects.filter(is_default=True)] == [default]


def test_a_chosen_default_stays_if_the_file_names_none(minds: Minds) -> None:
    minds(f"members: {{anna: {ANNA}, ben: {ANNA}}}")
    synchronise()
    Agent.objects.update(is_default=False)
    Agent.objects.filter(pk="ben").update(is_default=True)
    synchronise()
    assert Agent.objects.get(is_default=True).pk == "ben"


# The same rules for the admin, and where problems are told


def test_the_admin_validates_by_the_same_rules(minds: Minds) -> None:
    good = {"name": "A", "provider": "test", "model": "big", "priority": 2, "context_limit": None, "tools": []}
    assert check_fields(good)[1] == []
    assert check_fields({**good, "provider": "local", "model": "qwen", "context_policy": "autocompaction"})[1] == []
    result = check_fields({**good, "context_policy": "autocompaction", "priority": 0, "tools": ["fly"]})[1]
    assert sorted(name for name, _ in result) == ["context_policy", "priority", "tools"]


def test_the_shipped_demo_team_is_sound(minds: Minds) -> None:
    assert read_team(DEMO_FILE).problems == ()
    assert checks.team_is_sound() == []
    assert team_file.current_team().problems == ()


def test_the_command_lists_problems_and_agents(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: big, priority: 7}}")
    minds("servers: {x: {}}", "mcp.yaml")
    out, err = StringIO(), StringIO()
    call_command("sync_agents", stdout=out, stderr=err)
    assert "members.anna.priority" in err.getvalue()
    assert "servers.x" in err.getvalue()
    assert f"{1 + len(read_team(DEMO_FILE).members)} agents: anna, demo" in out.getvalue()


def test_the_command_names_models_that_retire(minds: Minds) -> None:
    minds("members: {anna: {provider: deepseek, model: deepseek-chat}, ben: {provider: test, model: big}}")
    err = StringIO()
    call_command("sync_agents", stdout=StringIO(), stderr=err)
    assert "deepseek/deepseek-chat retired on 2026-07-24. Choose another model." in err.getvalue()
    assert "test/big" not in err.getvalue()


def test_start_up_warns_and_goes_on(minds: Minds) -> None:
    minds("members: {anna: {provider: test, model: big, priority: 7}}")
    minds("servers: {x: {}}", "mcp.yaml")
    warned = [*checks.team_is_sound(), *checks.mcp_servers_are_sound()]
    assert [message.id for message in warned] == ["dialogs.W001", "dialogs.W002"]
    assert not any(message.is_serious() and message.level > 30 for message in warned)
