"""Test servers and the environment that names them, before Django reads its settings.

A plugin by ``-p`` (see pyproject.toml), since pytest-django loads the settings ahead of any conftest. Each worker of
pytest-xdist imports it for itself, and so has servers of its own.
"""

from tests.harness import services

services.set_environment()
