"""How estimates are corrected by what providers report, and what one request is made of. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dominds.llm.messages import Message, Role, ToolSpec
from remediation.tokens.counting import Counter

EstimateSource = Literal["provider", "calibrated", "tokenizer", "characters"]

LOWEST_FACTOR = 0.5
HIGHEST_FACTOR = 2.0
NEWEST_WEIGHT = 0.8  # the newest report tells most: the model, its template or its tools may have changed since
FULL_WEIGHT_TOKENS = 200  # below, a template's fixed words outweigh the text, and a report teaches less
UNKNOWN_OUTPUT_BUFFER = 1_024  # tokens


@dataclass(frozen=True, slots=True)
class Calibration:
    """``factor`` turns a counter's estimate into what this model's provider would report; 0.5 to 2.0."""

    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of tokens and where it comes from. Only ``provider`` may colour the health light."""

    tokens: int
    source: EstimateSource


def calibrate(previous: Calibration | None, estimated: int, reported: int) -> Calibration:
    """Learn from one report: ``estimated`` is the raw count of the request, ``reported`` the provider's prompt tokens.

     Both cover the same request, without output buffer. Never call it with a report that is suspected of truncation:
    knowing that is the caller's duty. Counts of zero or less teach nothing.
    """
    known = previous or Calibration()
    if estimated <= 0 or reported <= 0:
        return known
    newest = _bounded(reported / estimated)
    weight = min(1.0, estimated / FULL_WEIGHT_TOKENS) * (NEWEST_WEIGHT if previous else 1.0)
    return Calibration(_bounded(known.factor + weight * (newest - known.factor)))


def _bounded(factor: float) -> float:
    return min(HIGHEST_FACTOR, max(LOWEST_FACTOR, factor))


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """What one request is expected to take of the window, part by part, in tokens.

    The parts are raw counts; ``factor`` corrects their sum. ``overhead`` stands once per request.
    """

    instructions: int
    messages: int
    tools: int
    overhead: int
    output_buffer: int
    factor: float
    source: EstimateSource

    @property
    def raw_input_tokens(self) -> int:
        """The uncorrected prompt: what ``calibrate`` is to be told when the provider has reported."""
        return self.instructions + self.messages + self.tools + self.overhead

    @property
    def input_tokens(self) -> int:
        """The prompt, corrected, rounded up."""
        return math.ceil(self.raw_input_tokens * self.factor)

    @property
    def total_tokens(self) -> int:
        """Prompt and room for the answer: what B1 compares with 80 % of the limit."""
        return self.input_tokens + self.output_buffer

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.total_tokens, self.source)


def estimate_request(
    instructions: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    counter: Counter,
    calibration: Calibration | None = None,
    output_buffer: int = 0,
) -> RequestEstimate:
    """Size one request before it is sent: system prompt, messages, tool schemas and output buffer."""
    system = (Message(Role.USER, instructions),) if instructions else ()
    return RequestEstimate(
        instructions=counter.count_messages(system),
        messages=counter.count_messages(messages),
        tools=counter.count_tools(tools),
        overhead=counter.reply_overhead,
        output_buffer=output_buffer,
        factor=calibration.factor if calibration else 1.0,
        source="calibrated" if calibration else counter.source,
    )


def output_buffer(output_length: int | None, limit: int | None) -> int:
    """Tokens kept free for the answer: the model's output length or 1,024, and at most a quarter of the limit."""
    wanted = UNKNOWN_OUTPUT_BUFFER if output_length is None else output_length
    return wanted if limit is None else min(wanted, limit // 4)
