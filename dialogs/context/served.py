"""The model, limits and policy that serve a dialog or an agent, looked up once per request or step."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from dialogs.context.limits import as_served, loaded_limit, model_of, policy_for, thresholds_under, unusable_under
from dialogs.models import Agent, Dialog
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.messages import Message
from dominds.llm.models.model import LimitUnavailable, LoadedLimit
from health.levels import Thresholds
from remediation.policies.policy import Policy

_parts = attrgetter("parts")  # read from each message of a view, often a thousand


@dataclass(frozen=True)
class Served:
    """A model and the compaction policy in force. The model's server is asked for the limits once, when they are first
    needed.
    """

    model: ModelInfo
    policy: Policy

    @cached_property
    def _loaded(self) -> LoadedLimit | LimitUnavailable | None:
        return loaded_limit(self.model)

    @cached_property
    def thresholds(self) -> Thresholds:
        return thresholds_under(self.model, self._loaded)

    @property
    def unusable(self) -> str:
        """Tell people why no generation can start now; empty when one can."""
        asks_server = self.model.kind.needs_limit and not self.model.unusable
        return unusable_under(self.model, self._loaded if asks_server else None)

    @property
    def lacks_limit(self) -> bool:
        """Check whether the model cannot be called because its window is unknown."""
        return self.model.kind.needs_limit and self.thresholds.context_limit is None

    def with_sight_for(self, messages: Iterable[Message]) -> "Served":
        """Return the same, with or without images as the model's server reports, if the messages hold images."""
        return replace(self, model=as_served(self.model)) if any(map(_parts, messages)) else self


def resolve_served(subject: Dialog | Agent) -> Served:
    """Look up model and policy. Raises ``UnknownModel``."""
    model = model_of(subject)
    return Served(model, policy_for(subject, model.kind.family).policy)


def served_or_unknown(subject: Dialog | Agent) -> Served | UnknownModel:
    """Look up model and policy, or return the error: a request may still be stored, or refused for another reason."""
    try:
        return resolve_served(subject)
    except UnknownModel as error:
        return error
