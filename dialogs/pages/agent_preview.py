"""A preview of an agent's settings: the limits and the policy that follow from them, and a dry run on past dialogs."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from dialogs.context import limits
from dialogs.context.sizes import facts_of
from dialogs.models import Agent
from dialogs.queries.dry_run import DryRun, Outcome, preview
from dominds.llm.catalog.catalog import UnknownModel
from health.levels import Thresholds
from remediation.evaluation.measures import FACTS
from remediation.evaluation.report import Tally
from remediation.policies.registry import Choice
from remediation.tokens.counting import counter_for


@dataclass
class AgentPreview:
    """The effect of a form on an agent. ``stored`` is the saved agent, None for a new one; ``proposed`` has the form's
    values.
    """

    stored: Agent | None
    proposed: Agent

    @cached_property
    def reason(self) -> str:
        """Return the reason why the agent could not answer now, or an empty text."""
        if not self.proposed.model:
            return _("Choose the model")
        return limits.unusable_reason(self.proposed) or limits.missing_key(self.proposed)

    @cached_property
    def choice(self) -> Choice:
        return limits.policy_of(self.proposed)

    @cached_property
    def thresholds(self) -> Thresholds:
        try:
            return limits.thresholds_of_model(limits.model_of(self.proposed))
        except UnknownModel:
            return Thresholds(context_limit=None)

    @cached_property
    def limit(self) -> int | None:
        """Return the tokens within which the policy keeps the context, or None if unknown."""
        try:
            return self.choice.policy.limit(facts_of(self.proposed, limits.model_of(self.proposed), self.thresholds))
        except UnknownModel:
            return None

    @property
    def instruction_tokens(self) -> int:
        """Return the estimated tokens of the instructions."""
        return counter_for(self.proposed.model).count(self.proposed.instructions)

    @cached_property
    def dry_run(self) -> DryRun | None:
        try:
            return preview(self.stored, self.proposed)
        except UnknownModel:
            return None

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name of each figure, its value as saved (empty for a new agent), and its value as proposed."""
        if self.dry_run is None:
            return
        before, after = dict(_figures(self.dry_run.before)), dict(_figures(self.dry_run.after))
        for name, value in after.items():
            yield name, before[name] if self.stored else "", value


def _figures(outcome: Outcome) -> Iterator[tuple[str, str]]:
    result, facts = outcome.result, outcome.result.tallies.get(FACTS, Tally())
    yield _("Requests over the limit"), f"{result.over_budget:,}"
    yield _("Rewrites"), f"{result.rewrites:,}"
    yield _("Tokens a request, estimated"), f"{result.tokens_sent / max(1, result.requests):,.0f}"
    yield _("Facts in sight at the end"), _("{sight:,} of {all:,}").format(sight=facts.in_sight, all=facts.needed)
    yield _("Facts one search away"), f"{facts.one_search_away:,}"
    yield _("Facts lost"), f"{facts.lost:,}"
