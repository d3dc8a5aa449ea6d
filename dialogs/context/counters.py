"""A dialog's guidance counters as one value."""

from dialogs.models import Dialog
from remediation.guidance import Counters


def counters_of(dialog: Dialog) -> Counters:
    return Counters(dialog.kept_since_guidance, dialog.guided_generations, dialog.failed_clears, dialog.clear_unproven)


def set_counters(dialog: Dialog, counters: Counters) -> None:
    dialog.kept_since_guidance, dialog.guided_generations = counters.kept_since_guidance, counters.guided_generations
    dialog.failed_clears, dialog.clear_unproven = counters.failed_clears, counters.clear_unproven
