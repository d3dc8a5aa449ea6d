from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from dialogs.context.served import Served
    from dialogs.models import Dialog
    from dominds.llm.messages import ToolSpec


class DialogsConfig(AppConfig):
    name = "dialogs"
    verbose_name = "Dialogs"

    def ready(self) -> None:
        from dialogs import checks  # noqa: F401  checks register themselves
        from dialogs.context.offered import offer_tools_by

        offer_tools_by(_offer_tools)


def _offer_tools(dialog: "Dialog", served: "Served") -> "Sequence[ToolSpec]":
    from dialogs.tools.offer import offer_to  # with all tools, which most processes never need

    return offer_to(dialog, served).tools
