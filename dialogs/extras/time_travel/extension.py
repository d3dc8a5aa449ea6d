from dialogs.extension import Extension, Piece

EXTENSION = Extension(
    name="time_travel",
    summary="All calls of a dialog on one line, each request as it was sent, and two of them compared.",
    pages="dialogs.extras.time_travel.urls",
    routers=("dialogs.extras.time_travel.api.router",),
    pieces=(
        Piece("dialog-history", "dialogs/_timeline_entry.html"),
        Piece("context-links", "dialogs/_timeline_link.html"),
        Piece("turn-menu", "dialogs/_call_entry.html"),
        Piece("usage-links", "dialogs/_call_links.html"),
        Piece("call-name", "dialogs/_call_name.html"),
    ),
)
