from django.apps import AppConfig


class SharingConfig(AppConfig):
    name = "dialogs.extras.sharing"
    verbose_name = "Sharing"
