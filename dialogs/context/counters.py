"""A dialog's guidance counters as one value."""

from dialogs.models import ContextState
from remediation.guidance import Counters


def counters_of(context_state: ContextState) -> Counters:
    return Counters(
        context_state.kept_since_guidance,
        context_state.guided_generations,
        context_state.failed_clears,
        context_state.clear_unproven,
    )


def set_counters(context_state: ContextState, counters: Counters) -> None:
    context_state.kept_since_guidance = counters.kept_since_guidance
    context_state.guided_generations = counters.guided_generations
    context_state.failed_clears = counters.failed_clears
    context_state.clear_unproven = counters.clear_unproven
