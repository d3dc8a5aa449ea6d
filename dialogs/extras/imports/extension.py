from dialogs.extension import Extension, Piece

EXTENSION = Extension(
    name="imports",
    summary="Conversations of other chats as dialogs: a page, a call, and the command `import`.",
    pages="dialogs.extras.imports.urls",
    routers=("dialogs.extras.imports.api.router",),
    pieces=(Piece("below-dialogs", "dialogs/_import_link.html"),),
)
