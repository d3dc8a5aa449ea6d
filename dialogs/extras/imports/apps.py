from django.apps import AppConfig


class ImportsConfig(AppConfig):
    name = "dialogs.extras.imports"
    verbose_name = "Imports"
