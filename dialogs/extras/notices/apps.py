from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "dialogs.extras.notices"
    verbose_name = "Notices"

    def ready(self) -> None:
        from dialogs.extras.notices import checks, push_browser  # noqa: F401  both register themselves
