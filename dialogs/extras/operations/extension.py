from dialogs.extension import Extension, Piece
from dialogs.extras.operations import costs, critic


def tidy() -> None:
    """Store the sums of finished days, and let the critic review the week."""
    costs.sum_up_days()
    critic.review()


EXTENSION = Extension(
    name="operations",
    summary="The operator's page, statistics of cost, metrics of dialogs, and the critic.",
    pages="dialogs.extras.operations.urls",
    routers=("dialogs.extras.operations.api.router",),
    pieces=(
        Piece("navigation", "ops/_links.html"),
        Piece("settings-costs", "ops/_statistics_link.html"),
    ),
    tidy=tidy,
)
