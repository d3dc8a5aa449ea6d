"""Token counting without a network: families, vocabularies, counters, calibration and the size of a request."""

from remediation.tokens.calibration import (
    Calibration,
    Counted,
    Estimate,
    EstimateSource,
    RequestEstimate,
    calibrate,
    estimate_request,
    output_buffer,
)
from remediation.tokens.counting import Counter, TextCounter, characters_per_four, count_characters, counter_for
from remediation.tokens.families import Family, family_of

__all__ = [
    "Calibration",
    "Counted",
    "Counter",
    "Estimate",
    "EstimateSource",
    "Family",
    "RequestEstimate",
    "TextCounter",
    "calibrate",
    "characters_per_four",
    "count_characters",
    "counter_for",
    "estimate_request",
    "family_of",
    "output_buffer",
]
