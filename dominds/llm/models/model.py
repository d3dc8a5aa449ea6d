"""A model and the kind of its provider, as values: everything that the rest of the product may ask about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dominds.llm.models.dialects import CHAT, Dialect
from dominds.llm.models.prices import Price

if TYPE_CHECKING:
    from dominds.llm.provider import Provider

DEFAULT_CADENCE_GENERATIONS = 10
MODALITIES = ("text", "image", "file")
FORCED_TOOL = ("yes", "no", "named", "required", "thinking_off")  # thinking_off: while the model does not think


class Forcing(StrEnum):
    """The way in which a request insists on a tool. Where it cannot, its text has to ask for the tool."""

    NONE = "none"
    NAMED = "named"  # the tool by its name
    REQUIRED = "required"  # any tool; only a list of one names it
    ALLOWED = "allowed"  # one tool of a sublist, while the whole list stays cached


class Echo(StrEnum):
    """A rule for sending an answer's reasoning text back. Opaque reasoning goes back wherever it is stored."""

    NEVER = "never"
    SENT = "sent"  # goes back as it came
    CALLS = "calls"  # demanded with every answer that has calls, even if empty
    SIGNATURES = "signatures"  # demanded with the first call of every answer; a placeholder replaces a foreign one


class Thinking(StrEnum):
    """The times at which a model thinks, and the part of them that a request decides."""

    UNKNOWN = ""
    NEVER = "never"
    ALWAYS = "always"  # always; a request not to think is refused
    ON = "default"  # always, unless a request says not to
    ADAPTIVE = "adaptive"  # only on request, as much as the model sees fit
    BUDGET = "budget"  # only on request, within a budget of tokens
    EFFORT = "effort"  # at a level of effort, which may be none


@dataclass(frozen=True, slots=True)
class LoadedLimit:
    """The window that a model was loaded with, in tokens, and the server's field that says so."""

    tokens: int
    source: str


@dataclass(frozen=True, slots=True)
class LimitUnavailable:
    """The reason why the server reports no window, and what a person can do about it."""

    reason: str


AskWindow = Callable[[str, str, str], LoadedLimit | LimitUnavailable]  # base URL, model, key
AskSight = Callable[[str, str, str], bool | None]  # the same; None: the server does not say
CountTokens = Callable[[str, str, str, str], int | None]  # base URL, model, text, key


@dataclass(frozen=True, slots=True)
class PartSizes:
    """The sizes of images and files in tokens.

    An image counts a token for each square of ``patch`` pixels, after it was made smaller until it needs at most
    ``most_patches``. A document counts ``page`` tokens for each page.
    """

    patch: int = 28
    most_patches: int = 4096
    page: int = 3000


