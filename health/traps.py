"""Contradictions between thresholds, each a sentence that names the setting to change. Pure."""

from health.levels import Thresholds


def traps_of(thresholds: Thresholds, input_length: int | None) -> tuple[str, ...]:
    """Describe the contradictions among these limits. ``input_length`` is in tokens."""
    traps = (_no_caution_band(thresholds), _never_red(thresholds, input_length))
    return tuple(trap for trap in traps if trap)


def chosen_traps(thresholds: Thresholds, input_length: int | None) -> tuple[str, ...]:
    """Describe the contradictions that somebody's settings cause. A window below the default optimum is no mistake."""
    traps = traps_of(thresholds, input_length)
    return traps if thresholds.optimal_max is not None or thresholds.has_caution_band else traps[1:]


def _no_caution_band(thresholds: Thresholds) -> str:
    if thresholds.has_caution_band:
        return ""
    optimal, critical = thresholds.effective_optimal_max, thresholds.effective_critical_max
    return (
        f"There is no caution band: optimal ends at {optimal:,} tokens, and critical begins above {critical:,}. The "
        "level goes from green to red. Set optimal_max_tokens below that to be warned before."
    )


def _never_red(thresholds: Thresholds, input_length: int | None) -> str:
    """Warn that the provider refuses prompts above ``input_length`` before any of them could count as critical."""
    critical = thresholds.effective_critical_max
    if input_length is None or critical is None or input_length > critical:
        return ""
    return (
        f"The level would never turn red: at most {input_length:,} prompt tokens are accepted (input_length), and "
        f"critical begins above {critical:,}. Set critical_max_tokens below {input_length:,}, to "
        f"{input_length * 9 // 10:,} say."
    )
