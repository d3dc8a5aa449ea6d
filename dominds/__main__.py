"""Command line of Dominds: ``dominds up`` starts everything, ``dominds help`` lists the rest."""

import os
import sys


def main() -> None:
    """Run a management command. ``python manage.py`` and ``python -m dominds`` are the same."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    if sys.argv[1:2] == ["up"]:
        from dominds.local import up

        up.main(sys.argv[2:])
    else:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
