from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "dialogs.extras.teams"
    verbose_name = "Teams"
    default_auto_field = "django.db.models.BigAutoField"
