"""The tools that a request describes. In small windows the built-in ones are described briefly, and the least needed
are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dialogs.context.client import instructions_of
from dialogs.context.served import Served
from dialogs.models import Dialog
from dialogs.tools.registry import tools_for_dialog
from dialogs.tools.tool import Tool
from dominds.llm.messages import ToolSpec
from remediation.budget import ROOMY, WHOLE_TOOLS_DIVISOR, frame_room
from remediation.tokens.counting import Counter, counter_for

# In the order in which they are left out. Tools that guidance and forced clears ask for always stay.
LEAST_NEEDED = ("ask_human", "update_reminder", "delete_reminder", "read_archive", "search_archive", "read_artifact")
READS_LARGE_RESULTS = "read_artifact"  # reads large results of other tools; without any of these, it is left out first


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a request describes, and those for which it has no room. Calls of these run all the same."""

    tools: tuple[ToolSpec, ...]
    left_out: tuple[str, ...] = ()


def offer_to(dialog: Dialog, served: Served) -> Offer:
    return offer(tools_for_dialog(dialog), served, instructions_of(dialog))


def offer(tools: Mapping[str, Tool], served: Served, instructions: str) -> Offer:
    """Offer these tools, as far as the window has room for them beside ``instructions``.

    Sizes are uncalibrated counts: reports must not change the beginning of requests.
    """
    window = served.thresholds.context_limit
    if window is None or window >= ROOMY:
        return Offer(tuple([tool.spec for tool in tools.values()]))
    counter = counter_for(served.model.model_id, served.model.tokenizer)
    return fit_offer(tools, window, counter.count(instructions), counter)


def fit_offer(tools: Mapping[str, Tool], window: int, beside: int, counter: Counter) -> Offer:
    """Describe the tools that every agent has briefly if there is too little room, then leave out the least needed."""
    shown = {name: tool.spec for name, tool in tools.items()}
    own = [tool.spec for tool in tools.values() if not tool.always]
    stays = beside + counter.count_tools(own)
    if beside + counter.count_tools(tuple(shown.values())) <= frame_room(window, stays, WHOLE_TOOLS_DIVISOR):
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
    """Return a tool without the descriptions and bounds of its schema. Its calls are checked by the whole schema."""
    whole = spec.parameters
    plain = {name: _without_bounds(schema) for name, schema in whole["properties"].items()}
    return replace(spec, parameters={"type": "object", "properties": plain, "required": whole["required"]})


def _without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    items = {"items": _without_bounds(schema["items"])} if "items" in schema else {}
    return {"type": schema["type"], **items}
