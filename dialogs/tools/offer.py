"""The tools in a request. Small windows describe the built-in ones briefly, and leave out the least needed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dialogs.context.client import instructions_of
from dialogs.context.served import Served
from dialogs.models import Dialog
from dialogs.tools.registry import tools_for_dialog
from dialogs.tools.tool import Tool
from dominds.llm.messages import ToolSpec
from remediation.budget import ROOMY, WHOLE_TOOLS_SHARE, frame_room
from remediation.tokens.counting import Counter, counter_for

# The first goes first. What guidance and forced clears ask for stays.
LEAST_NEEDED = ("ask_human", "update_reminder", "delete_reminder", "read_archive", "search_archive", "read_artifact")
READS_LARGE_RESULTS = "read_artifact"  # of other tools: without any it goes before all


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a request describes, and those for which there is no room. A call of these runs all the same."""

    tools: tuple[ToolSpec, ...]
    left_out: tuple[str, ...] = ()


def offer_to(dialog: Dialog, served: Served) -> Offer:
    return offer(tools_for_dialog(dialog), served, instructions_of(dialog))


def offer(tools: Mapping[str, Tool], served: Served, instructions: str) -> Offer:
    """Offer these tools, as far as the window has room for them beside ``instructions``.

    Sizes are as counted: what reports teach must not change the beginning of requests.
    """
    window = served.thresholds.context_limit
    if window is None or window >= ROOMY:
        return Offer(tuple([tool.spec for tool in tools.values()]))
    counter = counter_for(served.model.model_id, served.model.tokenizer)
    return fit_offer(tools, window, counter.count(instructions), counter)


def fit_offer(tools: Mapping[str, Tool], window: int, beside: int, counter: Counter) -> Offer:
    """Describe the tools of every agent briefly where they leave too little room, then leave out the least needed."""
    shown = {name: tool.spec for name, tool in tools.items()}
    own = [tool.spec for tool in tools.values() if not tool.always]
    stays = beside + counter.count_tools(own)
    if beside + counter.count_tools(tuple(shown.values())) <= frame_room(window, stays, WHOLE_TOOLS_SHARE):
        return Offer(tuple(shown.values()))
    shown |= {name: briefly(tool.spec) for name, tool in tools.items() if tool.always}
    left_out = []
    for name in LEAST_NEEDED if own else (READS_LARGE_RESULTS, *LEAST_NEEDED):
        if beside + counter.count_tools(tuple(shown.values())) <= frame_room(window, stays):
            break
        if name in shown and tools[name].always:
            del shown[name]
            left_out.append(name)
    return Offer(tuple(shown.values()), tuple(left_out))


def briefly(spec: ToolSpec) -> ToolSpec:
    """Return a tool without what its schema explains and bounds. Its calls are checked by the whole schema."""
    whole = spec.parameters
    plain = {name: _without_bounds(schema) for name, schema in whole["properties"].items()}
    return replace(spec, parameters={"type": "object", "properties": plain, "required": whole["required"]})


def _without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    items = {"items": _without_bounds(schema["items"])} if "items" in schema else {}
    return {"type": schema["type"], **items}
