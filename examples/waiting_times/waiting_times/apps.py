from django.apps import AppConfig


class WaitingTimesConfig(AppConfig):
    name = "waiting_times"
    verbose_name = "Waiting times"
