"""The parts of a dialog's next request. Each step takes from them the two or three that it needs."""

from typing import NamedTuple

from dialogs.context.served import Served, resolve_served
from dialogs.context.view import View, view_of
from dialogs.context.view_sizes import ViewSizes
from dialogs.models import Dialog
from dialogs.tools.offer import offer_to
from dominds.llm.messages import ToolSpec


class Materials(NamedTuple):
    """The materials of a request: its model, policy, view and tools, and the sizes, which are computed on demand."""

    served: Served
    view: View
    tools: tuple[ToolSpec, ...]
    sizes: ViewSizes


def materials_of(dialog: Dialog, view: View | None = None, served: Served | None = None) -> Materials:
    """Read the materials, as far as the caller does not have them. Raises ``UnknownModel`` if the catalog no longer has
    the dialog's model.
    """
    view = view or view_of(dialog)
    served = (served or resolve_served(dialog)).with_sight_for(view.with_parts)
    tools = offer_to(dialog, served).tools
    return Materials(served, view, tools, ViewSizes(dialog, served, view, tools))
