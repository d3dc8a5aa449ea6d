from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"
    verbose_name = "Context health"

    def ready(self) -> None:
        from health import checks  # noqa: F401  registers the system checks
