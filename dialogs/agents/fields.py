"""What an agent's fields may hold: one set of rules for ``team.yaml`` and for the admin."""

from collections.abc import Mapping
from typing import Any

from dialogs.context.limits import catalog
from dialogs.models import Agent
from dialogs.tools import mcp
from dialogs.tools.registry import builtin_tools
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.yaml_fields import Bad, Field, one_of, shown, text, text_up_to, texts, truth, whole_number
from remediation.policies import registry

FieldProblem = tuple[str, str]  # field, reason
MOST_TOKENS = 1_000_000_000


def _instructions(value: Any) -> str:
    return "" if value == "" else text(value)


def _policy(value: Any) -> Any:
    return one_of([policy.name for policy in registry.choices()])(value)


FIELDS: dict[str, Field] = {
    "name": text_up_to(120),
    "provider": text_up_to(80),
    "model": text_up_to(120),
    "instructions": _instructions,
    "tools": texts,
    "context_policy": _policy,
    "context_limit": whole_number(1, MOST_TOKENS),
    "priority": whole_number(1, 3),
    "priority_areas": texts,
    "llm_type": text_up_to(40),
    "critical_policy": one_of(Agent.CriticalPolicy.values),
    "recall": truth,
}
REQUIRED = ("provider", "model")


def checked(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldProblem]]:
    """The fields that can be used, and what is wrong with the others. None and empty text count as not stated.

    A provider or model that the catalog does not know is reported and stays: the agent is unusable until it is known.
    """
    sound: dict[str, Any] = {}
    problems: list[FieldProblem] = []
    for name, read in FIELDS.items():
        value = fields.get(name)
        if value is None or value == "":
            continue
        try:
            sound[name] = read(value)
        except Bad as bad:
            problems.append((name, str(bad)))
    named = {name for name, _ in problems}
    problems += [
        (name, "is missing; the agent cannot answer without it") for name in REQUIRED if name not in {*sound, *named}
    ]
    model = _model(sound, problems)
    if model and (reason := _unfit_policy(sound.get("context_policy", ""), model)):
        problems.append(("context_policy", reason))
        del sound["context_policy"]
    for name in [name for name in sound.get("tools", ()) if _unknown_tool(name)]:
        problems.append(("tools", _unknown_tool(name)))
        sound["tools"].remove(name)
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
    """Why this policy is not for this model, or empty."""
    policy = next((policy for policy in registry.choices() if policy.name == name), None)
    if policy is None or policy.allows(model.kind.family):
        return ""
    fit = ", ".join(policy.name for policy in registry.choices() if policy.allows(model.kind.family))
    return f"{registry.restriction(policy)}, and {model.provider_id}/{model.model_id} is none. Choose one of {fit}."


def _unknown_tool(name: str) -> str:
    """Why there is no such tool, or empty."""
    if name.startswith(mcp.PREFIX):
        return mcp.problem_with(name)
    known = builtin_tools()
    return (
        ""
        if name in known
        else f"there is no tool {shown(name)}; known are {', '.join(known)} and {mcp.PREFIX}<server>"
    )
