"""The families of Anthropic's models, and a request to one of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.doubles.binding import blocks_of
from tests.doubles.rules import Rule

FIELDS = set(
    "model max_tokens messages system tools tool_choice thinking output_config stream temperature top_p top_k metadata "
    "stop_sequences service_tier cache_control context_management compaction container mcp_servers".split()
)
COUNTED_FIELDS = FIELDS - {"max_tokens", "stream", "temperature", "top_p", "top_k", "metadata", "stop_sequences"}


@dataclass(frozen=True)
class Family:
    """``window`` and ``maximum`` (output) in tokens. ``thinking``: the types that are accepted, the default first."""

    name: str
    thinking: tuple[str, ...]
    window: int = 1_000_000
    maximum: int = 128_000
    forces: Literal["never", "without budget"] = "without budget"
    has_sampling: bool = False
    has_prefill: bool = False
    binds_prefix: bool = False
    binds_account: bool = False
    has_systems: bool = True  # system messages in the middle
    stops_at_window: bool = True  # else: prompt + max_tokens must fit
    highest_unthinking_effort: str = "max"
    cache_minimum: int = 512
    signs: bool = True  # its thinking, and checks what comes back
    rules: tuple[Rule, ...] = ()  # its own, which go before those of sizes


NEWEST = Family("anthropic-5.5", ("adaptive",), forces="never", binds_prefix=True)
BUDGET = Family(
    "anthropic-4",
    ("disabled", "enabled"),
    window=200_000,
    maximum=64_000,
    has_sampling=True,
    has_prefill=True,
    has_systems=False,
    cache_minimum=1_024,
)
FAMILIES = {
    family.name: family
    for family in (
        NEWEST,
        replace(NEWEST, name="anthropic-5.5-sonnet", thinking=("adaptive", "between_tools"), binds_account=True),
        replace(
            NEWEST,
            name="anthropic-5.5-haiku",
            thinking=("adaptive", "disabled"),
            forces="without budget",
            binds_account=True,
            highest_unthinking_effort="high",
        ),
        Family("anthropic-5", ("adaptive", "disabled", "enabled")),
        BUDGET,
        replace(BUDGET, name="anthropic-3", stops_at_window=False),
    )
}
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True)
class MessagesRequest:
    """A request with what its rules ask for. ``prompt_tokens`` is what would be billed as input."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    family: Family
    is_count: bool = False
    prompt_tokens: int = 0

    @property
    def betas(self) -> set[str]:
        return {value.strip() for value in self.headers.get("anthropic-beta", "").split(",")}

    @property
    def thinking(self) -> str:
        """The type of thinking in force."""
        return str((self.body.get("thinking") or {}).get("type") or self.family.thinking[0])

    @property
    def choice(self) -> str:
        return str((self.body.get("tool_choice") or {}).get("type", "auto"))

    @property
    def blocks(self) -> Iterator[tuple[int, int, dict[str, Any], Mapping[str, Any]]]:
        for at, message in enumerate(self.body["messages"]):
            for position, block in enumerate(blocks_of(message["content"])):
                yield at, position, block, message
