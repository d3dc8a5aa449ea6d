"""Calibration of estimates by what providers report, and the parts of one request. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from dominds.llm.messages import Message, Role, ToolSpec
from remediation.tokens.counting import Counter

LEAST_SLOPE, MOST_SLOPE = 0.5, 2.0
BOUNDS = ((LEAST_SLOPE, MOST_SLOPE), (0.0, 3.0))  # bounds of the slope, and of the tools' share

# Standard deviations, which decide how far one report moves each number. Tuned on 600 conversations of 24 turns under
# five chat templates, half of which leave tools out; ``tests/remediation/tokens`` holds the figures.
SLOPE_DEVIATION = 0.15  # of a counter on texts that it was not made for
KNOWN_SLOPE_DEVIATION = 0.05  # if a factor was measured before
SLOPE_DRIFT = 0.03  # from one report to the next, since the kinds of text change
TOOLS_DEVIATION = 0.7  # templates print tools, shorten them or leave them out
OFFSET_DEVIATION = 30.0  # tokens of a template's fixed words
REPORT_DEVIATION, REPORT_DEVIATION_TOKENS = 0.005, 2.0  # of a report itself: a share of it, and tokens
MOST_DEVIATIONS = 5.0  # a larger surprise moves the numbers no further than one of this many deviations
REPORTED_MARGIN = 0.01  # the share by which a prompt that was reported before may be larger than expected
DENSEST = 1.25  # how many times its calibrated count a text may have that is unlike those reported


@dataclass(frozen=True, slots=True)
class Counted:
    """The size of a request in tokens, before calibration.

    ``text`` includes what templates put around messages. ``images`` follow their provider's own rule, and are not
    calibrated.
    """

    text: int
    tools: int = 0
    images: int = 0

    @property
    def total(self) -> int:
        return self.text + self.tools + self.images


Spread = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A correction of counts towards those of a model.

    ``slope`` multiplies the text, ``tools_share`` the tools, and every request has ``offset`` tokens more. ``spread``
    is the covariance of the three: the upper triangle of the matrix, row by row.
    """

    slope: float = 1.0
    tools_share: float = 1.0
    offset: float = 0.0
    spread: Spread = (SLOPE_DEVIATION**2, 0.0, 0.0, TOOLS_DEVIATION**2, 0.0, OFFSET_DEVIATION**2)

    @classmethod
    def of_factor(cls, factor: float) -> "Calibration":
        """Make a calibration from one factor for text and tools that was measured without reports."""
        slope = _between(*BOUNDS[0], factor)
        return cls(slope, slope, spread=(KNOWN_SLOPE_DEVIATION**2, *cls().spread[1:]))

    @classmethod
    def of_numbers(cls, numbers: Sequence[float]) -> "Calibration":
        """Read back what ``numbers`` returned."""
        slope, tools_share, offset, *spread = numbers
        return cls(slope, tools_share, offset, cast(Spread, tuple(spread)))

    @property
    def numbers(self) -> list[float]:
        """Return all values in the order in which a row stores them."""
        return [float(f"{number:.10g}") for number in (self.slope, self.tools_share, self.offset, *self.spread)]

    def expected(self, counted: Counted) -> float:
        """Return the prompt that the provider is expected to report, in tokens."""
        return self.slope * counted.text + self.tools_share * counted.tools + self.offset + counted.images


def calibrate(previous: Calibration | None, counted: Counted, reported: int) -> Calibration:
    """Learn from one report, ``reported`` prompt tokens for the request ``counted``, by one step of a Kalman filter.

    A surprise changes most the number that is least sure and has the largest part in the request: in a short first
    request the tools' share, later the slope. Callers must leave out reports that are suspected of truncation. Counts
    of zero or less teach nothing.
    """
    known = previous or Calibration()
    if counted.text <= 0 or reported <= 0:
        return known
    a, b, c, d, e, f = known.spread
    a += SLOPE_DRIFT**2 if previous else 0.0
    text, tools, rows = counted.text, counted.tools, ((a, b, c), (b, d, e), (c, e, f))
    shared = [of_text * text + of_tools * tools + of_one for of_text, of_tools, of_one in rows]
    surprise = reported - known.expected(counted)
    variance = shared[0] * text + shared[1] * tools + shared[2]
    variance += (REPORT_DEVIATION * reported) ** 2 + REPORT_DEVIATION_TOKENS**2
    variance *= max(1.0, abs(surprise) / (math.sqrt(variance) * MOST_DEVIATIONS))
    values = [
        value + part * surprise / variance
        for value, part in zip((known.slope, known.tools_share, known.offset), shared, strict=True)
    ]
    spread = [[rows[i][j] - shared[i] * shared[j] / variance for j in range(3)] for i in range(3)]
    for at, (least, most) in enumerate(BOUNDS):
        values = _bound(values, spread[at], at, least, most)
    slope, tools_share, offset = values
    upper = (*spread[0], *spread[1][1:], spread[2][2])
    return Calibration(_between(*BOUNDS[0], slope), tools_share, offset, cast(Spread, upper))


def _bound(values: list[float], covariances: list[float], at: int, least: float, most: float) -> list[float]:
    """Put the number at ``at`` within its bounds, and move the others by their covariance with it."""
    excess = values[at] - _between(least, most, values[at])
    if excess and covariances[at] > 0:
        values = [
            value - covariance / covariances[at] * excess for value, covariance in zip(values, covariances, strict=True)
        ]
    return [value if number != at else _between(least, most, value) for number, value in enumerate(values)]


def margin_of(expected: int, reported: int | None, slope: float) -> int:
    """Return the tokens by which a calibrated prompt may exceed its ``expected`` size.

    The part that was ``reported`` before may be off by a hundredth. The text since then may be as dense as DENSEST
    allows. If the prompt is shorter than the report, the text that went may have been the sparsest.
    """
    known = min(expected, reported or 0)
    gone = (reported or 0) - known
    denser = DENSEST * max(1.0, 1 / slope) - 1
    return round(
        REPORTED_MARGIN * known + denser * (expected - known) + min(denser * known, gone - least_of(gone, slope))
    )


def least_of(expected: int, slope: float) -> int:
    """Return the least tokens that a part of a calibrated prompt may have whose ``expected`` size is given."""
    return int(expected / (DENSEST * max(1.0, slope)))


def _between(least: float, most: float, value: float) -> float:
    return min(most, max(least, value))


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """An estimate of a request's size: ``counted`` before calibration, ``input_tokens`` after it."""

    counted: Counted
    input_tokens: int
    source: str  # "provider", "calibrated" by reports, "tokenizer" or "characters"


def estimate_request(
    instructions: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    counter: Counter,
    calibration: Calibration | None = None,
) -> RequestEstimate:
    """Size one request before it is sent: system prompt, messages and tool schemas."""
    system = (Message(Role.USER, instructions),) if instructions else ()
    counted = Counted(counter.count_messages((*system, *messages)) + counter.reply_overhead, counter.count_tools(tools))
    tokens = max(0, math.ceil(calibration.expected(counted))) if calibration else counted.total
    return RequestEstimate(counted, tokens, "calibrated" if calibration else counter.source)
