"""The Django app of the lowest layer. It holds the commands, and loads Celery's application in every process."""

import logging
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import checks as admin_checks
from django.core import checks

_log = logging.getLogger(__name__)


class DomindsConfig(AppConfig):
    """Dominds as a Django app. It loads our Celery application: otherwise tasks would go to Celery's default broker."""

    name = "dominds"

    def ready(self) -> None:
        from dominds import celery, waits  # noqa: F401
        from dominds.db.hand_back import hand_back
        from dominds.local import places

        waits.before_each(hand_back)

        if places.IN_CHECKOUT:
            _build_texts(places.RESOURCES)


def _build_texts(root: Path) -> None:
    from dominds import texts

    try:
        texts.build(root)
    except OSError as error:
        _log.warning("Some texts stay English, since translations could not be built: %s", error)


class AdminConfig(admin_apps.SimpleAdminConfig):
    """Django's admin, whose pages are loaded only with the URL configuration and for the checks.

    Workers and commands start a fifth faster without them.
    """

    default = False

    def ready(self) -> None:
        checks.register(admin_checks.check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    admin.autodiscover()
    return list(admin_checks.check_admin_app(app_configs, **options))
