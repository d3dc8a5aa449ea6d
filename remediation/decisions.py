"""The closed unions in which policies answer the driver's four questions."""

from dataclasses import dataclass

BY_HAND = "asked for by hand"  # the reason of a rewrite or clear that a person requested
UNDO_CLEAR = "undo_clear"  # stands for a policy in the row of a rewrite by which a person undoes a clear
AT_MILESTONE = "a milestone was reached"  # the reason of a fresh start that a person or the agent asked for


@dataclass(frozen=True, slots=True)
class Proceed:
    """Generate. ``guidance`` ends the request and is stored nowhere."""

    guidance: str = ""


@dataclass(frozen=True, slots=True)
class ForceClear:
    """Make the model clear its mind. Anything else in its answer is discarded.

    ``guidance`` tells the model so, and is stored nowhere.
    """

    guidance: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Rewrite the view first, by the policy of the name ``policy``, with the aim of ``target_tokens``."""

    policy: str
    reason: str
    target_tokens: int


@dataclass(frozen=True, slots=True)
class ClearMind:
    """Start a new round, with a package that a person wrote or one drafted from stored facts."""

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
    """Keep the result, compact the rest, and go on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Replace a result that no compaction can make fit by ``message``. Its full text becomes an artifact."""

    message: str


@dataclass(frozen=True, slots=True)
class PutAside:
    """Replace a result that does not fit by its first ``room`` tokens. Its full text becomes an artifact."""

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
