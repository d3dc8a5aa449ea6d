from dialogs.extension import Extension, Piece

EXTENSION = Extension(
    name="imports",
    summary="Conversations of other chats as dialogs: a page, and the command `import`.",
    pages="dialogs.extras.imports.urls",
    pieces=(Piece("below-dialogs", "dialogs/_import_link.html"),),
)
