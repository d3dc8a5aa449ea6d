from dialogs.extension import Extension, Piece

EXTENSION = Extension(
    name="sso",
    summary="Sign-in at OpenID providers, beside passwords.",
    pages="dialogs.extras.sso.urls",
    pieces=(
        Piece("login", "accounts/_sign_in.html", "dialogs.extras.sso.views.providers"),
        Piece("settings-account", "accounts/_sign_ins.html", "dialogs.extras.sso.views.sign_ins"),
    ),
)
