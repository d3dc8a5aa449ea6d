"""A model and the kind of its provider, as values. Other code asks these values, and never tests for names."""

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
FORCED_TOOL = ("yes", "no", "named", "required", "thinking_off")  # thinking_off: only while the model does not think


class Forcing(StrEnum):
    """The way in which a request can insist on a tool."""

    NONE = "none"  # it cannot, so its text has to ask for the tool
    NAMED = "named"  # by the tool's name
    REQUIRED = "required"  # some tool must be called; the model chooses which, unless only one is offered
    ALLOWED = "allowed"  # a sublist of one tool, while the whole list stays cached


class Echo(StrEnum):
    """The rule for sending an answer's reasoning text back. Opaque reasoning goes back whenever it is stored."""

    NEVER = "never"
    SENT = "sent"  # as it came
    CALLS = "calls"  # the provider demands it with every answer that has calls, even if empty
    # The provider demands a signature with the first call of every answer. A placeholder stands for a missing one.
    SIGNATURES = "signatures"


class Thinking(StrEnum):
    """When a model thinks, and how far a request decides that."""

    UNKNOWN = ""
    NEVER = "never"
    ALWAYS = "always"  # a request not to think is refused
    ON = "default"  # unless a request says not to
    ADAPTIVE = "adaptive"  # only on request, as long as the model chooses
    BUDGET = "budget"  # only on request, within a budget of tokens
    EFFORT = "effort"  # at a level of effort, which may be none


@dataclass(frozen=True, slots=True)
class LoadedLimit:
    """The window with which a model was loaded, in tokens, and the name of the server's field that states it."""

    tokens: int
    source: str


@dataclass(frozen=True, slots=True)
class LimitUnavailable:
    """The reason why the server reports no window, and what a person can do about it."""

    reason: str


AskWindow = Callable[[str, str, str], LoadedLimit | LimitUnavailable]  # base URL, model, key
AskSight = Callable[[str, str, str], bool | None]  # base URL, model, key; None: the server does not say
CountTokens = Callable[[str, str, str, str], int | None]  # base URL, model, text, key


@dataclass(frozen=True, slots=True)
class PartSizes:
    """The sizes of images and files in tokens.

    An image counts one token for each square with sides of ``patch`` pixels. Larger images are scaled down until they
    need at most ``most_patches``. A document counts ``page`` tokens for each page.
    """

    patch: int = 28
    most_patches: int = 4096
    page: int = 3000


@dataclass(frozen=True, slots=True)
class ImageBounds:
    """Bounds on the images in one request: their number and bytes. 0 means that no bound is known.

    If one image has a side over ``large`` pixels, at most ``most_with_large`` are allowed.
    """

    most: int = 0
    most_bytes: int = 0
    large: int = 0
    most_with_large: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """The demands of a kind of provider, or of a model, on the form of requests.

    0 means no bound. ``nine``: ids of calls have nine letters and digits. ``numbered``: ids of the form
    ``functions.NAME:NUMBER`` go back as the model wrote them. ``plain_keys``: names of a tool's properties contain no
    ``$`` and no brackets. ``anchored``: patterns begin with ``^`` and end with ``$``. ``alternates``: user and
    assistant take turns, and only the first message may be the system's.
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
    """A kind of provider: how its models are called, and in what they differ from others.

    ``connect`` takes a model and its key. ``loaded_window`` asks the server for the window of a running model, and
    ``sees`` whether the model takes images.
    """

    name: str
    connect: "Callable[[ModelInfo, str], Provider]" = field(repr=False)
    label: str = ""  # the name on the page that connects a server; empty: not offered there
    is_server: bool = True
    is_local: bool = False  # a server of one's own: all models that it lists chat, and it tells how a model runs
    needs_limit: bool = False  # a model without a known window is unusable
    overruns: bool = False  # it goes on past the end of the window, so every request has to limit the answer
    plays: str = ""  # the name of another kind, whose rules hold for scripts that play its models
    loaded_window: AskWindow | None = field(default=None, repr=False)
    sees: AskSight | None = field(default=None, repr=False)
    count_tokens: CountTokens | None = field(default=None, repr=False)
    form: Form = Form()
    can_force: bool = True  # whether models can be forced to call a tool, if the catalog does not say
    takes_several_system: bool = False  # whether several system messages may begin a conversation
    takes_blank: bool = True  # whether a message may be empty
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

    ``tokenizer`` names the vocabulary, if the model's name does not tell it. ``script`` is the path of a scripted
    model's file. ``unusable`` says why the model cannot be called, or is empty. ``supports_tool_choice`` overrides
    ``forced_tool``, unless it is None. ``model_params`` are added to each request's body, see ``dialects``.
    ``thinking_off`` are the parameters that stop a model from thinking while a tool is forced.
    """

    provider_id: str
    model_id: str
    name: str
    kind: ProviderKind
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = field(default="", repr=False)  # typed into the page; ignored if ``api_key_env`` is set
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
    is_bound: bool = False  # its signed thinking is valid only in the unchanged conversation
    alternates: bool = False  # its template requires that user and assistant take turns
    nine_ids: bool = False  # ids of calls must have nine characters, as Mistral's templates demand
    description_chars: int = 0  # the longest description of a tool; 0: any
    most_tools: int = 0  # 0: any number
    echo: Echo = Echo.NEVER
    max_tokens_field: str = "max_tokens"
    modalities: tuple[str, ...] = MODALITIES[:1]
    states_modalities: bool = True  # whether the catalog states the modalities; if not, the server may know better
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
        """Check whether each call needs a value from the call before, such as a script's place among its steps."""
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
