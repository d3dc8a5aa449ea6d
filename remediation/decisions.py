"""The closed unions in which policies answer the driver's four questions."""

from dataclasses import dataclass

BY_HAND = "asked for by hand"  # the reason of a rewrite or clear that a person requested
UNDO_CLEAR = "undo_clear"  # in place of a policy, of the rewrite by which a person takes a clear back
AT_MILESTONE = "a milestone was reached"  # of a fresh start, as a person or the agent said


@dataclass(frozen=True, slots=True)
class Proceed:
    """Generate. ``guidance`` ends the request and is stored nowhere."""

    guidance: str = ""


@dataclass(frozen=True, slots=True)
class ForceClear:
    """Make the model clear its mind: nothing else of its answer is kept.
    ``guidance`` says so, and is stored nowhere."""

    guidance: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Rewrite the view first. ``policy`` names whose rewrite, ``target_tokens`` is the size aimed at."""

    policy: str  # its name
    reason: str
    target_tokens: int


@dataclass(frozen=True, slots=True)
class ClearMind:
    """Start a new round: with the package that a person wrote, or one drafted from stored facts."""

    reason: str
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Suspend:
    """Stop generating and ask a human. ``kind`` is the question's kind."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the message visibly. ``code`` names a context error, ``message`` says what to do."""

    code: str
    message: str


Decision = Proceed | ForceClear | Rewrite | ClearMind | Suspend | Fail


@dataclass(frozen=True, slots=True)
class Continue:
    pass


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the stream, compact, and go on in the same answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Abort:
    message: str


StreamDecision = Continue | Interrupt | Abort


@dataclass(frozen=True, slots=True)
class Accept:
    pass


@dataclass(frozen=True, slots=True)
class Compact:
    """Keep the result, compact the rest, run again with it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """The result cannot fit whatever is compacted; ``message`` stands in its place,
    the full text becomes an artifact."""

    message: str


@dataclass(frozen=True, slots=True)
class PutAside:
    """The result does not fit: its beginning, of at most ``room`` tokens, stands in its place,
    the full text becomes an artifact."""

    room: int


ToolResultDecision = Accept | Compact | Reject | PutAside


@dataclass(frozen=True, slots=True)
class Keep:
    pass


@dataclass(frozen=True, slots=True)
class Discard:
    """Forget the output; only the log of discarded outputs keeps it for a while."""

    reason: str


ReplyDecision = Keep | Discard
