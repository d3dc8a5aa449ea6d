from dialogs.extension import Extension, Piece

EXTENSION = Extension(
    name="sharing",
    summary="The page where a dialog is shared, and the pages of links by which anybody reads one.",
    pages="dialogs.extras.sharing.urls",
    pieces=(Piece("dialog-menu", "dialogs/_share_entry.html"), Piece("list-menu", "dialogs/_share_list_entry.html")),
)
