"""Validation of an agent's fields: one set of rules for ``team.yaml`` and for the pages."""

from collections.abc import Mapping
from typing import Any

import orjson

from dialogs.context.limits import catalog
from dialogs.extension import installed_extensions
from dialogs.models import Agent
from dialogs.tools import mcp
from dialogs.tools.registry import NOT, builtin_tools, toolset_problem
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.models import params
from dominds.llm.providers.kinds import KINDS
from dominds.yaml_fields import (
    Bad,
    Field,
    amount,
    one_of,
    quote_value,
    text_or_empty,
    text_up_to,
    texts,
    truth,
    whole_number,
)
from remediation.policies import registry

FieldProblem = tuple[str, str]  # field, reason
MOST_USD = 1_000_000
MOST_TOKENS = 1_000_000_000
MOST_PARAMS_BYTES = 16 * 1024


def _policy(value: Any) -> Any:
    return one_of([policy.name for policy in registry.choices()])(value)


def _model_params(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Bad(f"expected a mapping such as {{general: {{effort: low}}}}, found {quote_value(value)}")
    try:
        written = orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        raise Bad("holds something that JSON cannot say, such as a date without quotes") from None
    if len(written) > MOST_PARAMS_BYTES:
        raise Bad(f"has {len(written):,} bytes; at most {MOST_PARAMS_BYTES:,} are sent with each request")
    result: dict[str, Any] = orjson.loads(written)
    return result


FIELDS: dict[str, Field] = {
    "name": text_up_to(120),
    "provider": text_up_to(80),
    "model": text_up_to(120),
    "description": text_up_to(200),
    "suggestions": texts,
    "instructions": text_or_empty,
    "tools": texts,
    "context_policy": _policy,
    "toolsets": texts,
    "tool_approval": one_of(Agent.ToolApproval.values),
    "model_params": _model_params,
    "context_limit": whole_number(1, MOST_TOKENS),
    "priority": whole_number(1, 3),
    "priority_areas": texts,
    "dialog_budget_usd": amount(0, MOST_USD),
    "llm_type": text_up_to(40),
    "critical_policy": one_of(Agent.CriticalPolicy.values),
    "recall": truth,
    "prepare_rewrites": truth,
    "proxy": truth,
}
REQUIRED = ("provider", "model")


def all_fields() -> dict[str, Field]:
    """Return the fields of agents, with those of the extensions that are switched on."""
    return {**FIELDS, **fields_of_extensions()}


def fields_of_extensions() -> dict[str, Field]:
    return {name: read for extension in installed_extensions() for name, read in extension.agent_fields.items()}


def demo_fields_of_extensions(agent_id: str) -> dict[str, Any]:
    """Return what the extensions add to a shipped demo agent."""
    return {
        name: value
        for extension in installed_extensions()
        for name, value in extension.demo_agents.get(agent_id, {}).items()
    }


def check_fields(fields: Mapping[str, Any], *, with_model: bool = True) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the fields that can be used, and the problems of the others. None and empty text count as not stated.

    A provider or model that the catalog does not know is reported and stays: the agent cannot be used until it is
    known. ``with_model=False`` skips the catalog, a part of which is in the database.
    """
    sound: dict[str, Any] = {}
    problems: list[FieldProblem] = []
    for name, read in all_fields().items():
        value = fields.get(name)
        if value is None or value == "":
            continue
        try:
            sound[name] = read(value)
        except Bad as bad:
            problems.append((name, str(bad)))
    named = {name for name, _ in problems}
    if "tool_approval" in named:  # a restriction that is not understood must not be lifted
        sound["tool_approval"] = Agent.ToolApproval.ALWAYS
    problems += [
        (name, "is missing; the agent cannot answer without it") for name in REQUIRED if name not in {*sound, *named}
    ]
    model = _model(sound, problems) if with_model else None
    if model and (reason := _unfit_policy(sound.get("context_policy", ""), model)):
        problems.append(("context_policy", reason))
        del sound["context_policy"]
    if reason := _unfit_params(sound.get("model_params", {}), model):
        problems.append(("model_params", reason))
        del sound["model_params"]
    # Tool servers may be stored in the database, like models, so their tools are checked with the model only.
    judged = [name for name in sound.get("tools", ()) if with_model or not name.startswith(mcp.PREFIX)]
    for name in [name for name in judged if _unknown_tool(name)]:
        problems.append(("tools", _unknown_tool(name)))
        sound["tools"].remove(name)
    if with_model:
        _check_toolsets(sound, problems)
    if sound.get("proxy"):
        _check_proxy(sound, problems)
    return sound, problems


def _model(sound: Mapping[str, Any], problems: list[FieldProblem]) -> ModelInfo | None:
    if not all(name in sound for name in REQUIRED):
        return None
    known = catalog()
    try:
        return known.model(sound["provider"], sound["model"])
    except UnknownModel as error:
        problems.append(("provider" if sound["provider"] not in known.providers else "model", str(error)))
        return None


def _unfit_policy(name: str, model: ModelInfo) -> str:
    """Return the reason why this policy does not suit this model, or an empty text."""
    policy = next((policy for policy in registry.choices() if policy.name == name), None)
    if policy is None or policy.allows(model.kind.family):
        return ""
    fit = ", ".join(policy.name for policy in registry.choices() if policy.allows(model.kind.family))
    return f"{registry.restriction(policy)}, and {model.provider_id}/{model.model_id} is none. Choose one of {fit}."


def _unfit_params(settings: Mapping[str, Any], model: ModelInfo | None) -> str:
    """Name the settings that no request to this model could hold, or return an empty text."""
    dialects = {name: kind.params for name, kind in KINDS.items()}
    return "; ".join(f"{name}: {reason}" for name, reason in params.faults_of_settings(model, settings, dialects))


def _check_proxy(sound: dict[str, Any], problems: list[FieldProblem]) -> None:
    for name in ("tools", "toolsets"):
        if sound.pop(name, None):
            problems.append((name, "a proxy has no tools of its own; give none, or leave out proxy"))


def _check_toolsets(sound: dict[str, Any], problems: list[FieldProblem]) -> None:
    """Check the names of toolsets. Unknown ones are dropped. If a toolset to leave out is unknown, all are dropped, so
    that the agent does not get what was meant to be left out.
    """
    for name in list(sound.get("toolsets", ())):
        if not (reason := toolset_problem(name)):
            continue
        if name.startswith(NOT):
            problems.append(("toolsets", f"{reason}, so it cannot be left out: the agent gets no toolset at all"))
            sound["toolsets"] = []
            return
        problems.append(("toolsets", reason))
        sound["toolsets"].remove(name)


def _unknown_tool(name: str) -> str:
    """Return the reason why there is no such tool, or an empty text."""
    if name.startswith(mcp.PREFIX):
        return mcp.problem_with(name)
    known = builtin_tools()
    return (
        ""
        if name in known
        else f"there is no tool {quote_value(name)}; known are {', '.join(known)} and {mcp.PREFIX}<server>"
    )
