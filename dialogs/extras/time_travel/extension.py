from dialogs.extension import Extension

EXTENSION = Extension(
    name="time_travel",
    summary="All calls of a dialog, each request as it was sent, and two of them compared, for programs.",
    pages="dialogs.extras.time_travel.urls",
    routers=("dialogs.extras.time_travel.api.router",),
)
