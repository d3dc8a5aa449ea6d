"""The registry of policies: the product's own, and those of installed packages (see ``docs/plugins.md``)."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pkgutil import iter_modules

from remediation import policies as package
from remediation.decisions import UNDO_CLEAR
from remediation.policies import none
from remediation.policies.policy import Policy

log = logging.getLogger(__name__)

GROUP = "dominds.policies"
CLEAR_UNDONE = "Clear undone"
PLACE = attrgetter("place")
CONFORMANCE = "conformance"  # not imported here: it needs pytest


class UnknownPolicy(LookupError):
    """No policy of this name is installed."""


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """An entry point whose policy is left out, and why."""

    plugin: str
    reason: str

    def __str__(self) -> str:
        return f"The policy {self.plugin} is left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class Registry:
    policies: tuple[Policy, ...]
    problems: tuple[PluginProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy in force. ``problem`` says why it is not the one that the agent names; empty if it is."""

    policy: Policy
    problem: str = ""


@cache
def registry() -> Registry:
    """Return the registry, which each process reads once."""
    found = collect(entry_points(group=GROUP))
    for problem in found.problems:
        log.warning("%s", problem)
    return found


def own() -> tuple[Policy, ...]:
    """Return every policy that a module of this package defines, by place."""
    names = [module.name for module in iter_modules(package.__path__) if module.name != CONFORMANCE]
    values = [value for name in names for value in vars(import_module(f"{package.__name__}.{name}")).values()]
    # A policy appears once more in each module that imports it.
    unique = dict.fromkeys(value for value in values if isinstance(value, Policy))
    return tuple(sorted(unique, key=PLACE))


def collect(plugins: Iterable[EntryPoint]) -> Registry:
    """Combine the product's policies and those of plug-ins, by place. A broken plug-in is reported and left out."""
    policies, problems = list(own()), []
    for plugin in sorted(plugins, key=lambda entry: (entry.name, entry.value)):
        try:
            policies.append(_check(plugin.load(), policies))
        except Exception as error:  # noqa: BLE001  a plug-in may raise anything when it is imported
            problems.append(PluginProblem(f"{plugin.name} ({plugin.value})", str(error) or type(error).__name__))
    return Registry(tuple(sorted(policies, key=PLACE)), tuple(problems))


def _check(value: object, others: Iterable[Policy]) -> Policy:
    if not isinstance(value, Policy):
        raise TypeError(f"expected a value of remediation.policies.policy.Policy, found {type(value).__name__}")
    for other in others:
        if other.name == value.name:
            raise ValueError(f"there is a policy of the name {value.name} already")
        if other.by_hand and value.by_hand and other.by_hand.verb == value.by_hand.verb:
            raise ValueError(f"the policy {other.name} has the verb {other.by_hand.verb} already")
    return value


def policies() -> tuple[Policy, ...]:
    return registry().policies


def choices() -> tuple[Policy, ...]:
    """Return the policies that an agent can have."""
    return tuple([policy for policy in policies() if policy.is_choice])


def rewriting_policies() -> tuple[Policy, ...]:
    """Return the policies that can rewrite."""
    return tuple(policy for policy in policies() if policy.rewrite)


def by_hand() -> tuple[Policy, ...]:
    """Return the policies whose rewrite people can ask for."""
    return tuple(policy for policy in policies() if policy.by_hand)


def policy_named(name: str) -> Policy:
    """Return the policy of this name. Raises ``UnknownPolicy``."""
    for policy in policies():
        if policy.name == name:
            return policy
    raise UnknownPolicy(
        f"There is no policy {name!r}; installed are {', '.join(policy.name for policy in policies())}."
    )


def with_verb(verb: str) -> Policy | None:
    """Return the policy whose rewrite people ask for by this verb, or None."""
    return next((policy for policy in by_hand() if policy.by_hand and policy.by_hand.verb == verb), None)


def choice_for(name: str, kind: str) -> Choice:
    """Return the policy in force for an agent whose model is of this kind. ``name`` is empty if it names no policy."""
    if not name:
        return Choice(next((policy for policy in choices() if policy.is_default_for(kind)), none.POLICY))
    policy = next((policy for policy in choices() if policy.name == name), None)
    if policy is None:
        return Choice(none.POLICY, f"The policy {name} is not installed, so nothing is compacted.")
    if not policy.allows(kind):
        return Choice(none.POLICY, f"{restriction(policy)}, so nothing is compacted.")
    return Choice(policy)


def restriction(policy: Policy) -> str:
    """Say which models a policy is for; empty if it is for all."""
    return f"{policy.name} is only for models of {policy.model_kind.label}" if policy.model_kind else ""


def label_of(name: str) -> str:
    """Return the label by which people choose this policy, or its name if it is not installed any more."""
    return next((policy.label for policy in policies() if policy.name == name), name)


def title_of(name: str) -> str:
    """Return the title of a rewrite by this policy, also if the policy is not installed any more."""
    if name == UNDO_CLEAR:
        return CLEAR_UNDONE
    try:
        return policy_named(name).title
    except UnknownPolicy:
        return f"Context rewritten ({name})"
