"""The tools that a dialog's request describes, for code that must not import ``dialogs.tools``.

``dialogs.apps`` registers the function that knows them when Django starts.
"""

from collections.abc import Callable, Sequence

from dialogs.context.served import Served
from dialogs.models import Dialog
from dominds.llm.messages import ToolSpec

OfferTools = Callable[[Dialog, Served], Sequence[ToolSpec]]

_offers: list[OfferTools] = []


def offer_tools_by(offer: OfferTools) -> None:
    _offers[:] = [offer]


def tools_offered(dialog: Dialog, served: Served) -> tuple[ToolSpec, ...]:
    """Return the tools that the dialog's next request would describe. Tool servers may be asked for their tools."""
    return tuple(tool for offer in _offers for tool in offer(dialog, served))
