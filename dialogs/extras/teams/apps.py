from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "dialogs.extras.teams"
    verbose_name = "Teams"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from dialogs.extras.teams import metrics

        metrics.register()