@dataclass(frozen=True, slots=True)
class ImageBounds:
    """The images that a server takes in one request: their number, their bytes, and at most ``most_with_large`` where
    one has a side over ``large`` pixels. 0 stands for no stated bound.
    """

    most: int = 0
    most_bytes: int = 0
    large: int = 0
    most_with_large: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """A dialect's or model's demands on requests, beyond those of all others.

    0 stands for no bound. ``nine``: ids of calls have nine letters and digits. ``numbered``: they may be
    ``functions.NAME:NUMBER``, which the model wants back as it wrote them. ``plain_keys``: names of a tool's properties
    contain no ``$`` and no brackets. ``anchored``: patterns say where they begin and end. ``alternates``:
    user and assistant take turns, and only the first message may be the system's.
    """

    nine: bool = False
    numbered: bool = False
    plain_keys: bool = False
    anchored: bool = False
    alternates: bool = False
    description_chars: int = 0
    most_tools: int = 0


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of provider: how its models are called, and how they differ from others.

    ``connect`` takes a model and its key. ``loaded_window`` asks the server for the window with which a model runs now,
    and ``sees`` whether it takes images.
    """

    name: str
    connect: "Callable[[ModelInfo, str], Provider]" = field(repr=False)
    label: str = ""  # the name on the page that connects a server; empty: not offered there
    is_server: bool = True
    is_local: bool = False  # a server of one's own: all that it lists chats, and it is asked how a model runs now
    needs_limit: bool = False  # a model without a known window is unusable
    overruns: bool = False  # it goes on past the end of a window: an answer's length has to be limited
    plays: str = ""  # the kind whose rules hold for its models, where that is another
    loaded_window: AskWindow | None = field(default=None, repr=False)
    sees: AskSight | None = field(default=None, repr=False)
    count_tokens: CountTokens | None = field(default=None, repr=False)
    form: Form = Form()
    can_force: bool = True  # reads tool_choice: the assumption for a model of which the catalog says nothing
    takes_several_system: bool = False  # messages in the beginning, of which ``Request.instructions`` are the first
    embeds: bool = False  # answers at /embeddings in OpenAI's format
    forcing: Forcing = Forcing.NAMED
    echo: Echo = Echo.NEVER
    max_tokens_field: str = "max_tokens"
    params: Dialect = CHAT
    modalities: tuple[str, ...] = MODALITIES[:1]
    part_sizes: PartSizes = PartSizes()
    image_bounds: ImageBounds = ImageBounds()

    @property
    def family(self) -> str:
        """Return the name by which a context policy chooses models of this kind."""
        return self.plays or self.name


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model, as far as it is known. Lengths and thresholds are tokens; None: not stated.

    ``tokenizer`` names the vocabulary, where the model's name does not tell it. ``script`` is the path of a scripted
    model's file. ``unusable`` says why the model cannot be called, or is empty. ``supports_tool_choice`` goes before
    ``forced_tool``, unless it is None. ``model_params`` are added to each request's body, see ``dialects``, and
    ``thinking_off`` are the parameters that stop a model from thinking where a tool is forced.
    """

    provider_id: str
    model_id: str
    name: str
    kind: ProviderKind
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = field(default="", repr=False)  # typed into the page; a variable that is named goes before it
    context_length: int | None = None
    input_length: int | None = None
    output_length: int | None = None
    optimal_max_tokens: int | None = None
    critical_max_tokens: int | None = None
    cadence: int = DEFAULT_CADENCE_GENERATIONS
    supports_tool_choice: bool | None = None
    forced_tool: str = ""
    thinking: Thinking = Thinking.UNKNOWN
    most_effort: str = ""  # the greatest effort that it takes; empty: any
    is_bound: bool = False
    alternates: bool = False  # the template requires that user and assistant take turns
    nine_ids: bool = False  # ids of calls have nine characters, as Mistral's templates want
    description_chars: int = 0  # of a tool's description, as its refusal named them; 0: any number
    most_tools: int = 0
    echo: Echo = Echo.NEVER
    max_tokens_field: str = "max_tokens"
    modalities: tuple[str, ...] = MODALITIES[:1]
    states_modalities: bool = True  # stated in the catalog; otherwise its server may know better
    image_tokens: int | None = None  # tokens of any image, for models that do not count by size
    image_bounds: ImageBounds = ImageBounds()
    prices: tuple[Price, ...] = ()
    retires_on: date | None = None
    model_params: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    thinking_off: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    script: str = ""
    tokenizer: str = ""
    unusable: str = ""

    @property
    def has_cursor(self) -> bool:
        """Check whether each call needs a value from the call before, as a script needs its place among its steps."""
        return not self.kind.is_server

    @property
    def limit(self) -> tuple[int | None, str]:
        """Return the window in tokens, and the name of the field that states it."""
        if self.context_length is not None:
            return self.context_length, "context_length"
        if self.input_length is not None:
            return self.input_length, "input_length"
        return None, ""

    @property
    def input_limit(self) -> int | None:
        """Return the longest prompt in tokens: the window, or less if the provider reserves room for output."""
        stated = [length for length in (self.context_length, self.input_length) if length is not None]
        return min(stated, default=None)

    @property
    def reads_tool_choice(self) -> bool:
        """Check whether a request may at least say that no tool is to be called."""
        return self.kind.can_force if self.supports_tool_choice is None else self.supports_tool_choice

    @property
    def forcing(self) -> Forcing:
        """Return how a request may insist on a tool, as far as the catalog knows."""
        can = self.supports_tool_choice
        if can is None:
            can = self.kind.can_force if not self.forced_tool else self.forced_tool != "no"
        if not can:
            return Forcing.NONE
        named = {Forcing.NAMED.value: Forcing.NAMED, Forcing.REQUIRED.value: Forcing.REQUIRED}
        return named.get(self.forced_tool, self.kind.forcing)
