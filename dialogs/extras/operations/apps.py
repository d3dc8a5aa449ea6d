from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "dialogs.extras.operations"
    verbose_name = "Operations"

    def ready(self) -> None:
        from dialogs.extras.operations import metrics

        metrics.register()
