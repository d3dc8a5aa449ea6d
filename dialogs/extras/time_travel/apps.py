from django.apps import AppConfig


class TimeTravelConfig(AppConfig):
    name = "dialogs.extras.time_travel"
    verbose_name = "Time travel"
