#!/usr/bin/env python
"""Command line of Dominds: ``python manage.py up`` starts everything."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run a management command, from whatever folder it was called."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
