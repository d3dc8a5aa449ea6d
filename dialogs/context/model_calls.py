"""The two kinds of call that a dialog makes for its conversation.

All their differences are here, so code that builds, sends and stores requests treats both alike.
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
    """A call for the next answer of the conversation. People see its text as it streams, and a policy may ``watch`` it.

    ``asked`` are the client's settings for the model, ``required_tool`` is the tool that the client insists on.
    ``output`` bounds the answer in tokens; None leaves that to the provider. ``counted`` is the prompt, if it was
    counted, and ``est_tokens`` the prompt tokens that the provider is expected to report.
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
        """Return the tool to ask for in words if the model cannot be forced to call it."""
        return self.required_tool


@dataclass(frozen=True, slots=True)
class ForcedClear:
    """A call that only ``clear_mind`` answers: the way out of a full context.

    It recalls nothing, ignores what a client asks for, and no policy watches its answer. Its guidance asks for the tool
    in words.
    """

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
