"""The two kinds of call that a dialog makes for its conversation.

All that differs between them stands here: whoever builds, sends and stores a request treats both alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dialogs.context.retrieval.recall import NOTHING, Recall
from dialogs.context.sizes import StreamWatch
from dialogs.context.view import View
from dialogs.models import Generation
from dominds.llm.messages import ToolSpec
from remediation.guidance import CLEAR_MIND
from remediation.tokens.calibration import Counted


@dataclass(frozen=True, slots=True)
class Answer:
    """A call for what comes next in the conversation: people see its text as it streams, and a policy may ``watch`` it.

    ``asked`` and ``required_tool`` are what the client wants of the model and insists on. ``output`` is in tokens; None
    leaves it to the provider. ``counted`` is the prompt, where it was counted, ``est_tokens`` what it is expected to
    be reported as.
    """

    purpose: ClassVar = Generation.Purpose.REPLY
    streams: ClassVar = True

    view: View
    tools: tuple[ToolSpec, ...] = ()
    guidance: str = ""
    nudge: str = ""
    recalled: Recall = NOTHING
    asked: Mapping[str, Any] = field(default_factory=dict)
    required_tool: str = ""
    output: int | None = None
    counted: Counted | None = None
    est_tokens: int | None = None
    watch: StreamWatch | None = None

    @property
    def tool_in_words(self) -> str:
        """Return the tool to ask for in words, where the model cannot be made to call it."""
        return self.required_tool


@dataclass(frozen=True, slots=True)
class ForcedClear:
    """A call that only ``clear_mind`` answers, the way out of a full context: nothing is brought back into it, nothing
    that a client asks for holds, and its answer is not cut. Its guidance asks for the tool in words."""

    purpose: ClassVar = Generation.Purpose.FORCED_CLEAR
    streams: ClassVar = False
    nudge: ClassVar[str] = ""
    recalled: ClassVar[Recall] = NOTHING
    asked: ClassVar[Mapping[str, Any]] = {}
    required_tool: ClassVar[str] = CLEAR_MIND
    tool_in_words: ClassVar[str] = ""
    watch: ClassVar[StreamWatch | None] = None

    view: View
    guidance: str
    tools: tuple[ToolSpec, ...] = ()
    output: int | None = None
    counted: Counted | None = None
    est_tokens: int | None = None


ModelCall = Answer | ForcedClear
