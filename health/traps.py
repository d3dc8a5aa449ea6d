"""What is wrong with a model's thresholds before anything has happened (ruling R4)."""

from dataclasses import dataclass

from health.levels import Thresholds


@dataclass(frozen=True, slots=True)
class Trap:
    """``code`` names the kind, ``message`` says what to change."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


def traps_of(thresholds: Thresholds, input_length: int | None) -> list[Trap]:
    """The traps of one model; ``input_length`` is the longest prompt it takes, in tokens, where that is stated."""
    traps = []
    critical = thresholds.effective_critical_max
    if not thresholds.has_caution_band:
        traps.append(
            Trap(
                "no_caution_band",
                f"There is no caution band: critical begins at {critical:,} tokens, before caution at "
                f"{thresholds.effective_optimal_max:,}. Set optimal_max_tokens below {critical:,} to get one.",
            )
        )
    if input_length is not None and critical is not None and input_length < critical:
        traps.append(
            Trap(
                "never_critical",
                f"It would never turn red: the longest input is {input_length:,} tokens, and critical begins above "
                f"{critical:,}. Set critical_max_tokens below {input_length:,}.",
            )
        )
    return traps
