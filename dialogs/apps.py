from django.apps import AppConfig


class DialogsConfig(AppConfig):
    name = "dialogs"
    verbose_name = "Dialogs"

    def ready(self) -> None:
        from dialogs import checks  # noqa: F401  checks register themselves
