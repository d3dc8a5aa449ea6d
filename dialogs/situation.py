"""Gathers, from rows, what the policies may know before they decide."""

from dataclasses import dataclass

from dialogs.generation import Watch
from dialogs.model_limits import judgement_of, model_of, policy_of, thresholds_of_model
from dialogs.models import Agent, Dialog
from dialogs.tools.registry import Tool, tools_of
from dialogs.transcript import View, view_of
from dominds.llm.catalog import ModelInfo
from health.levels import Thresholds
from remediation.context import Context
from remediation.policies import POLICIES, Policies


@dataclass(frozen=True, slots=True)
class Situation:
    """One dialog before its next generation: what is seen, by which model, under which policies."""

    dialog: Dialog
    model: ModelInfo
    thresholds: Thresholds
    policies: Policies
    tools: dict[str, Tool]
    view: View
    context: Context
    est_request: int | None = None
    watch: Watch | None = None


def situation_of(dialog: Dialog) -> Situation:
    """Read it fresh. Raises ``UnknownModel`` when the catalog no longer has the dialog's model."""
    model = model_of(dialog)
    thresholds = thresholds_of_model(model)
    policy = policy_of(dialog)
    view = view_of(dialog)
    tools = tools_of(dialog.agent)
    context = Context(
        level=judgement_of(dialog, thresholds).level,
        changed=dialog.changed_since_rewrite,
        overflowed=dialog.overflowed,
        restarts=dialog.restarts,
        failed_clears=dialog.failed_clears,
        kept_since_guidance=dialog.kept_since_guidance,
        guided_generations=dialog.guided_generations,
        cadence=model.cadence,
        countdown=dialog.agent.critical_policy == Agent.CriticalPolicy.COUNTDOWN,
        requested=dialog.requested_rewrite,
    )
    return Situation(dialog, model, thresholds, POLICIES[policy], tools, view, context)
