from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "dialogs.extras.backups"
    verbose_name = "Backups"
