"""What a dialog or an agent is served by: looked up once for a request or a step of the driver, and handed along."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from dialogs.context.limits import as_served, limits_of_model, model_of, policy_for
from dialogs.models import Agent, Dialog
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import Message
from health.levels import Thresholds
from remediation.policies.policy import Policy

_parts = attrgetter("parts")  # of a thousand messages, often


@dataclass(frozen=True, slots=True)
class Served:
    """A model, its limits as they are now, the compaction policy in force,
    and why the model cannot answer, if it cannot."""

    model: ModelInfo
    thresholds: Thresholds
    policy: Policy
    unusable: str = ""

    @property
    def lacks_limit(self) -> bool:
        """Whether the window is unknown of a model that cannot be called without one."""
        return self.model.kind.needs_limit and self.thresholds.context_limit is None


def served_by(subject: Dialog | Agent, messages: Iterable[Message] = ()) -> Served:
    """Look it up, with the sight that the model's server reports where ``messages`` hold images.
    Raises ``UnknownModel``."""
    model = model_of(subject)
    if any(map(_parts, messages)):
        model = as_served(model)
    thresholds, unusable = limits_of_model(model)
    return Served(model, thresholds, policy_for(subject, model.kind.family).policy, unusable)
