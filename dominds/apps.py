"""The ground floor as a Django app: it brings the commands, and makes Celery's application known to every process."""

from django.apps import AppConfig


class DomindsConfig(AppConfig):
    """Without this, a task sent from a web process would go to Celery's default broker."""

    name = "dominds"

    def ready(self) -> None:
        from dominds import celery  # noqa: F401
