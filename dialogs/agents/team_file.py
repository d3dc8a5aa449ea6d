"""Agents from ``team.yaml`` and the shipped demo agents, synchronised into rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from dialogs.agents.fields import FIELDS, all_fields, check_fields, demo_fields_of_extensions, fields_of_extensions
from dialogs.models import Agent
from dominds.yaml_fields import Problem, Reading, anything, text, truth
from remediation.models import Proposal

FILE_NAME = "team.yaml"
DEMO_FILE = Path(__file__).parent / "demo_team.yaml"
AGENT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Team:
    """The sound fields of each member by id, and all problems. ``usable`` says that the file could be read."""

    members: Mapping[str, Fields] = field(default_factory=dict)
    default_responder: str = ""
    demo_agents: bool = True
    usable: bool = True
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Synchronised:
    """The result of a synchronisation: the ids of agents in the files and of agents just disabled, and the problems."""

    listed: tuple[str, ...]
    disabled: tuple[str, ...]
    problems: tuple[Problem, ...]


# Reading


def current_team(*, with_models: bool = True) -> Team:
    return read_team(settings.MINDS_DIR / FILE_NAME, with_models=with_models)


def read_team(path: Path, *, with_models: bool = True) -> Team:
    """Read a file. ``with_models=False`` does not check models, and so does not read the database, which holds those
    that were connected on the page.
    """
    reading = Reading.of(path)
    top = reading.fields(
        reading.document,
        "",
        {"member_defaults": anything, "default_responder": text, "members": anything, "demo_agents": truth},
    )
    known = dict.fromkeys(all_fields(), anything)
    defaults = reading.fields(top.get("member_defaults"), "member_defaults", known)
    members: dict[str, Fields] = {}
    for member_id, entry in reading.entries(top.get("members"), "members"):
        here = f"members.{member_id}"
        if AGENT_ID.fullmatch(member_id):
            fields = {**defaults, **reading.fields(entry, here, known, "members.*")}
            members[member_id] = _member(reading, here, fields, defaults, with_models)
        else:
            reading.report(here, "an id has at most 64 letters, digits, - and _; the member is left out")
    default = top.get("default_responder", "")
    if default and default not in members:
        reading.report("default_responder", f"there is no member '{default}'; known are {', '.join(members) or 'none'}")
        default = ""
    return Team(members, default, top.get("demo_agents", True), reading.usable, tuple(reading.problems))


def _member(reading: Reading, here: str, fields: Fields, defaults: Fields, with_model: bool) -> Fields:
    sound, problems = check_fields(fields, with_model=with_model)
    for name, reason in problems:
        inherited = name in defaults and fields.get(name) == defaults[name]
        reading.report(f"{here}.{name}", f"{reason} (from member_defaults)" if inherited else reason)
    return sound


def is_stated(agent_id: str, field_name: str) -> bool:
    """Check whether a file states this field of an agent, which the row follows at each start."""
    own = current_team(with_models=False).members.get(agent_id)
    fields = read_team(DEMO_FILE, with_models=False).members.get(agent_id, {}) if own is None else own
    return field_name in fields


# Synchronising


@transaction.atomic
def synchronise() -> Synchronised:
    """Make the rows follow the files.

    Agents that are no longer in the files are disabled and never deleted; those made on the pages stay. An operator's
    switch stands: an agent that was disabled by hand is not enabled again. While ``team.yaml`` cannot be read, nothing
    changes, except that the demo agents appear if no agent of a file is there yet.
    """
    team, demo = current_team(), read_team(DEMO_FILE)
    problems = [*team.problems, *demo.problems]
    listed = tuple(Agent.objects.filter(is_listed=True).values_list("pk", flat=True))
    if not team.usable and listed:
        return Synchronised(listed, (), tuple(problems))
    shown = _demo_members(team, demo, problems) if team.demo_agents else {}
    for member_id, fields in team.members.items():
        _store(member_id, fields, is_demo=False)
    for member_id, fields in shown.items():
        _store(member_id, {**fields, **demo_fields_of_extensions(member_id)}, is_demo=True)
    now_listed = (*team.members, *shown)
    gone = tuple(sorted(set(listed) - set(now_listed)))
    Agent.objects.filter(pk__in=gone).update(enabled=False, is_listed=False, is_default=False)
    _choose_default(team, demo)
    return Synchronised(now_listed, gone, tuple(problems))


def _demo_members(team: Team, demo: Team, problems: list[Problem]) -> dict[str, Fields]:
    """Return the demo agents, without those whose id an agent of the team has.

    ``team.yaml`` may describe a demo agent on purpose. An agent that was made on the pages and has such an id is
    reported.
    """
    own = set(Agent.objects.filter(pk__in=demo.members, is_demo=False).values_list("pk", flat=True))
    for member_id in sorted(own - set(team.members)):
        problems.append(Problem(str(DEMO_FILE), f"members.{member_id}", "an agent of your own has this id; it stays"))
    return {key: fields for key, fields in demo.members.items() if key not in own and key not in team.members}


def _store(agent_id: str, fields: Fields, *, is_demo: bool) -> None:
    agent = Agent.objects.filter(pk=agent_id).first() or Agent(pk=agent_id)
    plain = Agent()  # gives the values of fields that are not stated
    for name in FIELDS:
        setattr(agent, name, fields.get(name, getattr(plain, name)))
    if "context_limit" not in fields:
        agent.context_limit = _accepted_limit(agent_id)
    others = fields_of_extensions()
    of_those_off = {name: value for name, value in agent.stated_extras.items() if name not in others}
    agent.extras = of_those_off | {name: fields[name] for name in others if name in fields}
    agent.name = agent.name or agent_id
    if not agent.is_listed:
        agent.enabled = True
    agent.is_listed, agent.is_demo = True, is_demo
    agent.save()


def _accepted_limit(agent_id: str) -> int | None:
    """Return the newest limit that the critic proposed for the agent and a person accepted."""
    accepted = Proposal.objects.filter(agent_id=agent_id, kind="limit", state=Proposal.State.ACCEPTED)
    changes = accepted.order_by("-decided_at", "-pk").values_list("change", flat=True)
    return next((change["context_limit"] for change in changes[:1]), None)


def _choose_default(team: Team, demo: Team) -> None:
    """Make the first enabled one of these the default agent: ``default_responder``; the present default, unless it is a
    demo agent beside a team; the agents of the team; the default of the demo agents.
    """
    standing = Agent.objects.filter(is_default=True, enabled=True).order_by("is_demo", "pk").first()
    chosen = team.default_responder
    if not chosen and standing and not (standing.is_demo and team.members):
        chosen = standing.pk
    for candidate in (chosen, *team.members, demo.default_responder):
        if candidate and Agent.objects.filter(pk=candidate, enabled=True).exists():
            Agent.objects.filter(is_default=True).exclude(pk=candidate).update(is_default=False)
            Agent.objects.filter(pk=candidate).update(is_default=True)
            return
